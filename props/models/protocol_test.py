# SPDX-License-Identifier: MIT
"""protocol_test.py RECORDER: docs/protocol.md describes the protocol of the code.

Checks the two tables against the rows that kmes/abi.h asserts, the numbers of the errata against
docs/errata.md, and the pseudocode against the reference reader. For each function with a comment
`path: NAME`, the order of its labels must be the order of the core's accesses on that path, as
RECORDER has recorded it. The matching is that of the models (labels_test.py): a `loop` may start
again as often as the core did. Faults planted in the page must be found.
"""
import re
import sys

import labels
import labels_test

DOCUMENT = "docs/protocol.md"
ERRATA = "docs/errata.md"
TABLES = {"magic": "kmes_metadata_v1", "event_size": "kmes_event_header"}
LABEL = re.compile(r"\[((?:\w+\.c/)?[A-Z_]+)\]")


def document():
    with open(DOCUMENT) as text:
        return text.read()


def rows_of_abi(structure):
    with open("kmes/abi.h") as header:
        found = re.findall(r"^KMES_ASSERT_FIELD\(%s, +(\w+), +(\d+), +(\d+)\);" % structure,
                           header.read(), re.MULTILINE)
    return [(int(offset), int(size), field) for field, offset, size in found]


def rows_of_document(text):
    """The tables of offsets: {first field: [(offset, bytes, field)]}."""
    tables, rows = {}, None
    for line in text.splitlines():
        row = re.match(r"\| (\d+) \| (\d+) \| `(\w+)` \| \S.* \|$", line)
        if row:
            if rows is None:
                rows = tables.setdefault(row.group(3), [])
            rows.append((int(row.group(1)), int(row.group(2)), row.group(3)))
        elif not line.startswith("|"):
            rows = None
    return tables


def faults_of_tables(text):
    faults, tables = [], rows_of_document(text)
    if sorted(tables) != sorted(TABLES):
        faults.append("the tables begin with %s, expected %s" % (sorted(tables), sorted(TABLES)))
    for first, structure in TABLES.items():
        if tables.get(first) != rows_of_abi(structure):
            faults.append("the table of %s: %s, kmes/abi.h asserts %s"
                          % (structure, tables.get(first), rows_of_abi(structure)))
    return faults


def faults_of_errata(text):
    """Each erratum that is not only the producer's is named at a field, a step or a rule."""
    with open(ERRATA) as errata:
        heads = re.findall(r"^### (E\d+): (.*)$", errata.read(), re.MULTILINE)
    _, _, rules = text.partition("\n## The memory\n")
    named = set(re.findall(r"\bE\d+\b", rules.partition("\n## Five mistakes")[0]))
    faults = ["%s has no erratum" % ERRATA] if not heads else []
    return faults + ["%s is at no field, step or rule" % number for number, title in heads
                     if "(producer only)" not in title and number not in named]


def functions_of(text):
    """The pseudocode: {name: (paths, [(line number, indentation, line)])}."""
    functions, current, inside = {}, None, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
            continue
        head = re.match(r"(\w+)\(\): +# path: ([\w, ]+)$", line) if inside else None
        if head:
            current = []
            functions[head.group(1)] = (head.group(2).split(", "), current)
        elif inside and line.strip() and current is not None:
            current.append((number, len(line) - len(line.lstrip()), line))
    return functions


def unit_of(name, paths, lines):
    """Returns a function in the form of labels_test.py for the units of the models."""
    accesses, loops, begin = [], [], None
    for number, indentation, line in lines:
        if begin is not None and indentation <= begin[0]:
            loops.append((begin[1], len(accesses)))
            begin = None
        if line.strip() == "loop":
            begin = (indentation, len(accesses))
        for match in LABEL.finditer(line):
            file, _, label = match.group(1).rpartition("/")
            accesses.append(labels.Access(label, file, DOCUMENT, number, name))
    if begin is not None:
        loops.append((begin[1], len(accesses)))
    return labels.Unit(name, False, paths, accesses, loops)


def own_labels(unit):
    return {labels.key_of(access) for access in unit.accesses}


def faults_of_unit(unit, units, paths):
    """The functions call each other; each is checked in its own place."""
    own = own_labels(unit)
    others = set().union(*map(own_labels, units)) - own
    kept = {path: [(scenario, [label for label in recorded if label not in others])
                   for scenario, recorded in found]
            for path, found in paths.items()}
    return labels_test.faults_of_unit(unit, kept, own, set())


def faults_of_pseudocode(text, paths):
    functions = functions_of(text)
    units = [unit_of(name, own, lines) for name, (own, lines) in functions.items()]
    known, faults = labels_test.all_labels(), []
    if sorted(functions) != ["next", "open", "wait"]:
        faults.append("the functions are %s, expected open, next, wait" % sorted(functions))
    for unit in units:
        faults += ["%s is no label of kmes/order.h" % access.label for access in unit.accesses
                   if access.label not in known]
        faults += faults_of_unit(unit, units, paths)
    return faults


def faults_of(text, paths):
    return faults_of_tables(text) + faults_of_errata(text) + faults_of_pseudocode(text, paths)


# Each makes the page wrong: the first text is replaced by the second.
PLANTED = [
    ("| 72 | 8 | `tail_pos` |", "| 80 | 8 | `tail_pos` |"),
    ("| 133 | 59 | `reserved3` |", "| 133 | 58 | `reserved3` |"),
    ("| 16 | 8 | `sequence` |", "| 16 | 8 | `number` |"),
    ("[SLEEP_COUNTER]", "[COUNTER]"),
    ("[LOAD_TAIL]", "[LOAD_TAILS]"),
    ("[DATA_FENCE]", ""),
    ("[SLEEP_FENCE]", ""),
    ("    loop\n        write_pos", "    once\n        write_pos"),
    ("# E24: once more", ""),
]


def moved(text, label, before):
    """The page with the line of `label` moved in front of the line of `before`."""
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if "[%s]" % label in line][0]
    line = lines.pop(at)
    lines.insert([i for i, other in enumerate(lines) if "[%s]" % before in other][0], line)
    return "".join(lines)


def planted_pages(text):
    for old, new in PLANTED:
        if old not in text:
            raise SystemExit("%s does not have %r" % (DOCUMENT, old))
        yield old, text.replace(old, new, 1)
    yield "E2: counter after the re-check", moved(text, "SLEEP_WRITE_POS", "SLEEP_COUNTER")
    yield "E4: tail before the fence", moved(text, "RECHECK_TAIL", "DATA_FENCE")
    yield "E26: tail_pos before write_pos", moved(text, "LOAD_TAIL", "LOAD_WRITE_POS")


def main(arguments):
    if len(arguments) != 1:
        raise SystemExit("usage: protocol_test.py RECORDER")
    text, paths = document(), labels_test.recorded_paths(arguments[0])
    faults = faults_of(text, paths)
    for what, page in planted_pages(text):
        if not faults_of(page, paths):
            faults.append("planted, and not found: " + what)
    for fault in faults:
        print("FAIL %s: %s" % (DOCUMENT, fault))
    print("%d faults" % len(faults))
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
