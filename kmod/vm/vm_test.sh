#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# vm_test.py, with the Python of this machine.
exec python3 -B kmod/vm/vm_test.py
