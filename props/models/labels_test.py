# SPDX-License-Identifier: MIT
"""labels_test.py [--table | RECORDER]: labels tie the models to the code.

Checks each line of a model with a comment `@LABEL file`: the label is one of kmes/order.h, and
that file of kmes/ uses it. Checks each inline or process with `path: NAME ...`: the order of its
labels is the order of the core's accesses that RECORDER has recorded on that path, and each
labelled line has an access. Checks each label of kmes/order.h: it is in a model, or docs/models.md
says why not. And docs/models.md must contain the table that --table prints.

The order: the recording, without the labels that the model says it leaves out, must be found in
the text of the unit (calls expanded) from top to bottom; branches may be skipped. A step back to
the head of a loop is permitted as often as the core itself started again on that path (FIRST).
"""
import collections
import re
import subprocess
import sys

import labels

# By path: the label with which each iteration of the core begins. The other paths have no
# iterations.
FIRST = {
    "batch": "DATA",
    "batch-with-light-fence": "DATA",
    "emit": "DATA",
    "next": "LOAD_WRITE_POS",
    "open": "attach.c/LOAD_GENERATION",
    "overfull-batch": "DATA",
    "run": "LOAD_WRITE_POS",
    "run-with-barrier": "LOAD_WRITE_POS",
}
FAR = 10**6


def all_labels():
    with open("kmes/order.h") as header:
        return re.findall(r"^    X\((\w+),", header.read(), re.MULTILINE)


def faults_of_names():
    known, faults = all_labels(), []
    for access in labels.distinct_accesses():
        where = "%s:%d: " % (access.model_file, access.line)
        if access.label not in known:
            faults.append(where + "%s is no label of kmes/order.h" % access.label)
            continue
        try:
            with open("kmes/" + access.file) as source:
                used = re.search(r"\bKMES_ORDER_%s\b" % access.label, source.read())
        except FileNotFoundError:
            used = None
        if not used:
            faults.append(where + "kmes/%s does not use %s" % (access.file, access.label))
    return faults


def recorded_paths(recorder):
    paths = collections.defaultdict(list)
    done = subprocess.run([recorder], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("%s: the core does not do what the paths are named for" % recorder)
    for line in done.stdout.splitlines():
        head, accesses = line.split(":")
        path, scenario = head.split()
        paths[path].append((scenario, accesses.split()))
    return paths


def steps_back(unit):
    """cost(i, j): how many steps back lead from the index i of a unit to the index j."""
    def cost(i, j):
        if j > i:
            return 0
        return 1 if any(begin <= j and i < end for begin, end in unit.loops) else FAR
    return cost


def matched_places(unit, recorded, rounds):
    """Returns the indexes in a unit's text that match the recording, with at most `rounds` steps
    back; none if the recording does not match."""
    keys = [labels.key_of(access) for access in unit.accesses]
    cost = steps_back(unit)
    columns = [[i for i, key in enumerate(keys) if key == name] for name in recorded]
    ahead = [{i: 0 for i in columns[0]}]
    for before, column in zip(ahead, columns[1:]):
        ahead.append({j: min([c + cost(i, j) for i, c in before.items()] or [FAR]) for j in column})
    behind = [{j: 0 for j in columns[-1]}]
    for column in reversed(columns[:-1]):
        later = behind[0]
        costs = {i: [c + cost(i, j) for j, c in later.items()] for i in column}
        behind.insert(0, {i: min(costs[i] or [FAR]) for i in column})
    return {i for a, b in zip(ahead, behind) for i in a if a[i] + b[i] <= rounds}


def faults_of_path(unit, path, scenario, recorded, own, may_lack):
    """Returns the differences of a unit from one recording, and the indexes that it covers."""
    faults, where = [], "%s, %s %s: " % (unit.name, path, scenario)
    for name in sorted(set(recorded) - own):
        if name.split("/")[-1] not in may_lack:
            faults.append(where + "the model does not have %s, and does not leave it out" % name)
    kept = [name for name in recorded if name in own]
    if not kept:
        return faults, set()
    rounds = max(kept.count(FIRST[path]) - 1, 0) if path in FIRST else 0
    places = matched_places(unit, kept, rounds)
    if not places:
        faults.append(where + "the core has another order: " + " ".join(kept))
    return faults, places


def faults_of_unit(unit, paths, own, may_lack):
    faults, covered = [], set()
    for path in unit.paths:
        if path not in paths:
            faults.append("%s: no path '%s' was recorded" % (unit.name, path))
        for scenario, recorded in paths.get(path, []):
            wrong, places = faults_of_path(unit, path, scenario, recorded, own, may_lack)
            faults += wrong
            covered |= places
    for i, access in enumerate(unit.accesses):
        if i not in covered:
            faults.append("%s: %s:%d: the core does not do %s at that place"
                          % (unit.name, access.model_file, access.line, access.label))
    return faults


def faults_of_model(model, paths, in_no_model):
    units = labels.units_of(model)
    accesses = {access for unit in units for access in unit.accesses}
    compared = {access for unit in units if unit.paths for access in unit.accesses}
    own = {labels.key_of(access) for access in accesses}
    left_out = labels.left_out(model)
    faults = []
    for label in sorted(left_out & own - set(labels.IN_TWO_FILES)):
        faults.append("has %s, and says that it leaves it out" % label)
    for unit in units:
        if unit.paths:
            faults += faults_of_unit(unit, paths, own, left_out | in_no_model)
    for access in sorted(accesses - compared):
        faults.append("%s:%d: %s is on no path" % (access.model_file, access.line, access.label))
    return [model + ": " + fault for fault in faults]


def faults_of_order(paths):
    in_no_model = set(without_model())
    faults = []
    for model in labels.MENDED:
        faults += faults_of_model(model, paths, in_no_model)
    return faults


def document():
    with open("docs/models.md") as text:
        return text.read()


def without_model():
    """Labels in no model, with the reason: the rows of a table of docs/models.md."""
    section = document().split("## Labels in no model")[1]
    return dict(re.findall(r"^\| ([A-Z_]+) \| (\S.*) \|$", section, re.MULTILINE))


def faults_of_document():
    faults, excused = [], without_model()
    used = {access.label for access in labels.distinct_accesses()}
    for label in all_labels():
        if (label in used) == (label in excused):
            faults.append("docs/models.md: %s is %s" % (label, "in a model, and listed as in none"
                          if label in used else "in no model, and no reason is given"))
    for label in excused:
        if label not in all_labels():
            faults.append("docs/models.md: %s is no label" % label)
    row = re.compile(r"\| [A-Z_]+ \| \w+\.[ch] \|")
    rows = [line for line in document().splitlines() if row.match(line)]
    if rows != labels.table()[2:]:
        faults.append("docs/models.md: its table is not what `labels_test.py --table` says")
    return faults


def main(arguments):
    if arguments == ["--table"]:
        print("\n".join(labels.table()))
        return 0
    if len(arguments) != 1:
        raise SystemExit("usage: labels_test.py [--table | RECORDER]")
    paths = recorded_paths(arguments[0])
    faults = faults_of_names() + faults_of_order(paths) + faults_of_document()
    for fault in faults:
        print("FAIL " + fault)
    print("%d labelled lines, %d recorded paths, %d faults"
          % (len(labels.distinct_accesses()), sum(map(len, paths.values())), len(faults)))
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
