#!/bin/sh
# SPDX-License-Identifier: MIT
#
# chosen_test.sh "OPTIONS" NAME...: these correct consumers pass the suite with these options.
set -uf
here=conformance/testees/correct
options=$1
shift
status=0
for name in "$@"; do
    # shellcheck disable=SC2086  # several words
    conformance/kmes-conformance --explore off $options -- "$here/$name.program" || status=1
done
exit "$status"
