#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples are for copying: each is one file of fewer than 250 lines. And the tables of broken
# consumers fit the C example, and the designs of the foreign ones.
set -u

cd conformance/testees || exit 1
failures=0

for example in c/consumer.c cpp/consumer.cc go/consumer.go python/consumer.py rust/consumer.rs; do
    lines=$(wc -l <"$example")
    if [ "$lines" -eq 0 ] || [ "$lines" -ge 250 ]; then
        echo "FAIL: $example has $lines lines; an example has fewer than 250"
        failures=1
    fi
done

# None of the foreign ones uses anything of ours.
if grep -n 'include "' c/consumer.c; then
    echo "FAIL: c/consumer.c includes a file of this tree"
    failures=1
fi

python3 broken/table_test.py broken/table.bzl c/consumer.c || failures=1
python3 broken/table_test.py broken/foreign.bzl broken || failures=1
exit $failures
