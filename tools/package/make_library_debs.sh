#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes the Debian packages libkmes0, libkmes-dev, python3-kmes, librust-kmes-dev, kmes-tools and
# kmes-dkms from a tree and what Bazel has built of it. The same files give the same bytes, wherever
# and whenever it runs.
#
#   make_library_debs.sh TREE BUILT FOLDER
set -euo pipefail
umask 022
export LC_ALL=C

# begin_part PACKAGE LICENSE: an empty root with the documents that each package has.
begin_part() {
    local documents=$SCRATCH/$1/usr/share/doc/$1
    ROOT=$SCRATCH/$1
    mkdir -p "$documents"
    sed "s/@LICENSE@/$2/" "$TREE/tools/package/library/copyright.in" >"$documents/copyright"
    write_changelog kmes "$documents"
    put_documents "$1" "$documents"
}

# Manual pages in Debian's form, links as well.
compress_manual() {
    local page
    find "$ROOT/usr/share/man" -type f -exec gzip -9n {} +
    find "$ROOT/usr/share/man" -type l | while IFS= read -r page; do
        ln -s "$(readlink "$page").gz" "$page.gz"
        rm "$page"
    done
}

# depends_on FILE: the packages of the libraries that the file needs, in the form of Depends. The C
# library is named by its newest symbol, the others as their own packages say.
depends_on() {
    local needed library name version
    needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    for library in $needed; do
        name=${library%%.so.*} version=${library#*.so.}
        case "$name" in
            libc | libm | ld-linux-x86-64)
                readelf --wide -V "$1" | grep -oE 'GLIBC_[0-9]+\.[0-9.]+' | sed 's/GLIBC_//' |
                    sort -Vu | tail -n 1 | sed 's/.*/libc6 (>= &)/'
                ;;
            *)
                awk -v name="$name" -v version="$version" '
                    $1 == name && $2 == version && !found++ { print }
                    END { exit !found }' /var/lib/dpkg/info/*:amd64.shlibs | cut -d' ' -f3- || {
                    echo "make_library_debs.sh: no package here has $library" >&2
                    return 1
                }
                ;;
        esac
    done | sort -u | paste -s -d, - | sed 's/,/, /g'
}

make_library() {
    local depends
    begin_part libkmes0 'GPL-2 or Expat'
    put_shared_library
    mkdir "$ROOT.control"
    echo "libkmes 0 libkmes0 (>= $VERSION)" >"$ROOT.control/shlibs"
    echo 'activate-noawait ldconfig' >"$ROOT.control/triggers"
    # Each symbol with the release that introduced it.
    {
        echo 'libkmes.so.0 libkmes0 #MINVER#'
        awk '/^    / && $2 != "-" { split($2, part, "_"); print part[2], $1 "@" $2, part[2]
            print part[2], $2 "@" $2, part[2] }' "$TREE/$API" | cut -d' ' -f2- | sort -u |
            sed 's/^/ /'
    } >"$ROOT.control/symbols"
    depends=$(depends_on "$ROOT/usr/$LIBRARIES/libkmes.so.0")
    finish "$ROOT" libkmes0 "Depends: $depends
Section: libs
Priority: optional
Multi-Arch: same
Description: library for consumers and emitters of KMES events
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 This library attaches to the rings, reads them, and emits events. The kernel,
 the kernel module or a producer in userspace may serve it."
}

make_development() {
    begin_part libkmes-dev 'GPL-2 or Expat'
    put_development
    compress_manual
    reword libkmes-dev "$TREE/bindings/cpp/README.md" \
        >"$ROOT/usr/share/doc/libkmes-dev/README-cpp.md"
    finish "$ROOT" libkmes-dev "Depends: libkmes0 (= $VERSION), libc6-dev
Suggests: cmake, kmes-conformance, kmes-tools, pkg-config
Section: libdevel
Priority: optional
Multi-Arch: same
Description: library for consumers and emitters of KMES events - development
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 This package has the headers for C and C++, the static library, the files for
 pkg-config and CMake, the manual in section 3, and documents."
}

