# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes tidy`: runs clang-tidy with the checks of .clang-tidy, and prints one line for each
# finding. `check` runs it on the core if clang-tidy-19 is installed. A passed file is not checked
# again until the file, a header, the checks or clang-tidy change. Needs no compilation database,
# because each include is relative to the top of the tree.

readonly CLANG_TIDY=clang-tidy-19
# The files for `check`, and for `tidy` without a file: the released code.
readonly TIDY_SOURCES='^kmes/([^/]+|user/.*)\.(c|cc)$'
readonly TIDY_TESTS='_test\.(c|cc)$'

tidy_command() {
    local file
    for file in "$@"; do
        case "$file" in
            -*) bad_usage "tidy: unknown option '$file'; it takes C and C++ files only" || return ;;
            *.c | *.cc) [ -f "$file" ] || bad_usage "tidy: '$file' is no file" || return ;;
            *) bad_usage "tidy: '$file' is no C or C++ source (.c, .cc)" || return ;;
        esac
    done
    if ! command -v "$CLANG_TIDY" >/dev/null; then
        say_error "tidy: $CLANG_TIDY is missing; as root: apt-get install $CLANG_TIDY"
        return "$STATUS_SETUP"
    fi
    make_scratch || return
    local found=$KMES_SCRATCH/tidy.found count
    if [ $# -gt 0 ]; then
        realpath --relative-to="$KMES_ROOT" -- "$@"
    else
        list_files "$KMES_ROOT" | tidy_sources
    fi >"$KMES_SCRATCH/tidy.files"
    tidy_tree "$KMES_ROOT" <"$KMES_SCRATCH/tidy.files" >"$found" || return "$STATUS_SETUP"
    cat -- "$found"
    count=$(wc -l <"$KMES_SCRATCH/tidy.files")
    if [ -s "$found" ]; then
        printf '%s findings in %s files\n' "$(wc -l <"$found")" "$count"
        return 1
    fi
    printf 'tidy: %s files, no findings\n' "$count"
}

tidy_sources() { grep -E -- "$TIDY_SOURCES" | grep -vE -- "$TIDY_TESTS"; }

# tidy_tree ROOT: prints a line for each finding in the sources of the standard input, which are
# relative to ROOT.
tidy_tree() {
    local cache common
    cache=$(cache_folder) && mkdir -p -- "$cache/tidy" && cache=$cache/tidy ||
        cache=$(mktemp -d "$KMES_SCRATCH/tidy.XXXXXX") || return
    find "$cache" -type f -mtime +14 -delete 2>/dev/null
    common=$(cd -- "$1" && {
        "$CLANG_TIDY" --version
        cat -- .clang-tidy "$KMES_ROOT/tools/lib/tidy.sh"
        list_files . | grep -E '\.h$' | tr '\n' '\0' | xargs -0 -r sha256sum --
    } | sha256sum) || return
    export -f tidy_file
    export CLANG_TIDY
    (cd -- "$1" && tr '\n' '\0' | TIDY_CACHE=$cache TIDY_COMMON=$common \
        xargs -0 -r -n 1 -P "$(nproc)" bash -c 'tidy_file "$1"' tidy_file) | sort -t: -k1,1 -k2,2n
}

# tidy_file FILE: prints its findings in one write. If there are none, makes a mark in TIDY_CACHE.
tidy_file() {
    local key findings standard=c++20 status=0
    key=$({ printf '%s %s\n' "$TIDY_COMMON" "$1" && cat -- "$1"; } | sha256sum) || return
    [ ! -e "$TIDY_CACHE/${key%% *}" ] || return 0
    [[ $1 != *.c ]] || standard=gnu11
    findings=$("$CLANG_TIDY" --quiet "$1" -- "-std=$standard" -iquote . -Ikmod/uapi 2>&1) ||
        status=$?
    findings=$(printf '%s\n' "$findings" |
        sed -nE "s|^$PWD/||; s/^([^: ]+:[0-9]+):[0-9]+: (warning|error): /\1: /p")
    if [ -n "$findings" ]; then
        printf '%s\n' "$findings"
    elif [ "$status" -ne 0 ]; then
        printf '%s:1: clang-tidy ended with status %s and printed nothing\n' "$1" "$status"
    else
        : >"$TIDY_CACHE/${key%% *}"
    fi
}
