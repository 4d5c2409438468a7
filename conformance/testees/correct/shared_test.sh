#!/bin/sh
# SPDX-License-Identifier: MIT
#
# shared_test.sh NAME...: these correct consumers, which sleep with a limit, also pass in company
# (E12): of one that the suite plays, and of a second instance of their own.
set -u
here=conformance/testees/correct
status=0
for name in "$@"; do
    conformance/kmes-conformance --explore off --shared --filter 'E12/*' \
        -- "$here/$name.program" || status=1
done
exit "$status"
