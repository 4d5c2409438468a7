# SPDX-License-Identifier: MIT
"""The relation of the models to the code: each line with a comment `@LABEL file.c` is the access
with that label in kmes/file.c. Reads the models as spin does, without the variants that remove
something.
"""
import collections
import functools
import os
import re
import subprocess

import models

# The correct form with every part of it.
MENDED = {
    "interrupt": ["TASK_EVENTS=3"],
    "jump": ["BATCHES"],
    "sleep_and_swap": ["BATCHES", "NUDGE"],
}
# These occur in two files of the reader, at two steps of the protocol.
IN_TWO_FILES = ("LOAD_GENERATION", "LOAD_TAIL")

Access = collections.namedtuple("Access", "label file model_file line unit")
Unit = collections.namedtuple("Unit", "name is_inline paths accesses loops")


def mended_lines(model):
    """(file, line number, text) of a model after the preprocessor, comments kept."""
    command = ["gcc", "-E", "-C", "-x", "c"] + ["-D" + flag for flag in MENDED[model]]
    path = os.path.join(models.HERE, model + ".pml")
    text = subprocess.run(command + [path], check=True, stdout=subprocess.PIPE, text=True).stdout
    name, number = None, 0
    for line in text.splitlines():
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            name, number = os.path.basename(marker.group(2)), int(marker.group(1))
        else:
            if name.endswith(".pml"):
                yield name, number, line
            number += 1


def unit_texts(model):
    """Returns the inlines and proctypes: {name: (is it an inline, paths, [(file, line, text)])}."""
    units, paths, current = {}, [], None
    for name, number, text in mended_lines(model):
        path = re.match(r"/\* path: (.*) \*/", text)
        head = re.match(r"(inline|proctype) (\w+)\(", text)
        if path:
            paths = path.group(1).split(", ")
        elif head:
            current = []
            units[head.group(2)] = (head.group(1) == "inline", paths, current)
            current.append((name, number, text[head.end():]))
            paths = []
        elif text.startswith("}"):
            current = None
        elif current is not None:
            current.append((name, number, text))
    return units


TOKEN = re.compile(r"/\* @(?P<label>\w+) (?P<file>\w+\.[ch])\b.*?\*/|/\*.*?\*/|\bgoto (?P<goto>\w+)"
                   r"|^(?P<place>\w+):(?!:)|\b(?P<word>do|od)\b|\b(?P<call>\w+)\(")


def tokens_of(units, name, scope=""):
    """Returns all lines of a unit, calls expanded, in the order of the text."""
    for model_file, number, text in units[name][2]:
        late = []
        for match in TOKEN.finditer(text):
            kind = match.lastgroup if match.group("label") is None else "label"
            if kind == "label":
                access = Access(match.group("label"), match.group("file"), model_file, number, name)
                late.append(("access", access))
            elif kind == "call" and match.group("call") in units and match.group("call") != name:
                yield from tokens_of(units, match.group("call"), scope)
            elif kind in ("goto", "place", "word"):
                yield (kind, match.group(kind))
        yield from late


def unit_of(units, name):
    """Returns the accesses of a unit, and its loops as ranges of indexes between them: from `end`
    the unit may continue at `begin`."""
    accesses, loops, open_loops, places = [], [], [], {}
    for kind, what in tokens_of(units, name):
        if kind == "access":
            accesses.append(what)
        elif kind == "place":
            places[what] = len(accesses)
        elif kind == "goto" and what in places:
            loops.append((places[what], len(accesses)))
        elif what == "do":
            open_loops.append(len(accesses))
        elif what == "od":
            loops.append((open_loops.pop(), len(accesses)))
    return Unit(name, units[name][0], units[name][1], accesses, loops)


@functools.lru_cache(maxsize=None)
def units_of(model):
    texts = unit_texts(model)
    return [unit_of(texts, name) for name in texts]


def left_out(model):
    """Labels that a model says it leaves out."""
    with open(os.path.join(models.HERE, model + ".pml")) as text:
        found = re.findall(r"^/\* leaves out: ([A-Z_ ]+): \S.* \*/$", text.read(), re.MULTILINE)
    return {label for labels in found for label in labels.split()}


def key_of(access):
    """The name of an access in a recording."""
    if access.file == "attach.c" and access.label in IN_TWO_FILES:
        return "attach.c/" + access.label
    return access.label


def statement_of(access):
    """The model's line, without the comment."""
    with open(os.path.join(models.HERE, access.model_file)) as source:
        line = source.read().splitlines()[access.line - 1]
    return re.sub(r"/\*.*?\*/", "", line).strip().strip(";").strip()


def distinct_accesses():
    """Every labelled line of every model once, sorted by file and line."""
    found = {}
    for model in MENDED:
        for unit in units_of(model):
            for access in unit.accesses:
                found[(access.model_file, access.line, access.label)] = access
    return [found[key] for key in sorted(found)]


def table():
    rows = ["| label | kmes/ | model | inline or process | statement |", "|---|---|---|---|---|"]
    for access in distinct_accesses():
        rows.append("| %s | %s | %s | %s | `%s` |" % (access.label, access.file, access.model_file,
                                                    access.unit, statement_of(access)))
    return rows
