#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs the library, the programs and their manual from a tree and its Bazel outputs. The list of
# the files is PREFIX/share/kmes/installed.txt. It is written first, so that an interrupted
# installation can be removed, too.
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
    done <"$ROOT$PREFIX/$LIST"
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
    mv "$ROOT/list" "$ROOT$PREFIX/$LIST"
    mkdir -p -- "$4/"
    copy "$4/"
    printf 'installed %s files; %s lists them\n' "$(wc -l <"$4$PREFIX/$LIST")" "$4$PREFIX/$LIST"
}

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/files.sh"
main "$@"
