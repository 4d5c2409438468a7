# SPDX-License-Identifier: MIT
"""Compiler flags of this tree: every target takes one of these lists; a warning is an error."""

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

# The core: freestanding C11, as a kernel would compile it.
KMES_C_COPTS = _WARNINGS + [
    "-std=c11",
    "-ffreestanding",
]

# C that runs in a process (testees, libkmes): C11 with the system's library.
KMES_HOSTED_C_COPTS = _WARNINGS + [
    "-std=c11",
]

# Everything else.
KMES_CXX_COPTS = _WARNINGS + [
    "-std=c++20",
]
