# SPDX-License-Identifier: MIT
"""table_test.py: the table of correct consumers is complete, and has every source."""
import os
import re
import sys

FIELDS = ["name", "special", "language", "source", "build", "run", "clauses"]
LANGUAGES = ["asm", "c", "c++", "go", "perl", "python", "rust"]
CLAUSE = r"5\.1[0-9.-]*|E[0-9]+|contract-[0-9]+"
LEAST = 30
HEADERS = ["c/contract.h"]


def faults_of(entry):
    """The mistakes in an entry, a line each."""
    if list(entry) != FIELDS:
        return ["has the fields %s; right are %s" % (list(entry), FIELDS)]
    faults = []
    if not re.fullmatch(r"[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*", entry["name"]):
        faults.append("the name is made of letters, digits and hyphens")
    if not entry["special"].endswith(".") or "\n" in entry["special"]:
        faults.append("`special` is one sentence in one line")
    if entry["language"] not in LANGUAGES:
        faults.append("'%s' is no language of the table" % entry["language"])
    if not os.path.exists(entry["source"]):
        faults.append("there is no %s" % entry["source"])
    if not any("{program}" in word for word in entry["run"]):
        faults.append("`run` does not run it")
    faults += ["'%s' is no clause" % c for c in entry["clauses"] if not re.fullmatch(CLAUSE, c)]
    if not entry["clauses"]:
        faults.append("exercises no clause")
    return faults


def main():
    scope = {}
    with open("table.bzl") as table:
        exec(table.read(), scope)  # Starlark that is Python, too
    entries = scope["CORRECT"]
    faults = ["%s: %s" % (e["name"], fault) for e in entries for fault in faults_of(e)]
    names = [entry["name"] for entry in entries]
    faults += ["%s: is there twice" % name for name in sorted(set(names)) if names.count(name) > 1]
    ways = [(e["source"], e["build"], e["run"]) for e in entries]
    faults += ["%s: is built and run as another is" % e["name"]
               for e, way in zip(entries, ways) if ways.count(way) > 1]
    used = [entry["source"] for entry in entries] + HEADERS
    for folder in sorted(os.listdir(".")):
        if os.path.isdir(folder):
            there = [folder + "/" + name for name in sorted(os.listdir(folder))]
            faults += ["%s: is in no entry" % name for name in there if name not in used]
    if len(entries) < LEAST:
        faults.append("%d correct consumers; %d is the least" % (len(entries), LEAST))
    print("\n".join("FAIL: " + fault for fault in faults) or "%d correct consumers" % len(entries))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
