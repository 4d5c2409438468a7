#!/bin/sh
# SPDX-License-Identifier: MIT
#
# foreign_test.sh NAME [TOOLCHAIN] [OPTIONS...] -- PROGRAM ARGS...: an example passes the suite with
# these options. TOOLCHAIN is the file with the compiler's version; if it says "none", the test
# prints that and is skipped. KMES_SHARE=N in the environment: runs one of N shards, another each
# day.
set -u

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
if [ "${KMES_SHARE:-1}" -gt 1 ]; then
    day=$(date -u +%j)
    TEST_TOTAL_SHARDS=$KMES_SHARE
    TEST_SHARD_INDEX=$((${day#"${day%%[!0]*}"} % KMES_SHARE))
    export TEST_TOTAL_SHARDS TEST_SHARD_INDEX
    echo "$name: shard $TEST_SHARD_INDEX of $TEST_TOTAL_SHARDS, today's"
fi
exec conformance/kmes-conformance ${KMES_EXPLORE:+--explore "$KMES_EXPLORE"} "$@"
