# SPDX-License-Identifier: MIT
"""Reads equivalent.txt: mutants that nobody can catch, each under its reason.

    = why what stands below cannot be seen
    producer.c/wake_if_asked/swap/0
"""

from pathlib import Path


class ListError(Exception):
    """An unreadable list; the message names the line."""


def read_list(path):
    """{ID: reason}, in the order of the file."""
    found, reason = {}, None
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("="):
            reason = line[1:].strip()
            if not reason:
                raise ListError(f"{path}:{number}: `=` without a reason")
            continue
        if len(line.split("/")) != 4 or " " in line:
            raise ListError(f"{path}:{number}: '{line}' is no FILE/FUNCTION/OPERATOR/ORDINAL")
        if reason is None:
            raise ListError(f"{path}:{number}: {line} stands under no reason (a line `= why`)")
        if line in found:
            raise ListError(f"{path}:{number}: {line} is listed twice")
        found[line] = reason
    return found
