#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# afl_test.sh FUZZER CORPUS: AFL++ runs the target in persistent mode with the input in shared
# memory, and finds its planted bug. Needs --config=afl and the package afl++.
set -uo pipefail
[ $# -eq 2 ] || { echo "usage: afl_test.sh FUZZER CORPUS" >&2; exit 2; }
command -v afl-fuzz >/dev/null || { echo "FAILED afl-fuzz is not there; install afl++"; exit 1; }
out=$TEST_TMPDIR/out
cp -rL -- "$2" "$TEST_TMPDIR/corpus" || exit 3  # AFL++ does not follow Bazel's links
export AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1
# AFL++ ends at the first crash; the number of seconds is the limit if it finds nothing.
export AFL_BENCH_UNTIL_CRASH=1
afl-fuzz -i "$TEST_TMPDIR/corpus" -o "$out" -V 300 -s 1 -m none -- "$1" >"$TEST_TMPDIR/log" 2>&1
stats=$out/default/fuzzer_stats
for word in persistent shmem_testcase; do
    grep -qE "^target_mode +: .*\<$word\>" "$stats" || {
        tail -n 30 "$TEST_TMPDIR/log"
        echo "FAILED target_mode has no $word: $(grep target_mode "$stats")"
        exit 1
    }
done
if ! grep -qE '^saved_crashes +: [1-9]' "$stats"; then
    echo "FAILED the planted bug is not found"
    exit 1
fi
echo "PASSED $(grep target_mode "$stats"), $(grep execs_done "$stats")"
