#!/bin/sh
# SPDX-License-Identifier: MIT
#
# foreign_test.sh NAME [TOOLCHAIN] [OPTIONS...] -- PROGRAM ARGS...: an example passes the suite,
# with these options. TOOLCHAIN is the file that says with what it was built; with "none" in it the
# test says so and is left out.
set -u

name=$1
shift
if [ "${1#-}" = "$1" ]; then
    if [ "$(cat "$1")" = none ]; then
        echo "SKIPPED: $name was not built, its compiler is not there (tools/kmes setup testees)"
        exit 0
    fi
    echo "$name: built with $(cat "$1")"
    shift
fi
exec conformance/kmes-conformance ${KMES_EXPLORE:+--explore "$KMES_EXPLORE"} "$@"
