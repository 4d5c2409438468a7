#!/bin/sh
# SPDX-License-Identifier: MIT
#
# read_first_test.sh COUNT: for the mistakes of COUNT rows of broken/read-first.txt, the suite names
# the case to read first (broken/read_first.py). Each day takes other rows; 0: all rows.
set -u
here=conformance/testees
exec python3 -B "$here/broken/read_first.py" check conformance/kmes-conformance "$here" \
    "$here/broken/read-first.txt" "$here/broken/recorded-failures.txt" "$1"
