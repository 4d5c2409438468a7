#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The table of operations.h has every function of the producer's two headers, so an identity run
# cannot omit one of them unnoticed.
set -euo pipefail

# kmes_index_entries returns how much memory is needed, kmes_swap_rounds how often to loop: neither
# is an operation.
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
