#!/bin/sh
# SPDX-License-Identifier: MIT
#
# flake.py gives a case to the suite (--case), and takes one only for runs that are not counted. The
# suite here is a script that prints its arguments.
set -u
suite=$TEST_TMPDIR/suite
calls=$TEST_TMPDIR/calls
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$calls" >"$suite"
printf '#!/bin/sh\n' >"$TEST_TMPDIR/bulk.program"
chmod +x "$suite" "$TEST_TMPDIR/bulk.program"
flake() {
    python3 conformance/testees/correct/flake.py --suite "$suite" --programs "$TEST_TMPDIR" "$@"
}
status=0
fail() {
    echo "FAIL: $*"
    status=1
}
flake --once --case 'E2/*' bulk || fail "--once --case: status $?"
grep -q -e '--filter E2/\* -- ' "$calls" || fail "no filter in: $(cat "$calls")"
flake --counts "$TEST_TMPDIR/counts" --case 'E2/*' bulk 2>"$TEST_TMPDIR/error" &&
    fail "--case without --once: status 0"
grep -q -e '--case needs --once' "$TEST_TMPDIR/error" || fail "$(cat "$TEST_TMPDIR/error")"
exit "$status"
