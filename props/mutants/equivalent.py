# SPDX-License-Identifier: MIT
"""Reads equivalent.txt: mutants that no killer can catch, each under its reason.

    = the reason why the mutants below cannot be detected
    producer.c/wake_if_asked/swap/0 1f5e0b6a

The second word is the digest of the edit. An ID counts places in a function, so a change of the
function may give it to another edit, for which the reason does not hold.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path


class ListError(Exception):
    """An unreadable list; the message names the line."""


@dataclass(frozen=True)
class Listed:
    reason: str
    digest: str


def digest_of(diff):
    """Of the edit as the run prints it."""
    return hashlib.sha256(diff.encode()).hexdigest()[:8]


def outdated(listed, diffs):
    """Returns complaints about entries that are no mutant, or another one. `diffs` is {ID: diff} of
    the whole core."""
    complaints = [f"stale: {name} is listed, and is no mutant" for name in set(listed) - set(diffs)]
    for name in set(listed) & set(diffs):
        digest = digest_of(diffs[name])
        if listed[name].digest != digest:
            complaints.append(f"stale: {name} is another edit now, {digest}: {diffs[name]}")
    return sorted(complaints)


def read_list(path):
    """{ID: Listed}, in the order of the file."""
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
        name, _, digest = line.partition(" ")
        if len(name.split("/")) != 4 or not digest or " " in digest:
            what = "FILE/FUNCTION/OPERATOR/ORDINAL DIGEST"
            raise ListError(f"{path}:{number}: '{line}' is no {what}")
        if reason is None:
            raise ListError(f"{path}:{number}: {name} stands under no reason (a line `= why`)")
        if name in found:
            raise ListError(f"{path}:{number}: {name} is listed twice")
        found[name] = Listed(reason, digest)
    return found
