#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Eight shards of a real run, merged, have the verdicts and the statement of one run.
set -uo pipefail

readonly RUNNER=conformance/kmes-conformance
readonly WORDS=(--cpus 1 --filter 'E2/event-at*' --filter '5.1.8.2/e*' --explore 4)
readonly PROGRAM=conformance/testees/broken_no-recheck
readonly TOTAL=8
# This test itself may run in a sharded environment.
unset TEST_TOTAL_SHARDS TEST_SHARD_INDEX TEST_SHARD_STATUS_FILE

fail() {
    printf 'FAIL: %s\n' "$*"
    exit 1
}

verdicts() {
    python3 -B -c 'import json, sys
for case in json.load(open(sys.argv[1], encoding="utf-8"))["cases"]:
    print(case["id"], case["verdict"])' "$1"
}

run() { "$RUNNER" "${WORDS[@]}" --report "json:$1" -- "$PROGRAM" >"$TEST_TMPDIR/log" 2>&1; }

run "$TEST_TMPDIR/whole"
[ $? -eq 1 ] || fail "the whole run: $(cat "$TEST_TMPDIR/log")"
files=()
for ((index = 0; index < TOTAL; index++)); do
    files+=("$TEST_TMPDIR/shard-$index")
    TEST_TOTAL_SHARDS=$TOTAL TEST_SHARD_INDEX=$index TEST_SHARD_STATUS_FILE=$TEST_TMPDIR/status \
        run "${files[index]}"
    [ $? -le 1 ] || fail "shard $index: $(cat "$TEST_TMPDIR/log")"
done
[ -e "$TEST_TMPDIR/status" ] || fail "no status file"
"$RUNNER" merge --report "json:$TEST_TMPDIR/merged" --report "statement:$TEST_TMPDIR/statement" \
    "${files[@]}" >"$TEST_TMPDIR/log" 2>&1
[ $? -eq 1 ] || fail "merge: $(cat "$TEST_TMPDIR/log")"
diff <(verdicts "$TEST_TMPDIR/whole") <(verdicts "$TEST_TMPDIR/merged") || fail "other verdicts"
"$RUNNER" verify "$TEST_TMPDIR/statement" "$TEST_TMPDIR/merged" || fail "another statement"
"$RUNNER" merge "${files[@]:1}" >"$TEST_TMPDIR/log" 2>&1
[ $? -eq 3 ] || fail "a shard is missing: $(cat "$TEST_TMPDIR/log")"
