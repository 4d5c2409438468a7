#!/bin/sh
# SPDX-License-Identifier: MIT
#
# twins_test.sh ARGUMENTS...: broken consumers fail in form D of the layout as in form A
# (broken/twins.py).
exec python3 -B conformance/testees/broken/twins.py "$@"
