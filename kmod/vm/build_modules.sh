#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the modules for one kernel in a copy of the sources. The name of the output folder is a sum
# of the sources, so an unchanged module is built once. Prints that folder. It contains kmes.ko (the
# test build), form-b/kmes.ko and form-d/kmes.ko (the same in these forms, docs/layouts.md),
# production/kmes.ko, and further modules that tests load. Needs no root.
#
#   build_modules.sh REPOSITORY KERNEL_BUILD CACHE_FOLDER
set -uo pipefail

# Forms, with their KMES_LAYOUT. The module of form C has the bytes of form D.
readonly FORMS='b=2 d=4'
# Folders with further modules.
readonly OTHERS='load bugs samples'

die() {
    printf 'build_modules.sh: %s\n' "$*" >&2
    exit 3
}

sources() {
    (cd -- "$1" && find kmes kmod -type f \( -name '*.[ch]' -o -name 'Kbuild' \) \
        ! -path 'kmes/user/*' ! -path '*/tests/*' | LC_ALL=C sort)
}

# make_modules KERNEL_BUILD FOLDER ARGUMENTS...: builds without type information. No test uses it,
# and Debian's 6.12 needs pahole for it.
make_modules() {
    local kernel=$1 folder=$2
    shift 2
    make -s -C "$kernel" M="$folder" CONFIG_DEBUG_INFO_BTF_MODULES= -j"$(nproc)" "$@" modules
}

build() {
    local root=$1 kernel=$2 part=$3 other form
    (cd -- "$root" && sources . | cpio -pdm --quiet "$part/test") || return
    cp -r "$part/test" "$part/production-source" || return
    for form in $FORMS; do
        cp -r "$part/test" "$part/form-${form%=*}-source" || return
    done
    mkdir "$part/out" "$part/out/production" || return
    make_modules "$kernel" "$part/test/kmod" KMES_TEST=1 || return
    cp "$part/test/kmod/kmes.ko" "$part/out/" || return
    make_modules "$kernel" "$part/production-source/kmod" || return
    cp "$part/production-source/kmod/kmes.ko" "$part/out/production/" || return
    for form in $FORMS; do
        make_modules "$kernel" "$part/form-${form%=*}-source/kmod" KMES_TEST=1 \
            "KMES_LAYOUT=${form#*=}" || return
        mkdir "$part/out/form-${form%=*}" || return
        cp "$part/form-${form%=*}-source/kmod/kmes.ko" "$part/out/form-${form%=*}/" || return
    done
    for other in $OTHERS; do
        [ -e "$part/test/kmod/$other/Kbuild" ] || continue
        make_modules "$kernel" "$part/test/kmod/$other" \
            KBUILD_EXTRA_SYMBOLS="$part/test/kmod/Module.symvers" || return
        cp "$part/test/kmod/$other"/*.ko "$part/out/" || return
    done
}

main() {
    [ $# -eq 3 ] || die "usage: build_modules.sh REPOSITORY KERNEL_BUILD CACHE_FOLDER"
    local root=$1 kernel=$2 cache=$3 key out part
    key=$({ printf '%s\n' "${kernel##*/}" && cat -- "$0" && gcc --version &&
        sources "$root" | (cd -- "$root" && xargs sha256sum); } | sha256sum | cut -c1-16)
    out=$cache/modules-$key
    if [ ! -d "$out" ]; then
        mkdir -p "$cache" || die "$cache cannot be written"
        find "$cache" -maxdepth 1 -name 'modules-*' -mtime +7 -exec rm -rf -- {} + 2>/dev/null
        part=$(mktemp -d "$cache/part.XXXXXXXX") || die "$cache cannot be written"
        if ! build "$root" "$kernel" "$part" >"$part/log" 2>&1; then
            cat -- "$part/log" >&2
            rm -rf -- "$part"
            die "the modules could not be built for ${kernel##*/}; the log is above"
        fi
        # Show the messages of the compiler, not only the log.
        [ ! -s "$part/log" ] || cat -- "$part/log" >&2
        mv -T "$part/out" "$out" 2>/dev/null
        rm -rf -- "$part"
    fi
    printf '%s\n' "$out"
}

main "$@"