# Debian's scripts let Python compile the modules, and remove the results.
make_python() {
    local script
    begin_part python3-kmes Expat
    put_python /usr/lib/python3/dist-packages
    reword python3-kmes "$TREE/bindings/python/README.md" \
        >"$ROOT/usr/share/doc/python3-kmes/README.md"
    mkdir "$ROOT.control"
    for script in postinst prerm; do
        cp "$TREE/tools/package/library/python3-kmes.$script.in" "$ROOT.control/$script"
    done
    finish "$ROOT" python3-kmes "Depends: python3 (>= 3.11), libkmes0 (>= $VERSION)
Suggests: kmes-tools, libkmes-dev
Section: python
Priority: optional
Description: KMES events in Python
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 This package has the module kmes, with events as an iterator, for loops and for
 asyncio. It uses the library of the package libkmes0." all
}

make_rust() {
    begin_part librust-kmes-dev Expat
    put_rust
    reword librust-kmes-dev "$TREE/bindings/rust/README.md" \
        >"$ROOT/usr/share/doc/librust-kmes-dev/README.md"
    finish "$ROOT" librust-kmes-dev "Depends: libkmes-dev (>= $VERSION)
Suggests: cargo, kmes-conformance, kmes-tools
Section: rust
Priority: optional
Description: KMES events in Rust - source of the crate
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 This package has the source of the crate kmes in /usr/share/cargo/registry. Its
 feature libkmes links with the library of the package libkmes0." all
}

make_tools() {
    local depends
    begin_part kmes-tools Expat
    put_kmesctl
    [ ! -d "$ROOT/usr/share/man" ] || compress_manual
    depends=$(depends_on "$ROOT/usr/bin/kmesctl")
    finish "$ROOT" kmes-tools "Depends: $depends
Suggests: babeltrace2, kmes-conformance, libkmes-dev
Section: utils
Priority: optional
Description: serve, emit and read KMES events
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 This package has kmesctl, the command for the kernel module and for a producer
 in userspace."
}

make_module() {
    local examples source
    begin_part kmes-dkms GPL-2
    examples=$ROOT/usr/share/doc/kmes-dkms/examples
    mkdir -p "$ROOT/usr/src" "$examples" "$ROOT.control"
    source=$(bash "$TREE/kmod/packaging/dkms_tree.sh" "$ROOT/usr/src" "$VERSION")
    # Debian has the texts in /usr/share/common-licenses.
    rm -r "$source/LICENSE" "$source/LICENSES"
    cp "$TREE"/kmod/packaging/modules-load.conf "$TREE"/kmod/packaging/udev/*.rules \
        "$TREE"/kmod/packaging/modprobe.d/*.conf "$examples/"
    sed "s/@VERSION@/$VERSION/" "$TREE/tools/package/library/kmes-dkms.postinst.in" \
        >"$ROOT.control/postinst"
    sed "s/@VERSION@/$VERSION/" "$TREE/tools/package/library/kmes-dkms.prerm.in" \
        >"$ROOT.control/prerm"
    finish "$ROOT" kmes-dkms "Depends: dkms
Suggests: kmes-tools, libkmes-dev
Section: kernel
Priority: optional
Description: KMES event rings in the kernel - source of the module for DKMS
 KMES has a ring buffer in shared memory for each CPU. A consumer reads events
 from it without a lock, and sleeps on a futex when it is empty.
 .
 DKMS builds the module of this package for each kernel whose headers are
 installed. The device /dev/kmes serves consumers and emitters." all
}

main() {
    if [ $# -ne 3 ]; then
        echo 'usage: make_library_debs.sh TREE BUILT FOLDER' >&2
        exit 2
    fi
    TREE=$1 BUILT=$2 OUTPUT=$3
    PREFIX=/usr LIBRARIES=lib/x86_64-linux-gnu
    begin_packages
    make_library
    make_development
    make_python
    make_rust
    make_tools
    make_module
}

# shellcheck source-path=SCRIPTDIR
source "$(dirname -- "${BASH_SOURCE[0]}")/deb.sh"
main "$@"
