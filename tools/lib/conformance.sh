# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes conformance` builds the runner and passes all arguments to it. If the command takes a
# program and the arguments have none, adds `--` and the reference.

readonly RUNNER_TARGET=//conformance:kmes-conformance
readonly REFERENCE_TARGET=//conformance/testees:reference
readonly SELFTEST_TARGET=//conformance/main:selftest_testees

conformance_command() {
    local argument program_given=0 targets=("$RUNNER_TARGET") takes_program=1
    for argument in "$@"; do
        [ "$argument" = -- ] && program_given=1
    done
    case "${1-}" in
        # The failure file names the program; the other commands run none.
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
    # The name of the command in "Run again" of a report.
    export KMES_CONFORMANCE_COMMAND=${KMES_CONFORMANCE_COMMAND:-tools/kmes conformance}
    # For --version. Empty without git.
    KMES_CONFORMANCE_COMMIT=$(commit_of_tree)
    export KMES_CONFORMANCE_COMMIT
    # The runner starts in the caller's folder, so that relative paths hold.
    exec "$BAZEL_BIN/conformance/kmes-conformance" "$@"
}
