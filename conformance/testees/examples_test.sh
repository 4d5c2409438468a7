#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples are for copying: each is one file of fewer than 250 lines.
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

# The examples use nothing of this tree.
if grep -n 'include "' c/consumer.c; then
    echo "FAIL: c/consumer.c includes a file of this tree"
    failures=1
fi

exit $failures
