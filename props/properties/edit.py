#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants a bug: edit.py OUTPUT TEXT INSTEAD SOURCE [INCLUDER].

TEXT occurs in SOURCE exactly once, and is replaced. If SOURCE is a header, it replaces its own
#include in INCLUDER. A \\n in TEXT and INSTEAD is a new line.
"""

import sys


def main():
    output, text, instead, source = sys.argv[1:5]
    text, instead = text.replace("\\n", "\n"), instead.replace("\\n", "\n")
    with open(source, encoding="utf-8") as file:
        edited = file.read()
    count = edited.count(text)
    if count != 1:
        sys.exit(f"{source}: the text to replace occurs {count} times, not once: {text!r}")
    edited = edited.replace(text, instead)
    if len(sys.argv) > 5:
        include = '#include "kmes/' + source.rsplit("/", 1)[-1] + '"\n'
        with open(sys.argv[5], encoding="utf-8") as file:
            includer = file.read()
        if includer.count(include) != 1:
            sys.exit(f"{sys.argv[5]}: does not include {source} once")
        edited = includer.replace(include, edited)
    with open(output, "w", encoding="utf-8") as file:
        file.write(edited)


if __name__ == "__main__":
    main()
