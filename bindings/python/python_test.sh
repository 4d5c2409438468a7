#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python_test.sh TEST ARGS...: the test of the Python binding, by the python3 of the path.
exec python3 -B "$@"
