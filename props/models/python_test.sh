#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python_test.sh SCRIPT ARGUMENTS...: a Python script of this folder, as a test.
set -eu

script=$1
shift
exec python3 -B "props/models/$script" "$@"
