#!/bin/sh
# SPDX-License-Identifier: MIT
#
# chosen_test.sh "OPTIONS" NAME...: these correct consumers pass the suite with these options.
# KMES_SHARE=N in the environment: runs one of N shards of the cases, another each day (UTC).
set -uf
. tools/lib/share.sh

here=conformance/testees/correct
options=$1
shift
status=0
take_shard_of_today
for name in "$@"; do
    # shellcheck disable=SC2086  # several words
    conformance/kmes-conformance --explore off $options -- "$here/$name.program" || status=1
done
exit "$status"
