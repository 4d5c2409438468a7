#!/bin/sh
# SPDX-License-Identifier: MIT
#
# patches_test.sh PATCH...: the patches of broken consumers have the correct form, and the commands
# on them work (broken/patches_test.py). So does the comparison with twins (broken/twins_test.py).
# Each PATCH applies.
set -u
python3 -B conformance/testees/broken/patches_test.py || exit 1
python3 -B conformance/testees/broken/twins_test.py || exit 1
exec python3 -B conformance/testees/broken/patches.py check "$@"
