# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes conformance`: builds the runner and hands everything over to it. Of the runner's
# words it knows the commands, which need other things built and may take no program, and the `--`
# that a program follows.

readonly RUNNER_TARGET=//conformance:kmes-conformance
readonly REFERENCE_TARGET=//conformance/testees:reference
readonly SELFTEST_TARGET=//conformance/main:selftest_testees

conformance_command() {
    local argument program_given=0 targets=("$RUNNER_TARGET") takes_program=1
    for argument in "$@"; do
        [ "$argument" = -- ] && program_given=1
    done
    case "${1-}" in
        # The file of a failure names the program that it is of; the others run none.
        replay | shrink | judge | clauses | merge | verify) takes_program=0 ;;
        selftest)
            takes_program=0
            targets+=("$SELFTEST_TARGET")
            ;;
    esac
    if [ "$takes_program" -eq 1 ] && [ "$program_given" -eq 0 ]; then
        targets+=("$REFERENCE_TARGET")
    fi
    BUILD_NEEDS=suite build_targets "the suite" "${targets[@]}" || return
    if [ "$takes_program" -eq 1 ] && [ "$program_given" -eq 0 ]; then
        set -- "$@" -- "$BAZEL_BIN/conformance/testees/reference"
    fi
    rm -rf -- "$KMES_SCRATCH"
    # "Run again" in a report is then a line that can be typed.
    export KMES_CONFORMANCE_COMMAND=${KMES_CONFORMANCE_COMMAND:-tools/kmes conformance}
    # For --version. Where the tree is no clone, nobody knows.
    KMES_CONFORMANCE_COMMIT=$(commit_of_tree)
    export KMES_CONFORMANCE_COMMIT
    # In the caller's folder, so that its relative paths hold; the runner's exit status is ours.
    exec "$BAZEL_BIN/conformance/kmes-conformance" "$@"
}
