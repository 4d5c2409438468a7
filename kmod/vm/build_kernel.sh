#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds a kernel from Debian's source package with our options, once: the name of its folder is a
# sum of the inputs. Prints that folder, and on the standard error the seconds that it took. Needs
# no root.
#
#   build_kernel.sh CACHE_FOLDER FRAGMENT...     later fragments take precedence
set -uo pipefail

readonly PACKAGE=linux-source-6.1
readonly TARBALL=/usr/src/$PACKAGE.tar.xz

die() {
    printf 'build_kernel.sh: %s\n' "$*" >&2
    exit 3
}

# options_missing CONFIG FRAGMENT...: prints the options of the fragments that the kernel's own
# rules have removed.
options_missing() {
    local config=$1 option name
    shift
    sed -nE 's/^(CONFIG_[^=]+=.*)/\1/p; s/^(# CONFIG_.* is not set)$/\1/p' "$@" |
        while IFS= read -r option; do
            case "$option" in
                '# '*) 
                    name=${option#'# '}
                    ! grep -q "^${name%% *}=" "$config"
                    ;;
                *) grep -qxF -- "$option" "$config" ;;
            esac || printf '%s\n' "$option"
        done
}

# unpack_source FOLDER: status 0 means that the kernel's source is there. The folder is renamed at
# the end, so an interrupted unpacking is never taken for a source.
unpack_source() {
    [ -d "$1" ] && return 0
    [ -r "$TARBALL" ] || die "$TARBALL is missing; the package $PACKAGE has it"
    local part=$1.part.$$
    mkdir -p "$part" && tar -xf "$TARBALL" -C "$part" --strip-components=1 &&
        mv -T "$part" "$1" 2>/dev/null
    rm -rf "$part"
    [ -d "$1" ]
}

build() {
    local source=$1 out=$2 log=$2/build.log missing
    shift 2
    make -s -C "$source" O="$out" tinyconfig >"$log" 2>&1 &&
        "$source/scripts/kconfig/merge_config.sh" -m -O "$out" "$out/.config" "$@" >>"$log" 2>&1 &&
        make -s -C "$source" O="$out" olddefconfig >>"$log" 2>&1 || return 1
    missing=$(options_missing "$out/.config" "$@")
    if [ -n "$missing" ]; then
        printf 'the kernel has not taken these options:\n%s\n' "$missing" >>"$log"
        return 1
    fi
    nice -n 10 make -s -C "$source" O="$out" -j"$(nproc)" bzImage modules >>"$log" 2>&1
}

main() {
    [ $# -ge 2 ] || die "usage: build_kernel.sh CACHE_FOLDER FRAGMENT..."
    local cache=$1 version key source out start=$SECONDS
    shift
    version=$(dpkg-query -W -f='${Version}' "$PACKAGE" 2>/dev/null) || die "no package $PACKAGE"
    key=$({ printf '%s\n' "$version" && gcc --version && grep -hE '^(# )?CONFIG_' -- "$@"; } |
        sha256sum | cut -c1-16)
    source=$cache/linux-source-$version
    out=$cache/kernel-$(basename -- "${!#}" .config)-$key
    mkdir -p "$cache" || die "$cache cannot be written"
    exec 9>"$out.lock"
    flock 9 || die "no lock on $out.lock"
    if [ ! -e "$out/built" ]; then
        printf 'tools/kmes: building the kernel %s (minutes, once)\n' "${out##*/}" >&2
        unpack_source "$source" || die "the kernel's source could not be unpacked"
        rm -rf "$out"
        mkdir "$out" || die "$out cannot be written"
        if ! build "$source" "$out" "$@"; then
            tail -n 30 -- "$out/build.log" >&2
            die "the kernel could not be built; the end of its log is above"
        fi
        printf 'built in %s s\n' "$((SECONDS - start))" | tee "$out/built" >&2
    fi
    printf '%s\n' "$out"
}

main "$@"
