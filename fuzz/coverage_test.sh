#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# coverage_test.sh REPLAY...: the corpora alone reach every line of the core, and every branch
# except those that uncovered.txt justifies (coverage.py). Needs --config=profile or --config=fuzz.
exec python3 -B fuzz/coverage.py --root . --scratch "$TEST_TMPDIR/raw" "$@"
