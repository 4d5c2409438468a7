# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes ide`: compile_commands.json at the top of the tree, which clangd and clang-tidy read.
# The commands are Bazel's for the default configuration; nothing is built.

ide_command() {
    if [ $# -gt 0 ]; then
        bad_usage "ide takes no arguments; it writes compile_commands.json at the top of the tree"
        return
    fi
    setup_section required && prepare_bazel && make_scratch || return
    write_compile_commands
}

write_compile_commands() {
    local actions=$KMES_SCRATCH/actions.json log=$KMES_SCRATCH/aquery.log
    if ! run_bazel aquery --output=jsonproto --include_artifacts=false \
        'mnemonic("CppCompile", //...)' >"$actions" 2>"$log"; then
        cat -- "$log" >&2
        say_error "ide: bazel aquery failed; its output is above"
        return "$STATUS_SETUP"
    fi
    if ! python3 -B "$KMES_ROOT/tools/ide/compile_commands.py" "$KMES_ROOT" \
        "$KMES_ROOT/compile_commands.json" <"$actions"; then
        say_error "ide: no compile_commands.json was written; the reason is above"
        return "$STATUS_SETUP"
    fi
}
