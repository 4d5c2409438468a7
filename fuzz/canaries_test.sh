#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# canaries_test.sh FUZZER CANARY CORPUS [DICTIONARY]: the fuzzer with the planted bug passes every
# file of the seed corpus. It finds the bug within the number of executions that the canary states,
# with its seed or one of the next. (libFuzzer also compares pointers, so the effect of a seed
# depends on the stack: arguments and environment.) Several short runs find it earlier than a long
# one, because a growing corpus slows each execution. Needs --config=fuzz.
set -uo pipefail
readonly TRIES=20
[ $# -ge 3 ] || { echo "usage: canaries_test.sh FUZZER CANARY CORPUS [DICTIONARY]" >&2; exit 2; }
fuzzer=$1 canary=$2 corpus=$3 dictionary=${4-}
scratch=${TEST_TMPDIR:-$(mktemp -d)}
log=$scratch/log

value() { sed -n "s/^$1: //p" "$canary"; }

refuse() {
    echo "FAILED $canary: $1"
    tail -n 40 "$log"
    exit 1
}

seed=$(value seed) runs=$(value runs)
# The same address space for every run, as far as possible.
run=(setarch "$(uname -m)" -R "$fuzzer" -print_funcs=0 -artifact_prefix="$scratch/")
"${run[@]}" "-seed=$seed" -runs=0 "$corpus" >"$log" 2>&1 ||
    refuse "a file of the seed corpus triggers it"
most=$(value max_len)
[ -z "$most" ] || run+=("-max_len=$most")
[ -z "$dictionary" ] || run+=("-dict=$dictionary")

# find_it SEED: status 0 if the fuzzer has stopped at a finding.
find_it() {
    rm -rf "$scratch/new" && mkdir -p "$scratch/new" || exit 3
    ! "${run[@]}" "-seed=$1" "-runs=$runs" "$scratch/new" "$corpus" >"$log" 2>&1
}

first=$seed
until find_it "$seed"; do
    seed=$((seed + 1))
    [ "$seed" -lt $((first + TRIES)) ] || refuse "not found in $TRIES times $runs executions"
done
# The finding must be the planted bug: a crash of the engine, or a lack of memory, does not count.
grep -qE '^kmes fuzz: |ERROR: (Address|UndefinedBehavior)Sanitizer|runtime error:' "$log" ||
    refuse "the fuzzer ended for another reason"
ls "$scratch"/crash-* >/dev/null 2>&1 || refuse "no input was kept"
found=$(sed -n 's/^#\([0-9]*\)[^0-9].*/\1/p' "$log" | tail -n 1)
echo "PASSED $canary: found after about ${found:-0} of $runs executions, with seed $seed"
