#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What `tools/kmes install` installs: the list of the files, the manual compared with the headers,
# and programs that find the library by pkg-config and CMake, if those are installed.
set -uo pipefail

readonly PREFIX=/opt/kmes
readonly WORK=$TEST_TMPDIR/work
readonly ROOT=$WORK/root
readonly INSTALLED=$ROOT$PREFIX
readonly LIST=$INSTALLED/share/kmes/installed.txt
readonly API=kmes/user/libkmes_api.txt
VERSION=$(cat VERSION)
readonly VERSION
failures=0

fail() {
    printf 'FAIL: %s\n' "$*"
    failures=$((failures + 1))
}

install_files() { tools/package/install.sh . "$PWD" "$PREFIX" "$1" >"$WORK/install.log" 2>&1; }

# lists_all FOLDER: the list has exactly the files that are installed there.
lists_all() {
    (cd "$1" && find . ! -type d | sed 's/^\.//' | sort) >"$WORK/files"
    sort "$1$PREFIX/share/kmes/installed.txt" | diff - "$WORK/files" ||
        fail "the list has '<', installed is '>'"
}

test_install() {
    install_files "$ROOT" || fail "install: $(cat "$WORK/install.log")"
    lists_all "$ROOT"
    [ -z "$(find -L "$ROOT" -type l)" ] || fail "links to nowhere: $(find -L "$ROOT" -type l)"
    [ -z "$(find "$ROOT" -type f ! -path '*/bin/*' -perm /111)" ] || fail "executable, no program"
    grep -rlE '@[A-Z_]+@' "$ROOT" --include='*.3' --include='*.1' --include='*.pc' \
        --include='*.cmake' && fail "places in the files above were not filled"
}

# A second installation, while something uses the library, overwrites no existing file.
test_again() {
    local library=$INSTALLED/lib/libkmes.so.$VERSION before
    before=$(stat -c %i "$library")
    exec 9<"$library"
    install_files "$ROOT" || fail "install again: $(cat "$WORK/install.log")"
    [ "$(stat -c %i "$library")" != "$before" ] || fail "the library was written over"
    exec 9<&-
    : >"$WORK/occupied"
    install_files "$WORK/occupied" && fail "installed into a file"
    grep -qF "$WORK/occupied" "$WORK/install.log" || fail "$(cat "$WORK/install.log")"
}

# After an installation of an older release, nothing of it is left. A line that was written into its
# list removes nothing outside the prefix, no folder, and no new file by another name.
test_newer() {
    local root=$WORK/newer older=$WORK/older name library=$PREFIX/lib/libkmes.so
    mkdir "$older"
    ln -s "$PWD"/* "$older/" && rm "$older/VERSION" && echo 0.1 >"$older/VERSION"
    tools/package/install.sh "$older" "$PWD" "$PREFIX" "$root" >"$WORK/install.log" 2>&1 ||
        fail "install 0.1: $(cat "$WORK/install.log")"
    [ -f "$root$library.0.1" ] || fail "0.1 is not installed"
    mkdir -p "$root/outside" "$root$PREFIX/folder"
    touch "$root$PREFIX-2" "$root/outside/file" "$root$PREFIX/not-listed"
    ln -s nowhere "$root$PREFIX/link"
    ln -s ../../outside "$root$PREFIX/out"
    ln -s lib "$root$PREFIX/lib64"
    printf '%s\n' '' "$PREFIX-2" /outside/file "$PREFIX/../../outside/file" "$PREFIX/out/file" \
        "$PREFIX/lib/../not-listed" "$PREFIX/folder" "$PREFIX//lib/libkmes.a" \
        "$PREFIX/lib64/libkmes.so" "$PREFIX/link" "$PREFIX/none/file" \
        >>"$root$PREFIX/share/kmes/installed.txt"
    install_files "$root" || fail "install over 0.1: $(cat "$WORK/install.log")"
    grep -qx 'removed 2 files of an earlier installation' "$WORK/install.log" ||
        fail "$(cat "$WORK/install.log")"
    [ ! -e "$root$library.0.1" ] || fail "the library of 0.1 is left"
    [ ! -L "$root$PREFIX/link" ] || fail "a link of the older list is left"
    for name in "$PREFIX-2" /outside/file "$PREFIX/not-listed" "$PREFIX/folder" "$PREFIX/out"; do
        [ -e "$root$name" ] || fail "$name is removed"
    done
    (cd "$root$PREFIX" && rm -r "../${PREFIX##*/}-2" ../../outside not-listed folder out lib64)
    lists_all "$root"
}

