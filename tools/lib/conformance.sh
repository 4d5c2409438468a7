# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes conformance`: builds the runner and hands everything over to it. Knows no option of
# the runner but the `--` that a program follows.

readonly RUNNER_TARGET=//conformance:kmes-conformance
readonly REFERENCE_TARGET=//conformance/testees:reference

conformance_command() {
    local argument program_given=0
    for argument in "$@"; do
        [ "$argument" = -- ] && program_given=1
    done
    build_targets "the suite" "$RUNNER_TARGET" "$REFERENCE_TARGET" || return
    if [ "$program_given" -eq 0 ]; then
        set -- "$@" -- "$BAZEL_BIN/conformance/testees/reference"
    fi
    rm -rf -- "$KMES_SCRATCH"
    # "Run again" in a report is then a line that can be typed.
    export KMES_CONFORMANCE_COMMAND=${KMES_CONFORMANCE_COMMAND:-tools/kmes conformance}
    # In the caller's folder, so that its relative paths hold; the runner's exit status is ours.
    exec "$BAZEL_BIN/conformance/kmes-conformance" "$@"
}
