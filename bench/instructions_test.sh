#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# instructions_test.sh PROGRAM FILE: no path takes more instructions than FILE allows; and a path
# that does is found.
set -uo pipefail

readonly PROGRAM=$1 ALLOWED=$2
readonly OUT=$TEST_TMPDIR/out
readonly TIGHT=$TEST_TMPDIR/tight.txt

python3 -B bench/instructions.py check "$PROGRAM" "$ALLOWED" || exit 1

# One path may take a twentieth less than it does, and one is gone.
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
