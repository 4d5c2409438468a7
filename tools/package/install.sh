#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs the library, the programs and their manual from a tree and its Bazel outputs. The list of
# the files is PREFIX/share/kmes/installed.txt. It is written first, so that an interrupted
# installation can be removed, too. Files of an earlier installation that this one does not have are
# removed: the new list would not name them.
#
#   install.sh TREE BUILT PREFIX DESTDIR
#
# DESTDIR is the root of the file system ("" is the real one).
set -euo pipefail
umask 022
export LC_ALL=C

readonly LIST=share/kmes/installed.txt

put_suite() {
    local help=$ROOT$PREFIX/share/man/man1/kmes-conformance.1
    put_program conformance/kmes-conformance
    mkdir -p "${help%/*}"
    bash "$TREE/tools/package/man_page.sh" "$BUILT/conformance/kmes-conformance" \
        "$TREE/tools/package/kmes-conformance.1.in" "$VERSION" "$RELEASE_DATE" >"$help"
    install -D -m 644 "$TREE/tools/package/kmes-conformance.bash-completion" \
        "$ROOT$PREFIX/share/bash-completion/completions/kmes-conformance"
}

# copy DESTDIR: copies everything in ROOT. An existing file is replaced and not overwritten: a
# running program keeps the old one.
copy() {
    local destination=$1 file
    (cd -- "$ROOT" && find . -mindepth 1 -type d -print0) |
        (cd -- "$destination" && xargs -0 -r mkdir -p --)
    while IFS= read -r file; do
        cp -P --remove-destination -- "$ROOT$file" "$destination$file"
    done <"$ROOT/list"
}

# earlier_files DESTDIR: prints what only the list of an earlier installation has. Anybody may have
# edited that list, so a path that is not plainly below the prefix is ignored.
earlier_files() {
    local list=$1$PREFIX/$LIST file
    [ -f "$list" ] || return 0
    while IFS= read -r file || [ -n "$file" ]; do
        case "$file" in
            *..*) ;;
            "$PREFIX"/*) printf '%s\n' "$file" ;;
        esac
    done <"$list" | { grep -vxF -f "$ROOT/list" || [ $? -eq 1 ]; }
}

# remove_earlier DESTDIR: removes the files and links of ROOT/earlier. Through a link, a folder may
# lie outside the prefix, or a path may be another name of a new file. Both are left alone.
remove_earlier() {
    local destination=$1 prefix file folder count=0
    prefix=$(realpath -- "$destination$PREFIX")
    while IFS= read -r file; do
        printf '%s\0' "$destination$file"
    done <"$ROOT/list" | xargs -0 stat -c %d:%i -- >"$ROOT/inodes"
    while IFS= read -r file; do
        file=$destination$file
        [ -f "$file" ] || [ -L "$file" ] || continue
        folder=$(realpath -- "${file%/*}")
        [[ $folder/ == "$prefix"/* ]] || continue
        ! grep -qxF "$(stat -c %d:%i -- "$file")" "$ROOT/inodes" || continue
        rm -f -- "$file"
        count=$((count + 1))
    done <"$ROOT/earlier"
    printf 'removed %s files of an earlier installation\n' "$count"
}

main() {
    if [ $# -ne 4 ]; then
        echo 'usage: install.sh TREE BUILT PREFIX DESTDIR' >&2
        exit 2
    fi
    TREE=$1 BUILT=$2 PREFIX=$3 LIBRARIES=lib
    VERSION=$(cat -- "$TREE/VERSION")
    RELEASE_DATE=$(release_date)
    ROOT=$(mktemp -d)
    trap 'rm -rf -- "$ROOT"' EXIT
    put_shared_library
    put_development
    put_kmesctl
    put_suite
    mkdir -p "$ROOT$PREFIX/share/kmes"
    # The first line of the list is its own path.
    printf '%s\n' "$PREFIX/$LIST" >"$ROOT/list"
    (cd -- "$ROOT" && find ".$PREFIX" ! -type d | sed 's/^\.//' | sort) >>"$ROOT/list"
    earlier_files "$4" >"$ROOT/earlier"
    # Until they are removed, the list has the earlier files as well.
    cat "$ROOT/list" "$ROOT/earlier" >"$ROOT$PREFIX/$LIST"
    mkdir -p -- "$4/"
    copy "$4/"
    if [ -s "$ROOT/earlier" ]; then
        remove_earlier "$4"
        cp --remove-destination -- "$ROOT/list" "$4$PREFIX/$LIST"
    fi
    printf 'installed %s files; %s lists them\n' "$(wc -l <"$4$PREFIX/$LIST")" "$4$PREFIX/$LIST"
}

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/files.sh"
main "$@"
