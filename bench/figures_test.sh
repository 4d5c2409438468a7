#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# figures_test.py, with the Python of this machine.
exec python3 -B bench/figures_test.py
