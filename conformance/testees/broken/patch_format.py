# SPDX-License-Identifier: MIT
"""The file of a broken consumer: a header of fields, an empty line, a unified diff of one source.

    Wrong: Every thread takes the first fd, not the one of its CPU.
    Clause: 5.1.1
    Case: 5.1.1/four-cpus
    Also: 5.1.1/one-cpu

    --- a/conformance/testees/c/consumer.c
    +++ b/conformance/testees/c/consumer.c
    @@ -92,7 +92,7 @@ static int attach(int cpu, uint64_t* capacity, struct stat* identity) {
    ...

A field continues in lines that begin with a space. `Case` is the id of the case that must fail the
consumer, or `-` and the reason why none does. `Also`, which may be repeated, is one more such case.

The old lines of a hunk (its context and the removed lines) occur exactly once in the source. Its
line numbers are for readers and other tools only. This module reads no file."""

import difflib
import re
import textwrap
from dataclasses import dataclass

FIELDS = ("Wrong", "Clause", "Case", "Also")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CLAUSE = re.compile(r"5\.1[0-9.-]*|E[0-9]+|contract(-[a-z0-9]+)?|event-model")
CASE = re.compile(r"[^ /]+/[a-z0-9-]+")
RANGE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
HEADING = re.compile(r"[A-Za-z_]")  # the line that an @@ line repeats, as Git chooses it
CONTEXT = 3
WIDTH = 100


class PatchError(Exception):
    """A mistake in a patch, or the reason why it does not apply: (line, or 0, message)."""

    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


@dataclass
class Hunk:
    line: int  # of its @@ line in the patch
    title: str  # its @@ line
    old: list
    new: list


@dataclass
class Patch:
    fields: dict  # of texts; Also is a list
    base: str  # the path of the source, from the root of the tree
    hunks: list


def parse(text):
    """The patch in a text. Raises PatchError if it is no patch."""
    lines = text.split("\n")
    if lines.pop() != "":
        raise PatchError(len(lines) + 1, "no newline at the end; add one")
    end = lines.index("") if "" in lines else len(lines)
    fields = _parse_fields(lines[:end])
    _check_fields(fields)
    base, first = _parse_paths(lines, end + 1)
    return Patch(fields, base, _parse_hunks(lines, first))


def parse_twin(text):
    """The patch of a twin: lines for a person, then a diff. Raises PatchError if it is no patch."""
    lines = text.split("\n")
    if lines.pop() != "":
        raise PatchError(len(lines) + 1, "no newline at the end; add one")
    first = next((at for at, line in enumerate(lines) if line.startswith("--- ")), len(lines))
    base, first = _parse_paths(lines, first)
    return Patch({}, base, _parse_hunks(lines, first))


def _parse_fields(lines):
    fields, last = {"Also": []}, None
    for number, line in enumerate(lines, 1):
        name, colon, value = line.partition(": ")
        if line.startswith(" ") and last:
            value = " " + line.strip()
            if last == "Also":
                fields[last][-1] += value
            else:
                fields[last] += value
        elif not colon or name not in FIELDS:
            raise PatchError(number, f"'{line}' is no field; a header has {', '.join(FIELDS)}")
        elif name == "Also":
            fields[name].append(value)
        elif name in fields:
            raise PatchError(number, f"a second '{name}:'; only 'Also:' may be repeated")
        else:
            fields[name] = value
        last = last if line.startswith(" ") else name
    return fields


def _check_fields(fields):
    for name in FIELDS:
        if name not in fields:
            raise PatchError(1, f"no '{name}:' in the header; add one")
    if not fields["Wrong"].endswith("."):
        raise PatchError(1, "'Wrong:' is one sentence; end it with a full stop")
    if not CLAUSE.fullmatch(fields["Clause"]):
        raise PatchError(
            1, f"'{fields['Clause']}' is no clause; write 5.1.8.1-2, E7, contract-2 or event-model"
        )
    for case in [fields["Case"]] + fields["Also"]:
        if not CASE.fullmatch(case) and not re.fullmatch("- .+", fields["Case"]):
            raise PatchError(
                1, f"'{case}' is no case; write its id, or 'Case: -' and why no case fails it"
            )


def _parse_paths(lines, first):
    """The base, and the index of the first @@ line."""
    found = [
        re.fullmatch(sign + " [ab]/(.+)", line)
        for sign, line in zip(("---", r"\+\+\+"), lines[first : first + 2])
    ]
    if len(found) != 2 or None in found or found[0].group(1) != found[1].group(1):
        raise PatchError(
            first + 1, "no source; the diff begins with '--- a/PATH' and '+++ b/PATH', of one path"
        )
    return found[0].group(1), first + 2


