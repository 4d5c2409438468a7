# SPDX-License-Identifier: MIT
"""table_test.py TABLE SOURCE: a table of broken consumers is whole, and fits what it speaks of.

For table.bzl SOURCE is the C example that it edits, for foreign.bzl the folder of the designs.
"""
import os
import re
import sys

FIELDS = ["name", "wrong", "clause", "case", "edits"]
CLAUSE = r"5\.1[0-9.-]*|E[0-9]+|contract(-[a-z0-9]+)?|event-model"
LEAST = 25  # catchable ones
SOURCES = {"c": ".c", "c++": ".cc", "go": ".go", "python": ".py", "rust": ".rs"}
# Where a source asks for a mistake.
ASKS = (
    r"""(?:WRONG|is_wrong)\(k(\w+)\)|_pos, k(\w+)|wrong!\("([a-z0-9-]+)"\)"""
    r"""|(?i:mistake) [!=]= "([a-z0-9-]+)\""""
)


def common_faults(entry):
    """What is wrong with what the entries of both tables have, a line each."""
    faults = []
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry["name"]):
        faults.append("the name is made of small letters, digits and hyphens")
    if not entry["wrong"].endswith(".") or "\n" in entry["wrong"]:
        faults.append("`wrong` is one sentence in one line")
    if not re.fullmatch(CLAUSE, entry["clause"]):
        faults.append("'%s' is no clause" % entry["clause"])
    if not re.fullmatch(r"[^ /]+/[a-z0-9-]+|- .+", entry["case"]):
        faults.append("'%s' is neither a case nor the reason why there is none" % entry["case"])
    return faults


def faults_of(entry, source):
    """What is wrong with an entry of table.bzl, a line each."""
    if list(entry) != FIELDS:
        return ["has the fields %s; right are %s" % (list(entry), FIELDS)]
    faults = common_faults(entry)
    for old, new in entry["edits"]:
        if source.count(old) != 1:
            faults.append("stands %d times in the source, not once: %r" % (source.count(old), old))
        if old == new:
            faults.append("changes nothing: %r" % old)
    if len({old for old, _ in entry["edits"]}) != len(entry["edits"]) or not entry["edits"]:
        faults.append("has no edit, or one twice")
    return faults


def designs_of(entries, folder):
    """{design: the mistakes that its source asks for}."""
    designs = {}
    for entry in entries:
        design = entry["name"].partition("-")[0]
        with open(os.path.join(folder, design + SOURCES[entry["language"]])) as source:
            found = re.findall(ASKS, source.read())
        designs[design] = {"".join(names).lower().replace("-", "") for names in found}
    return designs


def foreign_faults(entries, folder):
    """What is wrong with foreign.bzl: each entry has a mistake in a source, and the other way."""
    fields = FIELDS[:-1] + ["language"]
    faults = ["%s: has the fields %s" % (e["name"], list(e)) for e in entries if list(e) != fields]
    faults += ["%s: %s" % (e["name"], fault) for e in entries for fault in common_faults(e)]
    asked = {(d, m) for d, mistakes in designs_of(entries, folder).items() for m in mistakes}
    named = {(d, m.replace("-", "")) for d, _, m in (e["name"].partition("-") for e in entries)}
    return faults + ["%s-%s: in the table or in the source only" % one for one in asked ^ named]


def main():
    scope = {}
    with open(sys.argv[1]) as table:
        exec(table.read(), scope)  # Starlark that is Python, too
    entries = scope["BROKEN"]
    if os.path.isdir(sys.argv[2]):
        faults = foreign_faults(entries, sys.argv[2])
    else:
        with open(sys.argv[2]) as source:
            text = source.read()
        faults = ["%s: %s" % (e["name"], fault) for e in entries for fault in faults_of(e, text)]
    names = [entry["name"] for entry in entries]
    faults += ["%s: stands twice" % name for name in sorted(set(names)) if names.count(name) > 1]
    for search, found in scope.get("ALSO_FAILED_BY", {}).items():
        unknown = sorted(set(found) - set(names))
        faults += ["%s: finds %s, who is not there" % (search, one) for one in unknown]
    catchable = sum(not entry["case"].startswith("-") for entry in entries)
    if catchable < LEAST:
        faults.append("%d broken consumers with a case; %d is the least" % (catchable, LEAST))
    print("\n".join("FAIL: " + fault for fault in faults) or "%d broken consumers" % len(entries))
    return 1 if faults else 0


sys.exit(main())
