#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# plant.sh CANARY SOURCE: prints the source with the bug of the canary. A canary has comments (#),
# `key: value` lines for the test that runs it, and
#
#   after: TEXT          the one line of the source that is TEXT, without its indentation
#   plant:               the following lines are inserted after that line
#
# If there is no such line, or there are two, the command fails: the source has changed, and the
# canary must follow.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: plant.sh CANARY SOURCE" >&2; exit 2; }
exec awk -v canary="$1" '
    function trimmed(text) {
        sub(/^[ \t]+/, "", text)
        return text
    }
    FNR == NR && planting { plant = plant $0 "\n"; next }
    FNR == NR && /^after: / { after = substr($0, 8); next }
    FNR == NR && /^plant:$/ { planting = 1; next }
    FNR == NR { next }
    { print }
    trimmed($0) == after { printf "%s", plant; found++ }
    END {
        if (plant == "" || found != 1) {
            print canary ": its line is in the source " found + 0 " times; should be once: " \
                after > "/dev/stderr"
            exit 1
        }
    }' "$1" "$2"
