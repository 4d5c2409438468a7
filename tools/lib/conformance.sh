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
    setup_section required || return
    prepare_bazel || return
    make_scratch || return
    local log=$KMES_SCRATCH/build.log folder
    [ -t 2 ] && printf 'tools/kmes: building (the first time takes minutes)\n' >&2
    if ! run_bazel build "$RUNNER_TARGET" "$REFERENCE_TARGET" >"$log" 2>&1; then
        cat -- "$log" >&2
        say_error "the suite could not be built; the log is above"
        return "$STATUS_SETUP"
    fi
    if ! folder=$(run_bazel info bazel-bin 2>"$log"); then
        cat -- "$log" >&2
        say_error "Bazel does not say where it builds; its words are above"
        return "$STATUS_SETUP"
    fi
    if [ "$program_given" -eq 0 ]; then
        set -- "$@" -- "$folder/conformance/testees/reference"
    fi
    rm -rf -- "$KMES_SCRATCH"
    # "Run again" in a report is then a line that can be typed.
    export KMES_CONFORMANCE_COMMAND=${KMES_CONFORMANCE_COMMAND:-tools/kmes conformance}
    # In the caller's folder, so that its relative paths hold; the runner's exit status is ours.
    exec "$folder/conformance/kmes-conformance" "$@"
}
