#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill_matrix_test.sh check|measure [foreign]: the suite fails every broken consumer
# (broken/kill_matrix.py), those of broken/table.bzl or of broken/foreign.bzl.
set -u
here=conformance/testees
table=$here/broken/table.bzl
[ "${2:-}" != foreign ] || table=$here/broken/foreign.bzl
exec python3 "$here/broken/kill_matrix.py" "$1" conformance/kmes-conformance "$table" "$here"
