# SPDX-License-Identifier: MIT
"""Checks the first failure of a report, for the mistakes of read-first.txt.

  read_first.py check RUNNER FOLDER TABLE RECORD [COUNT]    run the suite on the consumers of COUNT
                                                            rows, others each day; all: 0
  read_first.py record RUNNER FOLDER TABLE OUT [NAME...]    run the suite on the consumers of all
                                                            rows, or of these, and write what
                                                            did not pass

A run has all cases: its options are the default ones and those of the row. FOLDER has broken.json,
which `patches.py table` writes, and the programs broken_<name>. A row is met if the first failure
of the report has one of its clauses and one of its cases. A row with a reason why it is not met
must stay unmet. A row whose consumer was not built (its compiler is missing) is left out."""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from kill_matrix import is_built

JOBS = 2
DAY_SECONDS = 86400
# The options of a row in addition to a default run.
OPTIONS = {"-": [], "robust": ["--level", "robust"], "shared": ["--shared"]}
FIRST = re.compile(r"^fail (\S+) \(clause (\S+)\)$", re.MULTILINE)
PREFLIGHT = "preflight"
HEAD = """# SPDX-License-Identifier: MIT
#
# What failed the consumers of read-first.txt in runs of all cases, one failure a line: case,
# clause, cause. `=` is the clause of the case, and `=CLAUSE` another one, which the suite assumes
# because the fault may have any reason. `-`: the case was inconclusive or unsupported. Before the
# cause there may be facts: steps=N of the run, also=CLAUSE,... of its other findings, and
# root=capacity if the trace shows that the consumer uses the capacity of another buffer. Of each
# row:
#
#     kmes-conformance --quiet [--level robust] [--shared] --report json:FILE -- broken_NAME
#
# `read_first.py record` makes these runs and writes this file.
"""
NOT_MET = "not met: "
# As conformance/model/step_texts.h has it.
STALE_CAPACITY = " is where it would be with the capacity of "


@dataclass
class Row:
    name: str
    mistake: str
    clauses: list
    cases: list
    options: list
    is_met: bool


@dataclass
class Run:
    first: tuple  # case and clause of the first failure in the console report
    failures: list  # (case, clause, facts and cause) as in the record
    undecided: list  # (case, "-", "")


def read_table(path):
    rows = []
    with open(path) as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            columns = [each.strip() for each in line.split("|")]
            clauses, cases, options = [each.split(", ") for each in columns[2:5]]
            is_met = len(columns) == 5 or not columns[5].startswith(NOT_MET)
            rows.append(Row(columns[0], columns[1], clauses, cases, options, is_met))
    return rows


def read_record(path):
    """{name: failures}."""
    record = {}
    with open(path) as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith(" "):
                failures = record.setdefault(line.strip(), [])
            else:
                failures.append(tuple((line.strip().split(" ", 2) + ["", ""])[:3]))
    return record


def program_of(folder, row):
    return os.path.join(folder, "broken_" + row.name)


def built_rows(folder, rows):
    with open(os.path.join(folder, "broken.json")) as file:
        entries = {entry["name"]: entry for entry in json.load(file)}
    return [row for row in rows if is_built(folder, entries[row.name])]


def failure_of(case):
    """Of the finding: the clause of the result may be another, by what else has failed."""
    clause = case["findings"][0]["clause"] if case.get("findings") else case["clause"]
    if case.get("clause_assumed"):
        clause = "=" if case["id"].split("/")[0] == clause else "=" + clause
    facts = ["steps=%d" % case["steps"]] if "steps" in case else []
    also = sorted({each["clause"] for each in case.get("findings", [])[1:]})
    if also:
        facts.append("also=" + ",".join(also))
    if STALE_CAPACITY in case["message"]:
        facts.append("root=capacity")
    return case["id"], clause, " ".join(facts + [case.get("cause", "")]).rstrip()


def run_suite(runner, folder, row):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "report.json")
        command = [runner, "--quiet"]
        command += [word for each in row.options for word in OPTIONS[each]]
        command += ["--report", "console", "--report", "json:" + path]
        done = subprocess.run(
            command + ["--", program_of(folder, row)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if not os.path.exists(path):
            sys.exit("%s\n%s: no report, status %d" % (done.stdout, row.name, done.returncode))
        with open(path) as file:
            report = json.load(file)
    if "preflight" in report:
        return Run((PREFLIGHT, ""), [(PREFLIGHT, "", "")], [])
    first = FIRST.search(done.stdout)
    failures = [failure_of(each) for each in report["cases"] if each["verdict"] == "fail"]
    undecided = [
        (each["id"], "-", "")
        for each in report["cases"]
        if each["verdict"] not in ("pass", "fail")
    ]
    return Run((first[1], first[2]) if first else ("nothing", ""), failures, undecided)


def run_all(runner, folder, rows):
    """Each run as it ends, with its row."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        futures = {pool.submit(run_suite, runner, folder, row): row for row in rows}
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()


def fault_of(row, run):
    """The mistake in the first failure; None: there is none."""
    case, clause = run.first
    is_right = case in row.cases and (case == PREFLIGHT or clause in row.clauses)
    if is_right and not row.is_met:
        return "%s (%s): the row is met; expected the reason in the table to be removed" % (
            row.name,
            row.mistake,
        )
    if is_right or not row.is_met:
        return None
    return "%s (%s): the report begins with %s of clause %s; expected %s of clause %s" % (
        row.name,
        row.mistake,
        case,
        clause or "-",
        " or ".join(row.cases),
        " or ".join(row.clauses),
    )


def staleness_of(row, run, recorded):
    """The mistake in the record; None: there is none. Races and searches differ between runs."""
    seen = {failure[:2] for failure in run.failures}
    known = {failure[:2] for failure in recorded if failure[1] != "-"}
    if known and 2 * len(seen & known) >= len(known):
        return None
    counts = (row.name, len(seen & known), len(known))
    return "%s: %d of its %d recorded failures were seen; expected half, or record again" % counts


def rows_of_today(rows, count):
    first = int(time.time()) // DAY_SECONDS * count % len(rows)
    return (rows + rows)[first : first + count] if count else rows


def check(runner, folder, table, record, count="0"):
    all_rows = read_table(table)
    rows = built_rows(folder, rows_of_today(all_rows, int(count)))
    recorded = read_record(record)
    faults = 0
    for row, run in run_all(runner, folder, rows):
        print("%s: %s, clause %s" % (row.name, run.first[0], run.first[1] or "-"), flush=True)
        for fault in (fault_of(row, run), staleness_of(row, run, recorded.get(row.name, []))):
            if fault:
                print("FAIL: " + fault, flush=True)
                faults += 1
    print("%d of %d rows, %d faults" % (len(rows), len(all_rows), faults))
    return 1 if faults or not rows else 0


def record_text(record):
    text = HEAD
    for name, failures in record.items():
        text += "\n%s\n" % name
        for failure in failures:
            text += ("  %s %s %s" % failure).rstrip() + "\n"
    return text


def record(runner, folder, table, out, *names):
    rows = read_table(table)
    known = read_record(out) if os.path.exists(out) else {}
    chosen = [row for row in rows if not names or row.name in names]
    for row, run in run_all(runner, folder, built_rows(folder, chosen)):
        known[row.name] = run.failures + run.undecided
        print("%s: %s" % (row.name, fault_of(row, run) or "right"), flush=True)
        in_order = {each.name: known[each.name] for each in rows if each.name in known}
        with open(out, "w") as file:
            file.write(record_text(in_order))
    return 0


def main():
    modes = {"check": check, "record": record}
    if len(sys.argv) < 6 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    return modes[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
