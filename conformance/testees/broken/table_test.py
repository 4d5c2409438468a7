# SPDX-License-Identifier: MIT
"""table_test.py TABLE SOURCE: the table of broken consumers is whole and fits the C example."""
import re
import sys

FIELDS = ["name", "wrong", "clause", "case", "edits"]
CLAUSE = r"5\.1[0-9.-]*|E[0-9]+|contract(-[a-z0-9]+)?|event-model"
LEAST = 25  # catchable ones


def faults_of(entry, source):
    """What is wrong with an entry, a line each."""
    if list(entry) != FIELDS:
        return ["has the fields %s; right are %s" % (list(entry), FIELDS)]
    faults = []
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry["name"]):
        faults.append("the name is made of small letters, digits and hyphens")
    if not entry["wrong"].endswith(".") or "\n" in entry["wrong"]:
        faults.append("`wrong` is one sentence in one line")
    if not re.fullmatch(CLAUSE, entry["clause"]):
        faults.append("'%s' is no clause" % entry["clause"])
    if not re.fullmatch(r"[^ /]+/[a-z0-9-]+|- .+", entry["case"]):
        faults.append("'%s' is neither a case nor the reason why there is none" % entry["case"])
    for old, new in entry["edits"]:
        if source.count(old) != 1:
            faults.append("stands %d times in the source, not once: %r" % (source.count(old), old))
        if old == new:
            faults.append("changes nothing: %r" % old)
    if len({old for old, _ in entry["edits"]}) != len(entry["edits"]) or not entry["edits"]:
        faults.append("has no edit, or one twice")
    return faults


def main():
    with open(sys.argv[1]) as table, open(sys.argv[2]) as source:
        scope, text = {}, source.read()
        exec(table.read(), scope)  # Starlark that is Python, too
    entries = scope["BROKEN"]
    faults = ["%s: %s" % (e["name"], fault) for e in entries for fault in faults_of(e, text)]
    names = [entry["name"] for entry in entries]
    faults += ["%s: stands twice" % name for name in sorted(set(names)) if names.count(name) > 1]
    catchable = sum(not entry["case"].startswith("-") for entry in entries)
    if catchable < LEAST:
        faults.append("%d broken consumers with a case; %d is the least" % (catchable, LEAST))
    print("\n".join("FAIL: " + fault for fault in faults) or "%d broken consumers" % len(entries))
    return 1 if faults else 0


sys.exit(main())
