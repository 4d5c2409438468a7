#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# kmes-bench runs to its end and writes each row; its figures are nobody's business here.
set -uo pipefail

readonly BENCH=$1
readonly OUT=$TEST_TMPDIR/out
failures=0

fail() {
    echo "FAIL: $*"
    cat "$OUT"
    failures=$((failures + 1))
}

"$BENCH" --quick --json "$TEST_TMPDIR/figures.json" >"$OUT" 2>&1 ||
    fail "status $?"
python3 - "$TEST_TMPDIR/figures.json" >>"$OUT" 2>&1 <<'PYTHON' || fail "the figures are wrong"
import collections, json, sys

with open(sys.argv[1]) as file:
    rows = json.load(file)["rows"]
tables = collections.defaultdict(list)
for row in rows:
    tables[row["group"], row["table"], row["payload_bytes"]].append(row)
# Two tables each for five sizes: producer, reader and pair; and one for one size: wake.
assert len(tables) == 3 * 2 * 5 + 1, tables.keys()
for name, table in tables.items():
    assert len(table) == (3 if name[0] == "pair" else 4), name
    assert table[0]["ratio"] == 1, name
    assert all(row["median_ns"] > 0 and row["samples"] == 5 for row in table), name
PYTHON
[ "$(grep -c '^[a-z]*: .*(ratio to ' "$OUT")" -eq 7 ] || fail "not seven tables"

"$BENCH" consumer >"$OUT" 2>&1
[ $? -eq 2 ] || fail "an unknown group is not bad usage"
[ "$(wc -l <"$OUT")" -eq 1 ] || fail "bad usage is not one line"
"$BENCH" --quick --json "$TEST_TMPDIR/none/file" reader >"$OUT" 2>&1
[ $? -eq 3 ] || fail "a file that cannot be written is not said"
exit "$failures"