# plain FILE: roff as text, as the pages of this tree have it.
plain() { sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\&//g; s/\\\\e/\\\\/g" "$1"; }

# part PAGE FROM TO: the lines after FROM, up to TO.
part() { plain "$1" | awk -v from="$2" -v to="$3" '$0 == to { on = 0 } on; $0 == from { on = 1 }'; }

test_manual() {
    local page name file
    for file in kmes/user/man/*.3; do
        page=${file##*/} page=${page%.3}
        # Names that the page explains, and those of the table.
        part "$file" '.SH NAME' '.SH LIBRARY' | sed 's/ - .*//' | tr -d ' ' | tr ',' '\n' |
            grep -vxF "$page" | sort >"$WORK/named"
        awk -v page="$page" '/^    / && $3 == page && $1 != page { print $1 }' "$API" | sort |
            diff "$WORK/named" - || fail "$page: NAME has '<', $API has '>'"
        # The prototypes of the synopsis are those of the headers.
        { part "$file" .nf .fi && echo 'int nothing;'; } |
            gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$INSTALLED/include" -x c - ||
            fail "$page: another prototype than in the header"
        # shellcheck disable=SC2013  # words
        for name in $(sed -n 's/^\.BR \([a-z_]*\) (3).*/\1/p' "$file"); do
            [ -e "$INSTALLED/share/man/man3/$name.3" ] || fail "$page: there is no $name(3)"
        done
        command -v groff >/dev/null || continue
        [ -z "$(groff -man -Tascii -ww -z "$file" 2>&1)" ] || fail "$page: groff warns"
    done
    for name in $(awk '/^    / && $2 != "-" { print $1 }' "$API"); do
        page=$INSTALLED/share/man/man3/$name.3
        [ -e "$page" ] || { fail "$name has no page" && continue; }
        part "$page" .nf .fi | grep -q "\b$name(" || fail "$name is not in the synopsis"
    done
}

# fields PAGE STRUCT: the type and the name of each field that the page describes, with a tab.
fields() {
    plain "$1" | awk -v heading=".SS struct $2" '
        /^\.S[SH]/ { on = $0 == heading }
        on && is_tag { print }
        { is_tag = $0 == ".TP" }' | sed -nE 's/^\\fB(.*)\\fR \\fI(.*)\\fR$/\1\t\2/p'
}

