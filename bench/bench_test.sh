#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests that kmes-bench ends and prints each row, and reports errors. Does not check the figures.
set -uo pipefail

readonly BENCH=$1 REFUSED=$2 WILLING=$3 CONSUMERS=$4 KMESCTL=$5
readonly OUT=$TEST_TMPDIR/out
failures=0

fail() {
    echo "FAIL: $*"
    cat "$OUT"
    failures=$((failures + 1))
}

"$BENCH" --quick --first --json "$TEST_TMPDIR/figures.json" >"$OUT" 2>&1 ||
    fail "status $?"
python3 - "$TEST_TMPDIR/figures.json" >>"$OUT" 2>&1 <<'PYTHON' || fail "the figures are wrong"
import collections, json, sys

with open(sys.argv[1]) as file:
    rows = json.load(file)["rows"]
tables = collections.defaultdict(list)
for row in rows:
    tables[row["group"], row["table"], row["value"]].append(row)
# The numbers of tables, and of rows in each.
GROUPS = {
    "producer": (2, 5), "reader": (2, 4), "pair": (2, 3),
    "mixed": (2, 4), "rings": (2, 2), "capacity": (2, 2), "resize": (1, 3),
    "peers": (1, 2),
}
WAKE = {"one wake": 4, "wakes": 3}
for group, (count, _) in GROUPS.items():
    assert len([name for name in tables if name[0] == group]) == count, group
assert {name[1] for name in tables if name[0] == "wake"} == set(WAKE)
for name, table in tables.items():
    rows = WAKE[name[1]] if name[0] == "wake" else GROUPS[name[0]][1]
    assert len(table) == rows, name
    is_time = name[1] != "wakes"
    assert all((row["unit"] == "ns each") == is_time for row in table), name
    assert table[0]["ratio"] == 1, name
    assert all(row["median"] > 0 and row["samples"] == 5 for row in table), name
# The sleeping reader is woken, and there are no more wakes than events.
for row in tables["wake", "wakes", 64]:
    assert 0 < row["median"] <= 1000, row
PYTHON
[ "$(grep -c '^[a-z]*: .*(ratio to ' "$OUT")" -eq 16 ] || fail "not sixteen tables"

"$BENCH" consumer >"$OUT" 2>&1
[ $? -eq 2 ] || fail "an unknown group is not bad usage"
[ "$(wc -l <"$OUT")" -eq 1 ] || fail "bad usage is not one line"
"$BENCH" --quick --first --json "$TEST_TMPDIR/none/file" reader >"$OUT" 2>&1
[ $? -eq 3 ] || fail "no error for a file that cannot be written"
"$BENCH" --quick --first --peer "$BENCH" peers >"$OUT" 2>&1
[ $? -eq 3 ] || fail "no error for a file that is not a peer"
grep -q 'not a peer of bench/peers$' "$OUT" || fail "the error does not name the file"
"$BENCH" --quick --first --peer "$REFUSED" --peer "$WILLING" peers >"$OUT" 2>&1 ||
    fail "a peer that cannot run fails the program: status $?"
grep -qx 'left out: the refused: not permitted: a ring buffer: Operation not permitted' "$OUT" ||
    fail "no line says why a peer was left out"
[ "$(grep -c 'the refused' "$OUT")" -eq 1 ] || fail "a peer that is left out has a row"
grep -q '^the willing  *[0-9.]* (' "$OUT" || fail "the peer that runs has no row"
grep -qx 'the willing: no bytes' "$OUT" || fail "no line says what the peer leaves out"

# Each consumer ends, and has a row. perf may have one, or a reason.
"$CONSUMERS" "$KMESCTL" "$TEST_TMPDIR" --rate 100000 --seconds 0.2 >"$OUT" 2>&1 ||
    fail "consumers: status $?"
for row in 'reader of one CPU' set merge 'print > /dev/null' 'print --json > /dev/null' \
    'record to tmpfs'; do
    grep -qE "^$row +[1-9][0-9]* +[0-9]+\.[0-9]$" "$OUT" || fail "consumers: no row: $row"
done
grep -qE '^(left out: )?perf record to tmpfs' "$OUT" || fail "consumers: nothing about perf"
"$CONSUMERS" "$KMESCTL.none" "$TEST_TMPDIR" --rate 100000 --seconds 0.2 >"$OUT" 2>&1 ||
    fail "a consumer that cannot run fails the program: status $?"
grep -qx 'left out: set: .*' "$OUT" && fail "a reader is left out"
grep -qx 'left out: print > /dev/null: not installed' "$OUT" || fail "no reason for print"
exit "$failures"
