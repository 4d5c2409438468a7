#!/bin/sh
# SPDX-License-Identifier: MIT
#
# read_first_test.sh COUNT: the suite names the case to read first for the mistakes of COUNT rows of
# broken/read-first.txt, others each day; 0: of all rows (broken/read_first.py).
set -u
here=conformance/testees
exec python3 -B "$here/broken/read_first.py" check conformance/kmes-conformance "$here" \
    "$here/broken/read-first.txt" "$here/broken/recorded-failures.txt" "$1"
