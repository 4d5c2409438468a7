# SPDX-License-Identifier: MIT
"""The table of variants, and one run of spin for one of them: the result of pan, and its coverage.

A run counts only if pan reported how it ended: `passes` is a complete search without an error; an
error is the name of a violated assertion. Everything else (an incomplete search, a deadlock, a
compiler's error) is an outcome of its own that no variant expects.
"""
import collections
import os
import re
import shutil
import subprocess

Variant = collections.namedtuple("Variant", "name model outcome least definitions shows")
Found = collections.namedtuple("Found", "outcome states reached unreached log")

HERE = os.path.dirname(os.path.abspath(__file__))
DEPTH = 100000  # of the search stack; a deeper search is incomplete, and says so
MEMORY_MB = 1000
COMPILER = "clang-19"  # most of the time is spent in it; gcc takes twice as long
MANY_STATES = 1000000  # from here on an optimised search is faster, compilation included


def read_variants(path=os.path.join(HERE, "variants.txt")):
    """Returns the rows of variants.txt; an invalid row ends the run."""
    variants = []
    with open(path) as table:
        for number, line in enumerate(table, 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in line.split("|")]
            match = re.fullmatch(r"(passes) (\d+)|(\w+)", cells[2]) if len(cells) == 5 else None
            if not match:
                raise SystemExit("%s:%d: not `name | model | outcome | definitions | text`"
                                 % (path, number))
            outcome, least = match.group(1) or match.group(3), int(match.group(2) or 0)
            definitions = tuple(cells[3].split())
            variants.append(Variant(cells[0], cells[1], outcome, least, definitions, cells[4]))
    names = [variant.name for variant in variants]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            raise SystemExit("%s: %s stands twice" % (path, name))
    return variants


def need_tools():
    for tool in ("spin", "gcc", COMPILER):  # gcc: spin's preprocessor
        if not shutil.which(tool):
            raise SystemExit("%s is missing; `tools/kmes setup` installs it" % tool)


def model_path(variant):
    return os.path.join(HERE, variant.model + ".pml")


def flags(variant):
    return ["-D" + definition for definition in variant.definitions]


def call(command, folder):
    return subprocess.run(command, cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def build(variant, folder, compiler_flags):
    """Makes folder/pan. Returns an empty text, or the error."""
    spin = call(["spin", "-a"] + flags(variant) + [model_path(variant)], folder)
    is_made = os.path.exists(os.path.join(folder, "pan.c"))
    if spin.returncode or "Error" in spin.stdout or not is_made:
        return "spin: " + spin.stdout
    # No partial order reduction: it saves little here, and need not be trusted.
    search = ["-DSAFETY", "-DNOREDUCE", "-DMEMLIM=%d" % MEMORY_MB]
    compiler = call([COMPILER, "-w", "-o", "pan", "pan.c"] + search + compiler_flags, folder)
    return COMPILER + ": " + compiler.stdout if compiler.returncode else ""


CUT_OFF = re.compile(r"max search depth too small|Search not completed|MEMLIM|out of memory"
                     r"|truncated|aborted")
ALL = ("Full statespace search for:", r"assertion violations\s*\+", r"invalid end states\s*\+")


def outcome_of(returncode, log):
    """Returns the outcome in a log of pan: `cut off` if the search may be incomplete."""
    errors = re.search(r"errors: (\d+)", log)
    if returncode or not errors:
        return "pan ended with status %d" % returncode
    violated = re.search(r"assertion violated\s+!\((\w+)\)", log)
    if violated:
        return violated.group(1)
    if errors.group(1) != "0":
        other = re.search(r"^pan:\d+: (.*)", log, re.MULTILINE)
        return other.group(1) if other else "an error without a name"
    if CUT_OFF.search(log):
        return "cut off"
    if not all(re.search(words, log) for words in ALL):
        return "not a full search"
    return "passes"


def unreached_in(log):
    """Returns statements that a process never reached: {(process, text)}. (spin 6.5.2 gives a wrong
    place for an inline inside of an inline.)"""
    missed = set()
    sections = re.split(r"^unreached in (?:proctype )?(\w+)$", log, flags=re.MULTILINE)
    for process, text in zip(sections[1::2], sections[2::2]):
        for statement in re.findall(r"^\t\S+:\d+, state \d+, \"(.*)\"$", text, re.MULTILINE):
            missed.add((process, statement))
    return missed


def statements_in(tables):
    """Returns all statements, in the same form, from the tables that spin writes to pan.t."""
    statements = set()
    sections = re.split(r"/\* proctype \d+: :?(\w+):? \*/", tables)
    for process, text in zip(sections[1::2], sections[2::2]):
        for statement in re.findall(r"settr\([^\"]*\"(.*)\",[^\"]*\);", text):
            statements.add((process, statement))
    return statements


def run(variant, folder):
    """Builds and searches one variant in an empty folder."""
    os.makedirs(folder)
    wrong = build(variant, folder, ["-O1" if variant.least >= MANY_STATES else "-O0"])
    if wrong:
        return Found("does not build", 0, set(), set(), wrong)
    table = "-w%d" % (22 if variant.least >= MANY_STATES else 18)  # slots: too few are slow
    pan = call(["./pan", "-m%d" % DEPTH, table], folder)
    states = re.search(r"(\d+) states, stored", pan.stdout)
    outcome = outcome_of(pan.returncode, pan.stdout)
    reached, unreached = set(), set()
    if outcome == "passes":
        unreached = unreached_in(pan.stdout)
        with open(os.path.join(folder, "pan.t")) as tables:
            reached = statements_in(tables.read()) - unreached
    return Found(outcome, int(states.group(1)) if states else 0, reached, unreached, pan.stdout)


def short_trail(variant, folder):
    """Returns the text of a failing run; shorter ones are searched after the first."""
    os.makedirs(folder)
    wrong = build(variant, folder, ["-O1", "-DREACH"])
    if wrong:
        return wrong
    pan = call(["./pan", "-i", "-m%d" % DEPTH], folder)
    trail = os.path.basename(model_path(variant)) + ".trail"
    if not os.path.exists(os.path.join(folder, trail)):
        return "nothing goes wrong:\n" + pan.stdout
    spin = ["spin", "-k", trail, "-p", "-g", "-l"] + flags(variant) + [model_path(variant)]
    return call(spin, folder).stdout
