#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs mutate_test.py, beside the modules that it tests.
set -euo pipefail
exec python3 -B props/mutants/mutate_test.py
