#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The JSON report follows its schema. Checked are a made-up one with all features, the same with
# every byte in its texts, and that of a real run with failures. The schema is strict: an unknown
# member is a violation.
set -uo pipefail

readonly FOLDER=conformance/report
readonly SCHEMA=$FOLDER/report.schema.json
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

validate() { python3 -B "$FOLDER/validate.py" "$SCHEMA" "$@"; }

$FOLDER/sample_report json >"$TEST_TMPDIR/sample.json" || fail "no sample"
$FOLDER/sample_report json hostile >"$TEST_TMPDIR/hostile.json" || fail "no hostile sample"
# A case on a consumer that never loads write_pos again: a failure with its trace.
conformance/kmes-conformance --cpus 1 --filter E2/event-at-every-step \
    --save "$TEST_TMPDIR/saved" --report json --report-file "$TEST_TMPDIR/run.json" \
    -- conformance/testees/broken_no-recheck >"$TEST_TMPDIR/run.log"
[ $? -eq 1 ] || fail "the run: $(cat "$TEST_TMPDIR/run.log")"

validate "$TEST_TMPDIR"/{sample,hostile,run}.json
status=$?
if [ "$status" -eq 77 ]; then
    echo "SKIPPED: python3-jsonschema is not installed"
    exit 0
fi
[ "$status" -eq 0 ] || fail "the schema does not describe the report"

# Proves that the test notices violations.
sed 's/"pass": 1/"pass": -1/' "$TEST_TMPDIR/sample.json" >"$TEST_TMPDIR/bad.json"
if validate "$TEST_TMPDIR/bad.json" >"$TEST_TMPDIR/bad.log"; then fail "a negative count"; fi
sed 's/"schema": 2,/"schema": 2, "more": 1,/' "$TEST_TMPDIR/sample.json" >"$TEST_TMPDIR/bad.json"
if validate "$TEST_TMPDIR/bad.json" >"$TEST_TMPDIR/bad.log"; then fail "an unknown member"; fi

python3 -B - "$TEST_TMPDIR/run.json" <<'PYTHON' || fail "the real run lacks evidence"
import json, sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
case = next(case for case in report["cases"] if case["verdict"] == "fail")
for name in ("done", "expectation", "findings", "history", "trace", "saved"):
    assert case[name], name
rows = case["trace"]["rows"]
assert any(row.get("decisive") and row["why"] for row in rows)
assert rows[-1]["kind"] == "end"
assert report["machine"]["kernel"].startswith("Linux ")
assert report["suite"]["release"] == open("VERSION", encoding="utf-8").read().strip()
PYTHON
echo "$failures failures"
[ "$failures" -eq 0 ]
