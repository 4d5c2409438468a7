#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill_matrix_test.sh check|measure [c|foreign]: the suite fails every broken consumer of the C
# example, or of the other designs (broken/kill_matrix.py).
set -u
here=conformance/testees
exec python3 -B "$here/broken/kill_matrix.py" "$1" conformance/kmes-conformance "$here" "${2:-c}"
