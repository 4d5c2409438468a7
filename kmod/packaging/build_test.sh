#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the module, its test variant, its form B, and the sample module, for each kernel with
# installed headers. Uses gcc and clang with W=1, and sparse. A build that prints anything fails.
# Prints a line for each build. KMES_SHARE=N in the environment: makes one Nth of the builds, others
# each day (UTC).
#
#   build_test.sh [KERNEL...]      names in /lib/modules; default: all with headers
set -euo pipefail

REPOSITORY=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly REPOSITORY
FAILED=0
NUMBER=0
source "$REPOSITORY/tools/lib/share.sh"
SHARES=$(shares_or 1)
SHARE=$(share_of_today "$SHARES")
readonly SHARES SHARE

kernels() {
    local build
    for build in /lib/modules/*/build; do
        [ -e "$build/Makefile" ] && basename "$(dirname -- "$build")"
    done
}

# try NAME KERNEL ARGUMENTS...: builds in a copy, without type information (pahole).
try() {
    local name=$1 kernel=$2 tree
    shift 2
    NUMBER=$((NUMBER + 1))
    [ $((NUMBER % SHARES)) -eq "$SHARE" ] || return 0
    tree=$(mktemp -d "$SCRATCH/build.XXXXXX")
    mkdir "$tree/kmes"
    cp "$REPOSITORY"/kmes/*.[ch] "$tree/kmes/"
    cp -r "$REPOSITORY/kmod" "$tree/"
    if make -s -j"$(nproc)" -C "$tree/kmod" KDIR="/lib/modules/$kernel/build" \
        CONFIG_DEBUG_INFO_BTF_MODULES= KMES_SAMPLES=1 W=1 "$@" >"$SCRATCH/log" 2>&1 &&
        [ ! -s "$SCRATCH/log" ]; then
        echo "PASS $kernel $name"
    else
        echo "FAIL $kernel $name"
        cat -- "$SCRATCH/log" >&2
        FAILED=1
    fi
    rm -rf -- "$tree"
}

main() {
    local -a wanted=("$@")
    local kernel
    [ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(kernels)
    [ ${#wanted[@]} -gt 0 ] || { echo 'build_test.sh: no kernel headers here' >&2; exit 3; }
    SCRATCH=$(mktemp -d)
    trap 'rm -rf -- "$SCRATCH"' EXIT
    for kernel in "${wanted[@]}"; do
        try gcc "$kernel"
        try gcc-form-b "$kernel" KMES_LAYOUT=2
        # sparse runs before gcc, so this is also the test build by gcc.
        try sparse "$kernel" KMES_TEST=1 C=2 CF=-Wsparse-error
        # Debian has lld in a separate package; the ld of binutils works as well.
        try clang "$kernel" KMES_TEST=1 LLVM=-19 LD=ld
    done
    return $FAILED
}

main "$@"
