#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The table of correct consumers is whole.
set -u
cd conformance/testees/correct || exit 1
exec python3 table_test.py
