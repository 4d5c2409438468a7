#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Tests the rule kmes_conformance_test in another workspace, in shards and without a network. One
# consumer passes, one fails, and one has a known failure. The test also lets Bazel analyse the
# suite as a dependency. Do not run it under Bazel, because it starts Bazel.
#
#   workspace_test.sh TREE RUNNER CORRECT BROKEN
set -uo pipefail

TREE=$(readlink -f -- "$1")
RUNNER=$(readlink -f -- "$2")
CORRECT=$(readlink -f -- "$3")
BROKEN=$(readlink -f -- "$4")
readonly TREE RUNNER CORRECT BROKEN
readonly BROKEN_CASE=E2/event-at-every-step
WORK=$(mktemp -d)
readonly WORK
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

in_workspace() {
    (cd "$WORK/other" && bazel --output_user_root="$WORK/root" --max_idle_secs=5 "$@" \
        --experimental_repository_disable_download --color=no --curses=no --noshow_progress)
}

end() {
    (cd "$WORK/other" && bazel --output_user_root="$WORK/root" shutdown) >/dev/null 2>&1
    # The output root is read-only in parts.
    chmod -R u+w "$WORK" && rm -rf -- "$WORK"
}
trap end EXIT

make_workspace() {
    local name
    mkdir -p "$WORK/other"
    cp "$RUNNER" "$WORK/other/kmes-conformance"
    cp "$CORRECT" "$WORK/other/correct"
    cp "$BROKEN" "$WORK/other/broken"
    {
        echo 'workspace(name = "other")'
        printf 'local_repository(name = "kmes", path = "%s")\n' "$TREE"
        # The repositories that Bazel itself, or a C++ build, would download.
        for name in rules_cc rules_java rules_proto platforms remote_coverage_tools; do
            printf 'local_repository(name = "%s", path = "%s/tools/bazel/%s")\n' "$name" "$TREE" \
                "$name"
        done
    } >"$WORK/other/WORKSPACE"
    "$RUNNER" --cpus 1 --filter "$BROKEN_CASE" --known-failures "$WORK/other/known.txt" \
        --fix-known-failures -- "$BROKEN" >"$WORK/fix.log" 2>&1 || fail "$(cat "$WORK/fix.log")"
    cat >"$WORK/other/BUILD.bazel" <<BUILD
load("@kmes//conformance/bazel:defs.bzl", "kmes_conformance_test")

[sh_binary(name = name + "_consumer", srcs = [name]) for name in ["correct", "broken"]]

[kmes_conformance_test(
    name = name,
    testee = ":" + testee + "_consumer",
    args = ["'an argument'"],
    known_failures = known,
    options = ["--cpus", "1", "--filter", "$BROKEN_CASE", "--filter", "5.1.5/a*"],
    runner = "kmes-conformance",
    shard_count = 2,
) for name, testee, known in [
    ("passes", "correct", None),
    ("fails", "broken", None),
    ("known", "broken", "known.txt"),
]]
BUILD
}

# runs TARGET STATUS: tests the target, and expects the status of Bazel (0: all shards passed, 3: a
# shard failed).
runs() {
    local status=0
    in_workspace test --test_env=KMES_TIMEOUT_SCALE --test_output=errors --nosandbox_debug "//:$1" \
        >"$WORK/$1.log" 2>&1 || status=$?
    [ "$status" -eq "$2" ] || fail "$1: status $status: $(tail -n 40 "$WORK/$1.log")"
}

test_shards() {
    local target folder reports
    for target in "passes 0" "fails 3" "known 0"; do
        # shellcheck disable=SC2086  # two words
        runs $target
        folder=$WORK/other/bazel-testlogs/${target% *}
        for shard in 1 2; do
            (cd "$folder/shard_${shard}_of_2/test.outputs" &&
                python3 -m zipfile -e outputs.zip .) ||
                fail "${target% *}: no outputs of shard $shard"
        done
        reports=("$folder"/shard_*_of_2/test.outputs/report.json)
        "$RUNNER" merge "${reports[@]}" >"$WORK/merged" 2>&1
        [ $? -eq "$((${target#* } == 0 ? 0 : 1))" ] || fail "merge: $(cat "$WORK/merged")"
        grep -q '<testcase .*name="5.1.5/a' "$folder"/shard_*_of_2/test.xml ||
            fail "${target% *}: the XML has no cases"
    done
}

# Tests the default runner: analyses the suite's sources, which needs no compiler.
test_analysis() {
    in_workspace build --nobuild @kmes//conformance:kmes-conformance >"$WORK/analysis.log" 2>&1 ||
        fail "analysis: $(tail -n 20 "$WORK/analysis.log")"
}

command -v bazel >/dev/null || { echo 'workspace_test.sh: no bazel' >&2 && exit 3; }
make_workspace
test_shards
test_analysis
echo "$failures failures"
[ "$failures" -eq 0 ]
