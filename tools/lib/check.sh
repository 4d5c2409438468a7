# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes check` and `fmt`: the style rules (docs/style-rules.md describes them) for one tree. A
# rule is a function that prints `file:line: what is wrong, and what would be right`; any output
# fails the check. tools/check/check_test.sh plants each violation.

readonly CLANG_FORMAT=clang-format-19

fmt_command() {
    if [ $# -gt 0 ]; then
        bad_usage "fmt takes no arguments; it formats every C and C++ file of the tree"
        return
    fi
    setup_section required || return
    (cd -- "$KMES_ROOT" && list_files . | grep -E '\.(c|h|cc|cpp|hpp)$' | tr '\n' '\0' |
        xargs -0 -r "$CLANG_FORMAT" -i --)
}

check_command() {
    local root=$KMES_ROOT
    if [ "${1-}" = --root ] && [ $# -eq 2 ]; then
        root=$2
    elif [ $# -gt 0 ]; then
        bad_usage "check takes no arguments but --root FOLDER"
        return
    fi
    if [ ! -d "$root" ]; then
        bad_usage "check: '$root' is no folder; --root names the top of a tree to check"
        return
    fi
    setup_section required || return
    check_tree "$root"
}

# check_tree FOLDER: returns 0 and prints one line if there is no violation; otherwise returns 1 and
# prints a line for each.
check_tree() {
    make_scratch || return
    CHECK_ROOT=$1
    local found=$KMES_SCRATCH/violations
    if ! list_files "$CHECK_ROOT" >"$KMES_SCRATCH/files" || [ ! -s "$KMES_SCRATCH/files" ]; then
        say_error "check: the files of $CHECK_ROOT cannot be listed, or there are none"
        return "$STATUS_SETUP"
    fi
    # The code of all C and C++ files without comments and strings, once for all rules.
    (cd -- "$CHECK_ROOT" && files '\.(c|h|cc|cpp|hpp)$' |
        LC_ALL=C xargs -d '\n' -r awk -f "$KMES_ROOT/tools/check/code.awk") >"$KMES_SCRATCH/code"
    (
        cd -- "$CHECK_ROOT" || exit
        source "$KMES_ROOT/tools/check/rules.sh"
        all_rules
        ! can_tidy || tidy_sources <"$KMES_SCRATCH/files" | tidy_tree .
    ) >"$found" 2>&1
    if [ -s "$found" ]; then
        cat -- "$found"
        printf '%s violations of the style rules (docs/style-rules.md)\n' "$(wc -l <"$found")"
        return 1
    fi
    printf 'style: %s files, no violations\n' "$(wc -l <"$KMES_SCRATCH/files")"
    (cd -- "$CHECK_ROOT" && can_tidy) || printf '# without clang-tidy: %s\n' \
        "tools/kmes setup optional installs $CLANG_TIDY"
}

# Returns whether clang-tidy can check the tree of the current folder.
can_tidy() { [ -f .clang-tidy ] && command -v "$CLANG_TIDY" >/dev/null; }

# files PATTERN: prints the names of the tree's files that match.
files() {
    grep -E -- "$1" "$KMES_SCRATCH/files"
}
