#!/bin/sh
# SPDX-License-Identifier: MIT
#
# foreign_test.sh NAME [TOOLCHAIN] [OPTIONS...] -- PROGRAM ARGS...: an example passes the suite with
# these options. TOOLCHAIN is the file with the compiler's version; if it says "none", the test
# prints that and is skipped. KMES_SHARE=N in the environment: runs one of N shards, another each
# day (UTC).
set -u
. tools/lib/share.sh

name=$1
shift
if [ "${1#-}" = "$1" ]; then
    if [ "$(cat "$1")" = none ]; then
        echo "SKIPPED: $name was not built: its compiler is missing (tools/kmes setup testees)"
        exit 0
    fi
    echo "$name: built with $(cat "$1")"
    shift
fi
take_shard_of_today
exec conformance/kmes-conformance ${KMES_EXPLORE:+--explore "$KMES_EXPLORE"} "$@"
