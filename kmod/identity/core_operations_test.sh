#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tests that the table of operations.h has each function of the producer's two headers. An identity
# run fails if it plays none of a function of the table.
set -euo pipefail

# kmes_index_entries and kmes_swap_rounds only compute numbers, so they are not operations.
declared=$(grep -ohE '^(int|void|bool|__u64) kmes_[a-z_]+\(' "$1" "$2" |
    sed -e 's/.* //' -e 's/(//' | grep -vxE 'kmes_index_entries|kmes_swap_rounds' | LC_ALL=C sort)
listed=$(grep -oE 'X\(kmes_[a-z_]+\)' "$3" | sed -e 's/X(//' -e 's/)//' | LC_ALL=C sort)

[ "$(wc -l <<<"$declared")" -ge 20 ] || {
    echo "only $(wc -l <<<"$declared") functions were found in $1 and $2"
    exit 1
}
diff <(echo "$declared") <(echo "$listed") || {
    echo "< in $1 or $2, > in the table of $3"
    exit 1
}
