#!/bin/sh
# SPDX-License-Identifier: MIT
#
# correct_test.sh OPTIONS OF flake.py...: correct consumers pass the suite.
set -u
here=conformance/testees/correct
# shellcheck disable=SC2048,SC2086
exec python3 "$here/flake.py" --suite conformance/kmes-conformance --programs "$here" $*
