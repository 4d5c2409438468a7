#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The files of every vector are what the two scripts write, and the scripts notice another file.
set -eu
vectors=conformance/vectors
copy=$TEST_TMPDIR/vectors

fail() {
    echo "$1" >&2
    exit 1
}

python3 $vectors/assemble.py --check
python3 $vectors/other_forms.py --check

cp -rL "$vectors" "$copy"
chmod -R u+w "$copy"
echo '0: 00' >>"$copy/form-b/fresh.hex"
python3 "$copy/other_forms.py" --check 2>/dev/null && fail 'a changed source was not noticed'
python3 "$copy/other_forms.py"
python3 "$copy/other_forms.py" --check
rm "$copy/form-d/fresh.bin"
python3 "$copy/assemble.py" --check 2>/dev/null && fail 'a missing image was not noticed'
python3 "$copy/assemble.py"
cmp "$copy/form-d/fresh.bin" "$vectors/form-d/fresh.bin"
rm "$copy/retired.hex"
python3 "$copy/other_forms.py" --check 2>/dev/null && fail 'a vector of no scenario was not noticed'
exit 0
