#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A sample of `tools/kmes mutants`: every mutant of it is caught or listed. And the run can fail: a
# mutant without a killer survives, and a list with too many entries is reported.
set -uo pipefail

OUT=$TEST_TMPDIR/out

fail() {
    printf '%s\n' "$*" >&2
    cat -- "$OUT" >&2
    exit 1
}

# mutants STATUS ARGUMENTS...
mutants() {
    local wanted=$1 status=0
    shift
    python3 -B props/mutants/run_mutants.py --root "$PWD" --bin "$PWD" --built "$@" \
        >"$OUT" 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || fail "exit status $status, not $wanted: $*"
}

like() { grep -qE -- "$1" "$OUT" || fail "nothing like '$1'"; }

mutants 0 --sample 6 --jobs 2 --scripts 1500
like '^6 mutants: .* 0 survived'
like '^caught \| .* \| .* \| .+ \| .+'

# The killer that checks the strength of accesses is left out: on this machine nothing else notices
# it.
none=$TEST_TMPDIR/none.txt
: >"$none"
mutants 1 --only producer.c/kmes_publish/weaken/ --killers tests --without labels_test \
    --equivalent "$none"
like '^survived: producer.c/kmes_publish/weaken/0 '

# A stale list: one mutant is caught after all, and one does not exist.
printf '= a reason\nproducer.c/kmes_publish/weaken/0 48c50ad7\nproducer.c/gone/drop/0 1\n' >"$none"
mutants 1 --only producer.c/kmes_publish/weaken/ --killers scripts --equivalent "$none"
like '^caught \| producer.c/kmes_publish/weaken/0 .* order-strength '
like '^stale: producer.c/kmes_publish/weaken/0 is listed as equivalent, and is caught'
like '^stale: producer.c/gone/drop/0 is listed, and is no mutant'

# The edit of the ID is not the listed edit.
printf '= a reason\nproducer.c/kmes_publish/weaken/0 48c50ad8\n' >"$none"
mutants 1 --only producer.c/kmes_publish/weaken/ --killers scripts --equivalent "$none"
like '^stale: producer.c/kmes_publish/weaken/0 is another edit now, 48c50ad7'

# If a killer is missing, mutants are not judged.
mutants 3 --only producer.c/kmes_publish/ --bin "$TEST_TMPDIR"
like 'is not built'
mutants 2 --only producer.c/nothing
like "no mutant's ID begins so"
