# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# `tools/kmes broken`: passes its arguments to conformance/testees/broken/patches.py.

broken_command() {
    [ $# -gt 0 ] || set -- --help
    exec python3 -B "$KMES_ROOT/conformance/testees/broken/patches.py" --root "$KMES_ROOT" "$@"
}
