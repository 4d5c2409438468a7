#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# instructions_test.sh PROGRAM FILE: tests that no path takes more instructions than FILE allows.
# Also tests that instructions.py finds such a path.
set -uo pipefail

readonly PROGRAM=$1 ALLOWED=$2
readonly OUT=$TEST_TMPDIR/out
readonly TIGHT=$TEST_TMPDIR/tight.txt

python3 -B bench/instructions.py check "$PROGRAM" "$ALLOWED" || exit 1

# Lowers the number of one path by 5 %, and removes another path.
awk '/^#/ || !NF { print; next }
     { rows++ }
     rows == 1 { printf "%d %d", $1 * 0.95, $2; $1 = $2 = ""; print; next }
     rows > 2' "$ALLOWED" >"$TIGHT"
python3 -B bench/instructions.py check "$PROGRAM" "$TIGHT" >"$OUT" 2>&1
if [ $? -ne 1 ] || [ "$(grep -c '^FAIL: ' "$OUT")" -ne 2 ]; then
    echo "FAIL: a rise of 5 % and a path without a line are not both found:"
    cat "$OUT"
    exit 1
fi
