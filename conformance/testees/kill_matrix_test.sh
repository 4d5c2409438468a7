#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill_matrix_test.sh check|compare, or check foreign: every broken consumer is failed
# (broken/kill_matrix.py), those of broken/table.bzl or of broken/foreign.bzl.
set -u
here=conformance/testees
table=$here/broken/table.bzl
matrix=$here/broken/kill-matrix.txt
if [ "${2:-}" = foreign ]; then
    table=$here/broken/foreign.bzl
    matrix=-
fi
exec python3 "$here/broken/kill_matrix.py" "$1" conformance/kmes-conformance "$table" "$here" \
    "$matrix"
