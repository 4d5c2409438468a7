#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests the command tools/kmes flakes with a fake bazel: usage, the choice of tests, counts, kept
# logs, exit statuses.
set -uo pipefail

source tools/kmes_testing.sh

test_flakes_usage() {
    local option
    kmes 0 flakes --help
    like "$OUT" '^usage: tools/kmes flakes'
    for option in runs jobs seconds; do
        kmes 2 flakes "--$option" 0
        has "$ERR" \
            "tools/kmes: flakes: --$option takes a whole number from 1 to 100000, not '0'"
    done
    kmes 2 flakes --runs
    has "$ERR" 'tools/kmes: flakes: --runs takes a value'
    kmes 2 flakes --config fuzz
    has "$ERR" \
        "tools/kmes: flakes: unknown configuration 'fuzz'; one of: default asan ubsan tsan"
    kmes 2 flakes --logs /dev/null
    has "$ERR" "tools/kmes: flakes: --logs takes a folder, not '/dev/null'"
    kmes 2 flakes --often
    like "$ERR" "flakes: unknown option '--often'; see"
    kmes 2 flakes guard_test
    has "$ERR" "tools/kmes: flakes: a target begins with //, unlike 'guard_test'"
    lines "$ERR" 1
    lines "$CALLS" 0
}

# A count for each test, long ones left out, the logs of failed runs kept.
test_flakes() {
    local logs=$TEST_TMPDIR/flake-logs run=$TEST_TMPDIR/testlogs/a/bad/run_7_of_9
    mkdir -p "$run"
    echo 'words of a failed run' >"$run/test.log"
    bazel_says 3 <<'E2'
//a:bad                                                       (cached) PASSED in 0.9s
//a:good                                                               PASSED in 29.9s
//a:broken                                                             FAILED in 2.1s
  /none/test.log
//a:long                                                               PASSED in 30.0s
//a:longer                                                            TIMEOUT in 30.1s
E2
    cat >"$TEST_TMPDIR/bazel-repeats" <<E2
//a:good                                                               PASSED in 2.3s
  Stats over 9 runs: max = 2.3s, min = 1.0s, avg = 1.2s, dev = 0.1s
//a:bad                                                       FAILED in 1 out of 9 in 1.3s
  Stats over 9 runs: max = 1.3s, min = 1.0s, avg = 1.2s, dev = 0.1s
  $run/test.log
//a:broken                                                 NO STATUS
E2
    kmes 1 flakes --runs 9 --jobs 4 --config tsan --logs "$logs" //a/... -//a:c
    like "$CALLS" ' --jobs=4 --local_test_jobs=4 --config=tsan '
    like "$CALLS" ' --test_timeout=120 -- //a/\.\.\. -//a:c$'
    like "$CALLS" ' --nocache_test_results --runs_per_test=9 -- //a:bad //a:good //a:broken$'
    has "$OUT" 'PASS tsan //a:good 0 of 9'
    has "$OUT" 'FAIL tsan //a:bad 1 of 9'
    has "$OUT" 'FAIL tsan //a:broken 9 of 9'
    has "$OUT" '1 tests without a failed run, 2 with one'
    has_not "$OUT" //a:long
    last "$OUT" "logs of failed runs: $logs"
    has "$logs/tsan/a/bad/run_7_of_9.log" 'words of a failed run'
    # Without options: every test, under both configurations.
    kmes 1 flakes
    like "$CALLS" '^bazel test .* --runs_per_test=60 '
    like "$CALLS" ' --config=tsan .* -- //\.\.\. -//conformance/cases/\.\.\. '
    has "$OUT" 'FAIL default //a:bad 1 of 9'
    has "$OUT" 'FAIL tsan //a:bad 1 of 9'
    rm -r "$TEST_TMPDIR"/kmes-flakes.*
    # A test that the summary omits has not passed.
    echo '//a:good  PASSED in 2.3s' >"$TEST_TMPDIR/bazel-repeats"
    kmes 1 flakes --config default
    has "$OUT" 'FAIL default: Bazel shows 1 tests of 3'
    bazel_says 0 <<<'//a:good  PASSED in 2.3s'
    kmes 0 flakes --config default
    last "$OUT" '1 tests without a failed run, 0 with one'
}

