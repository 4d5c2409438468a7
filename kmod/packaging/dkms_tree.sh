#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes the source tree for DKMS: FOLDER/kmes-VERSION, with dkms.conf and the sources.
#
#   dkms_tree.sh FOLDER [VERSION]     then: dkms install kmes/VERSION, with FOLDER /usr/src
#
# The default VERSION is that of the file VERSION at the top of the tree.
set -euo pipefail

main() {
    if [ $# -lt 1 ] || [ $# -gt 2 ]; then
        echo 'usage: dkms_tree.sh FOLDER [VERSION]' >&2
        exit 2
    fi
    local repository version tree
    repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
    version=${2:-$(cat -- "$repository/VERSION")}
    tree=$1/kmes-$version
    mkdir -p "$tree/kmes" "$tree/kmod/uapi/linux"
    cp "$repository"/kmes/*.[ch] "$tree/kmes/"
    cp "$repository"/kmod/*.[ch] "$repository"/kmod/Kbuild "$repository"/kmod/Makefile "$tree/kmod/"
    cp "$repository"/kmod/uapi/linux/*.h "$tree/kmod/uapi/linux/"
    cp "$repository/LICENSE" "$tree/"
    cp -r "$repository/LICENSES" "$tree/"
    sed "s/@VERSION@/$version/" "$repository/kmod/dkms.conf" >"$tree/dkms.conf"
    echo "$tree"
}

main "$@"
