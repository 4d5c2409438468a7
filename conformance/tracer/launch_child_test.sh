#!/bin/sh
# SPDX-License-Identifier: MIT
#
# launch_child_test.py, as a test.
set -eu

exec python3 -B conformance/tracer/launch_child_test.py "$@"
