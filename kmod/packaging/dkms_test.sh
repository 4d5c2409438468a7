#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that DKMS adds, builds, installs and removes the module for each kernel with installed
# headers. Uses temporary trees, so the machine does not change. Prints a line for each step.
#
#   dkms_test.sh [KERNEL...]      names in /lib/modules; default: all with headers
set -euo pipefail

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
VERSION=$(cat -- "$HERE/../../VERSION")
readonly HERE VERSION
FAILED=0

kernels() {
    local build
    for build in /lib/modules/*/build; do
        [ -e "$build/Makefile" ] && basename "$(dirname -- "$build")"
    done
}

# step NAME COMMAND...
step() {
    local name=$1
    shift
    if "$@" >"$SCRATCH/log" 2>&1; then
        echo "PASS $name"
    else
        echo "FAIL $name"
        cat -- "$SCRATCH/log" "$SCRATCH"/dkms/kmes/"$VERSION"/build/make.log 2>/dev/null >&2 || true
        FAILED=1
    fi
}

in_scratch() {
    local verb=$1
    shift
    dkms "$verb" -m kmes -v "$VERSION" --dkmstree "$SCRATCH/dkms" \
        --sourcetree "$SCRATCH/source" "$@"
}

is_installed() {
    find "$SCRATCH/root/lib/modules/$1" -name 'kmes.ko*' | grep -q .
}

is_gone() {
    ! is_installed "$1"
}

# Gives DKMS a temporary kernel tree, which determines the folder of the installation.
try_kernel() {
    local kernel=$1 tree=$SCRATCH/root/lib/modules
    mkdir -p "$tree/$kernel"
    ln -sfn "$(readlink -f "/lib/modules/$kernel/build")" "$tree/$kernel/build"
    step "$kernel build" in_scratch build -k "$kernel" --kernelsourcedir "$tree/$kernel/build"
    step "$kernel install" in_scratch install -k "$kernel" --installtree "$tree" --no-depmod
    step "$kernel is installed" is_installed "$kernel"
    step "$kernel uninstall" in_scratch uninstall -k "$kernel" --installtree "$tree" --no-depmod
    step "$kernel is gone" is_gone "$kernel"
}

main() {
    local -a wanted=("$@")
    local kernel
    command -v dkms >/dev/null || { echo 'dkms_test.sh: no dkms here' >&2; exit 3; }
    [ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(kernels)
    [ ${#wanted[@]} -gt 0 ] || { echo 'dkms_test.sh: no kernel headers here' >&2; exit 3; }
    SCRATCH=$(mktemp -d)
    trap 'rm -rf -- "$SCRATCH"' EXIT
    # The key with which DKMS signs modules. By default DKMS writes it outside of these trees.
    export mok_signing_key=$SCRATCH/mok.key mok_certificate=$SCRATCH/mok.pub
    mkdir -p "$SCRATCH/dkms" "$SCRATCH/source"
    "$HERE/dkms_tree.sh" "$SCRATCH/source" >/dev/null
    step add in_scratch add
    for kernel in "${wanted[@]}"; do try_kernel "$kernel"; done
    step remove in_scratch remove --all --installtree "$SCRATCH/root/lib/modules" --no-depmod
    return $FAILED
}

main "$@"