def _parse_hunks(lines, first):
    hunks = []
    for number, line in enumerate(lines[first:], first + 1):
        if line.startswith("@@"):
            hunks.append(Hunk(number, line, [], []))
        elif not hunks or line[:1] not in ("", " ", "-", "+"):
            raise PatchError(number, f"'{line}' is no line of a diff; one begins with ' - + or @@'")
        else:
            if line[:1] != "+":
                hunks[-1].old.append(line[1:])
            if line[:1] != "-":
                hunks[-1].new.append(line[1:])
    for hunk in hunks:
        _check_hunk(hunk)
    if not hunks:
        raise PatchError(first, "the diff changes nothing; add a hunk")
    return hunks


def _check_hunk(hunk):
    found = RANGE.match(hunk.title)
    if not found:
        raise PatchError(hunk.line, f"'{hunk.title}' names no lines; write '@@ -9,7 +9,8 @@'")
    said = [int(found.group(group) or 1) for group in (2, 4)]
    if said != [len(hunk.old), len(hunk.new)]:
        raise PatchError(
            hunk.line,
            f"the hunk has {len(hunk.old)} old and {len(hunk.new)} new lines; write "
            f"'@@ -{found.group(1)},{len(hunk.old)} +{found.group(3)},{len(hunk.new)} @@'",
        )
    if hunk.old == hunk.new:
        raise PatchError(hunk.line, "the hunk changes nothing; remove it")


def apply(patch, text):
    """The text after the patch. PatchError unless the old lines of each hunk occur in it once, in
    the order of the hunks."""
    lines, result, done = text.split("\n"), [], 0
    for number, hunk in enumerate(patch.hunks, 1):
        places = _places(lines, hunk.old)
        what = f"hunk {number} ({hunk.title}) does not fit {patch.base}: its old lines "
        if len(places) != 1:
            what += f"occur {len(places)} times" if places else "are not in it"
            raise PatchError(hunk.line, what)
        if places[0] < done:
            raise PatchError(hunk.line, what + "come before the end of the hunk before it")
        result += lines[done : places[0]] + hunk.new
        done = places[0] + len(hunk.old)
    return "\n".join(result + lines[done:])


def _places(lines, run):
    return [at for at in range(len(lines) - len(run) + 1) if lines[at : at + len(run)] == run]


def make(fields, base, old_text, new_text):
    """The text of the patch that turns old_text, the content of base, into new_text."""
    header = []
    for name in FIELDS:
        for value in fields[name] if name == "Also" else [fields[name]]:
            header += textwrap.wrap(
                f"{name}: {value}", WIDTH, subsequent_indent="  ", break_on_hyphens=False
            )
    diff = [f"--- a/{base}", f"+++ b/{base}"] + _diff(_lines(old_text), _lines(new_text))
    return "\n".join(header + [""] + diff) + "\n"


def _lines(text):
    if not text.endswith("\n"):
        raise PatchError(0, "a source has no newline at its end; add one")
    return text.split("\n")[:-1]


def _diff(old, new):
    changes = [
        change
        for change in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    lines, shift = [], 0
    for first, last, inside in _hunks(old, changes):
        body, at = [], first
        for _, begin, end, new_begin, new_end in inside:
            body += [" " + line if line else "" for line in old[at:begin]]
            body += ["-" + line for line in old[begin:end]]
            body += ["+" + line for line in new[new_begin:new_end]]
            at = end
        body += [" " + line if line else "" for line in old[at:last]]
        growth = sum((d - c) - (b - a) for _, a, b, c, d in inside)
        title = f"@@ -{first + 1},{last - first} +{first + shift + 1},{last - first + growth} @@"
        heading = next((line for line in old[first - 1 :: -1] if HEADING.match(line)), "")
        lines += [f"{title} {heading}".rstrip() if first else title] + body
        shift += growth
    return lines


def _hunks(old, changes):
    """(first line, line after the last, its changes): with enough context that the old lines of
    each occur once."""
    hunks = []
    for change in changes:
        first, last = _with_context(old, change[1], change[2])
        if hunks and first <= hunks[-1][1]:
            inside = hunks.pop()[2] + [change]
            first, last = _with_context(old, inside[0][1], inside[-1][2])
            hunks.append((first, last, inside))
        else:
            hunks.append((first, last, [change]))
    return hunks


def _with_context(old, begin, end):
    for context in range(CONTEXT, len(old) + CONTEXT):
        first, last = max(begin - context, 0), min(end + context, len(old))
        if len(_places(old, old[first:last])) == 1:
            break
    return first, last