# A test that hangs or fails slowly in the first run has failed. A test that is slow only beside
# others is short. A test that is always slow is left out.
test_flakes_of_the_first_run() {
    bazel_says 3 <<'E2'
//a:good                                                               PASSED in 2.3s
//a:busy                                                               PASSED in 50.1s
//a:hung                                                              TIMEOUT in 120.1s
//a:long                                                              TIMEOUT in 120.1s
//a:slow                                                               FAILED in 31.0s
E2
    cat >"$TEST_TMPDIR/bazel-alone" <<'E2'
//a:busy                                                               PASSED in 20.0s
//a:hung                                                               PASSED in 1.3s
//a:long                                                               PASSED in 44.0s
E2
    cat >"$TEST_TMPDIR/bazel-repeats" <<'E2'
//a:good                                                               PASSED in 2.3s
//a:busy                                                               PASSED in 25.3s
//a:hung                                                               PASSED in 1.3s
E2
    kmes 1 flakes --config default
    like "$CALLS" ' --test_timeout=120 '
    like "$CALLS" ' --local_test_jobs=1 --test_timeout=30 -- //a:busy //a:hung //a:long$'
    like "$CALLS" ' --runs_per_test=60 -- //a:good //a:busy //a:hung$'
    has "$OUT" 'FAIL default //a:hung 1 of 1: hung in its first run'
    has "$OUT" 'FAIL default //a:slow 1 of 1: failed in its first run'
    has_not "$OUT" //a:long
    last "$OUT" '3 tests without a failed run, 2 with one'
    rm "$TEST_TMPDIR/bazel-alone"
}

# The tests are repeated and reported in groups of twelve.
test_flakes_in_groups() {
    local i
    for ((i = 1; i <= 14; ++i)); do
        echo "//a:t$i  PASSED in 1.0s"
    done >"$TEST_TMPDIR/all"
    bazel_says 0 <"$TEST_TMPDIR/all"
    head -n 12 "$TEST_TMPDIR/all" >"$TEST_TMPDIR/bazel-repeats-t12"
    tail -n 2 "$TEST_TMPDIR/all" >"$TEST_TMPDIR/bazel-repeats-t14"
    : >"$CALLS"
    kmes 0 flakes --config default
    like "$CALLS" ' --runs_per_test=60 -- //a:t1 .* //a:t12$'
    like "$CALLS" ' --runs_per_test=60 -- //a:t13 //a:t14$'
    lines "$CALLS" 3
    has "$OUT" 'PASS default //a:t12 0 of 60'
    has "$OUT" 'PASS default //a:t14 0 of 60'
    last "$OUT" '14 tests without a failed run, 0 with one'
    # What one group lacks is a failure, although another group passed.
    tail -n 1 "$TEST_TMPDIR/all" >"$TEST_TMPDIR/bazel-repeats-t14"
    kmes 1 flakes --config default
    has "$OUT" 'FAIL default: Bazel shows 1 tests of 2'
    last "$OUT" '13 tests without a failed run, 1 with one'
    rm "$TEST_TMPDIR"/bazel-repeats-t*
}

test_flakes_without_tests() {
    bazel_says 4 </dev/null
    kmes 2 flakes //a/...
    has "$ERR" \
        'tools/kmes: flakes: none of these targets is a test that takes less than 30 s'
    bazel_says 1 <<<'ERROR: words of the compiler'
    kmes 3 flakes
    has "$ERR" 'ERROR: words of the compiler'
    like "$ERR" 'flakes: the tests could not be built under default; the log is above'
}

make_clone
test_flakes_usage
test_flakes
test_flakes_of_the_first_run
test_flakes_in_groups
test_flakes_without_tests
echo "$failures failures"
[ "$failures" -eq 0 ]
