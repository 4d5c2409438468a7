#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The examples are for copying: each is one file of fewer than 250 lines, and all but the reference
# in C++ use nothing of this tree.
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

# refuse PATTERN FILE: fails if a line takes something of this tree.
refuse() {
    if grep -nE "$1" "$2"; then
        echo "FAIL: $2 uses a file of this tree"
        failures=1
    fi
}
refuse '#include "' c/consumer.c
refuse '^ *(use|mod|extern crate) +kmes' rust/consumer.rs
refuse '"[^"]*kmes[^"]*/' go/consumer.go
refuse '^ *(import|from) +kmes' python/consumer.py

exit $failures
