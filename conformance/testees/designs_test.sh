#!/bin/sh
# SPDX-License-Identifier: MIT
#
# designs_test.sh NUMBER {NAME [TOOLCHAIN] -- PROGRAM next}...: NUMBER of these pass the suite, each
# run by foreign_test.sh. Each day takes others, until all have had their turn.
set -u

number=$1
shift
all=0
for word in "$@"; do
    [ "$word" != next ] || all=$((all + 1))
done
day=$(date -u +%j)
first=$(((${day#"${day%%[!0]*}"} * number) % all))
run=0
status=0
design=0
while [ "$#" -gt 0 ]; do
    arguments=
    while [ "$1" != next ]; do
        arguments="$arguments $1"
        shift
    done
    shift
    [ $(((design - first + all) % all)) -ge "$number" ] || {
        echo "design $((design + 1)) of $all:$arguments"
        # shellcheck disable=SC2086  # words without spaces
        conformance/testees/foreign_test.sh $arguments || status=1
        run=$((run + 1))
    }
    design=$((design + 1))
done
echo "$run of $all designs: those of today"
[ "$run" -eq "$number" ] || status=1
exit "$status"
