#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill_matrix_test.sh check|compare: every broken consumer is failed (broken/kill_matrix.py).
set -u
here=conformance/testees
exec python3 "$here/broken/kill_matrix.py" "$1" conformance/kmes-conformance \
    "$here/broken/table.bzl" "$here" "$here/broken/kill-matrix.txt"