# The manual has each field of each structure that a program fills or reads, with its type.
test_structures() {
    local name page type field
    # Structures of the protocol, and those that only the library uses.
    local other=' kmes_attach_functions kmes_bulk kmes_event_header kmes_event_input
        kmes_event_words kmes_fields kmes_mapping kmes_metadata_v1 kmes_platform kmes_reader '
    for name in $(awk '/^layout / { print $2 }' "$API"); do
        [[ ${other//$'\n'/ } != *" $name "* ]] || continue
        page=$(grep -lx ".SS struct $name" kmes/user/man/*.3) ||
            { fail "no page has struct $name"; continue; }
        fields "$page" "$name" >"$WORK/fields"
        awk -v name="$name" '$1 == "layout" && $2 == name {
            for (i = 4; i <= NF; i++) { sub("@.*", "", $i); print $i } }' "$API" |
            diff - <(cut -f2 "$WORK/fields") ||
            fail "struct $name: '<' is not in $page, '>' is no field"
        {
            printf '#include <%s>\n' $(sed -n 's/^header //p' "$API")
            while IFS=$'\t' read -r type field; do
                printf '_Static_assert(_Generic(((struct %s*)0)->%s, %s: 1, default: 0), "%s");\n' \
                    "$name" "$field" "$type" "$field"
            done <"$WORK/fields"
        } | gcc -std=c11 -Wall -Werror -fsyntax-only -I"$INSTALLED/include" -x c - ||
            fail "struct $name: another type than in the header"
    done
}

# Each page says which threads may call its functions.
test_threads() {
    local file
    for file in kmes/user/man/kmes_*.3; do
        [ -n "$(part "$file" '.SH THREADS' '.SH RETURN VALUE')" ] ||
            fail "${file##*/}: no section THREADS before RETURN VALUE"
    done
}

# pkg_config OPTION...: uses only the installed file.
pkg_config() {
    PKG_CONFIG_LIBDIR=$INSTALLED/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT pkg-config "$@" kmes
}

# answers WHAT PROGRAM: no producer serves, and the program says so.
answers() {
    local output
    output=$(KMES_SOCKET=@kmes-nobody-$$ "$2" 2>&1)
    [ "$output" = 'kmes_emit: Function not implemented' ] || fail "$1: printed '$output'"
}

# Each example of the manual is a program.
test_examples() {
    local file page flags=(-std=c11 -Wall -Wextra -Werror -pedantic)
    for file in kmes/user/man/*.3; do
        page=${file##*/}
        part "$file" .EX .EE >"$WORK/${page%.3}.c"
        gcc "${flags[@]}" -o "$WORK/${page%.3}" "$WORK/${page%.3}.c" -I"$INSTALLED/include" \
            -L"$INSTALLED/lib" -lkmes -Wl,-rpath,"$INSTALLED/lib" || fail "$page: the example"
    done
    answers shared "$WORK/kmes_emit"
    readelf -d "$WORK/kmes_emit" | grep -qF '[libkmes.so.0]' || fail "linked with another library"
}

test_pkg_config() {
    command -v pkg-config >/dev/null || { echo 'SKIPPED: no pkg-config' && return; }
    [ "$(pkg_config --modversion)" = "$VERSION" ] || fail "pkg-config: another version"
    # shellcheck disable=SC2046  # several flags
    gcc -o "$WORK/by_pkg_config" "$WORK/kmes_emit.c" $(pkg_config --cflags --libs) \
        -Wl,-rpath,"$INSTALLED/lib" || fail "pkg-config"
    answers pkg-config "$WORK/by_pkg_config"
    # shellcheck disable=SC2046
    gcc -static -o "$WORK/by_static" "$WORK/kmes_emit.c" $(pkg_config --static --cflags --libs) ||
        fail "pkg-config --static"
    answers 'pkg-config --static' "$WORK/by_static"
}

# cmake_project FOLDER VERSION: a project that requires this version of the package.
cmake_project() {
    mkdir -p "$1"
    cat >"$1/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(kmes $2 REQUIRED)
add_executable(by_cmake $WORK/kmes_emit.c)
target_link_libraries(by_cmake kmes::kmes)
add_executable(by_cmake_static $WORK/kmes_emit.c)
target_link_libraries(by_cmake_static kmes::static)
TEXT
    cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$INSTALLED" >"$1/log" 2>&1
}

test_cmake() {
    local project=$WORK/cmake
    command -v cmake >/dev/null || { echo 'SKIPPED: no cmake' && return; }
    if cmake_project "$project" 0.1; then
        cmake --build "$project/build" >"$project/log" 2>&1 || fail "cmake: $(cat "$project/log")"
        answers CMake "$project/build/by_cmake"
        answers 'CMake, static' "$project/build/by_cmake_static"
        readelf -d "$project/build/by_cmake_static" | grep -qF libkmes && fail "static is shared"
    else
        fail "cmake: $(cat "$project/log")"
    fi
    cmake_project "$WORK/newer" 99.0 && fail "CMake accepts a package that is older than asked for"
    grep -qF "version: $VERSION" "$WORK/newer/log" || fail "newer: $(cat "$WORK/newer/log")"
}

test_programs() {
    "$INSTALLED/bin/kmes-conformance" --version | grep -q "^kmes-conformance $VERSION" ||
        fail "kmes-conformance --version"
    "$INSTALLED/bin/kmesctl" --help | grep -q '^Usage: kmesctl' || fail "kmesctl --help"
    grep -q '^\.SH OPTIONS' "$INSTALLED/share/man/man1/kmes-conformance.1" || fail "no manual"
}

# removal WORD: prints the command of --help that begins with this word.
removal() {
    # shellcheck disable=SC2016  # the inner shell expands it
    LIBRARY_TARGETS='' bash -c 'source tools/lib/install.sh && install_usage' |
        sed -n "/^  $1 /{s|DESTDIR|$ROOT|;s|PREFIX|$PREFIX|;p}"
}

# The first command of --help is for an installation without --destdir: it only prints here.
test_remove() {
    bash -c "$(removal xargs | sed "s|rm -f < |-n 1 echo <$ROOT|")" | diff "$LIST" - ||
        fail "the command of --help reads another list"
    bash -c "$(removal cd)" || fail "the command of --help for --destdir"
    [ -z "$(find "$ROOT" ! -type d)" ] || fail "left behind: $(find "$ROOT" ! -type d)"
}

mkdir -p "$WORK"
test_install
test_again
test_newer
test_manual
test_structures
test_threads
test_examples
test_pkg_config
test_cmake
test_programs
test_remove
echo "$failures failures"
[ "$failures" -eq 0 ]
