#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes the Debian package of the suite from the runner and the files of a tree. The same runner and
# the same tree give the same bytes, wherever and whenever it runs.
#
#   make_deb.sh TREE RUNNER FOLDER
#
# TREE     the top of the tree
# RUNNER   the executable, with its symbols
# FOLDER   gets kmes-conformance (stripped), kmes-conformance_VERSION_amd64.deb, and
#          kmes-conformance-dbgsym_VERSION_amd64.deb (the symbols, for gdb)
set -euo pipefail
umask 022
export LC_ALL=C

readonly NAME=kmes-conformance
readonly EXAMPLES=(c/consumer.c cpp/consumer.cc go/consumer.go python/consumer.py rust/consumer.rs
    form_b/consumer.diff form_c/consumer.diff form_d/consumer.diff form_d/rust.diff)
# What is linked into the runner, by its Debian packages.
readonly LINKED=(libc6-dev libstdc++-12-dev libdw-dev zlib1g-dev liblzma-dev libbz2-dev
    libzydis-dev libfmt-dev libcli11-dev nlohmann-json3-dev)

# The installed source packages of LINKED, in the form of Built-Using.
built_using() {
    dpkg-query -W -f='${source:Package} (= ${source:Version})\n' "${LINKED[@]}" 2>/dev/null |
        sort -u | paste -s -d, - | sed 's/,/, /g'
}

install_documents() {
    local documents=$1 package
    mkdir "$documents/licenses"
    put_documents "$NAME" "$documents"
    cp "$TREE/tools/package/README.md" "$documents/README.md"
    cp "$TREE/tools/package/copyright" "$documents/copyright"
    cp "$TREE/conformance/report/report.schema.json" "$documents/report.schema.json"
    mkdir "$documents/ci"
    cp "$TREE/conformance/ci/run.sh" "$documents/ci/run.sh"
    for package in "${LINKED[@]}"; do
        if [ -e "/usr/share/doc/$package/copyright" ]; then
            cp "/usr/share/doc/$package/copyright" "$documents/licenses/$package"
        else
            echo "make_deb.sh: no /usr/share/doc/$package/copyright; install $package" >&2
            return 1
        fi
    done
    write_changelog "$NAME" "$documents"
}

install_examples() {
    local examples=$1 example
    mkdir -p "$examples/kmes/user"
    for example in "${EXAMPLES[@]}"; do
        mkdir -p "$examples/${example%/*}"
        cp "$TREE/conformance/testees/$example" "$examples/$example"
    done
    cp "$TREE"/kmes/*.[ch] "$examples/kmes/"
    cp "$TREE"/kmes/user/order_*.h "$TREE/kmes/user/platform_user.h" "$examples/kmes/user/"
    cp "$TREE/tools/package/examples.mk" "$examples/Makefile"
}

make_main() {
    local root=$SCRATCH/main documents
    documents=$root/usr/share/doc/$NAME
    mkdir -p "$root"/usr/{bin,share/{man/man1,bash-completion/completions,lintian/overrides}} \
        "$documents"
    # Not from OUTPUT, where another run may have put its own meanwhile.
    install -m 755 "$SCRATCH/$NAME" "$root/usr/bin/$NAME"
    bash "$TREE/tools/package/man_page.sh" "$RUNNER" "$TREE/tools/package/$NAME.1.in" "$VERSION" \
        "$RELEASE_DATE" | gzip -9n >"$root/usr/share/man/man1/$NAME.1.gz"
    cp "$TREE/tools/package/$NAME.bash-completion" \
        "$root/usr/share/bash-completion/completions/$NAME"
    cp "$TREE/tools/package/lintian-overrides" "$root/usr/share/lintian/overrides/$NAME"
    install_documents "$documents"
    install_examples "$documents/examples"
    finish "$root" "$NAME" "$(sed "s/@BUILT_USING@/$(built_using)/" \
        "$TREE/tools/package/control.in")"
}

# Where gdb looks for symbols: by the build id.
make_symbols() {
    local root=$SCRATCH/symbols id file
    id=$(readelf -n "$RUNNER" | sed -n 's/^ *Build ID: //p')
    file=$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    mkdir -p "${file%/*}" "$root/usr/share/doc"
    objcopy --only-keep-debug --compress-debug-sections "$RUNNER" "$file"
    ln -s "$NAME" "$root/usr/share/doc/$NAME-dbgsym"
    finish "$root" "$NAME-dbgsym" "Depends: $NAME (= $VERSION)
Section: debug
Priority: optional
Auto-Built-Package: debug-symbols
Build-Ids: $id
Description: debug symbols for $NAME"
}

main() {
    if [ $# -ne 3 ]; then
        echo 'usage: make_deb.sh TREE RUNNER FOLDER' >&2
        exit 2
    fi
    TREE=$1 RUNNER=$2 OUTPUT=$3
    begin_packages
    strip --strip-all --remove-section=.comment -o "$SCRATCH/$NAME" "$RUNNER"
    install -m 755 "$SCRATCH/$NAME" "$OUTPUT/$NAME"
    make_main
    make_symbols
}

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/deb.sh"
main "$@"
