# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes mutants`: builds the programs that run with mutants, and passes its arguments to
# props/mutants/run_mutants.py.

# run_mutants.py has the same list of tests.
readonly MUTANT_TARGETS=(
    //props/mutants:driver
    //kmes/tests:all
    //fuzz:batch_corpus_test
    //fuzz:header_corpus_test
    //fuzz:hostile_corpus_test
    //fuzz:reader_corpus_test
    //fuzz:resize_corpus_test
    //fuzz:schedule_corpus_test
    //fuzz:script_corpus_test
)

mutants_command() {
    local argument program=$KMES_ROOT/props/mutants/run_mutants.py
    for argument in "$@"; do
        case "$argument" in
            --help | -h) exec python3 -B "$program" --help ;;
        esac
    done
    build_targets "what mutants are run against" "${MUTANT_TARGETS[@]}" || return
    rm -rf -- "$KMES_SCRATCH"
    exec python3 -B "$program" --bin "$BAZEL_BIN" "$@"
}
