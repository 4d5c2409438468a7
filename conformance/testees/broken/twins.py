# SPDX-License-Identifier: MIT
"""Compares broken C examples with their twins in form D of the layout (docs/layouts.md).

  twins.py RUNNER EXAMPLE TWIN PATCHES EXCEPTIONS [COUNT]

A twin is the source EXAMPLE after the diff TWIN and a patch of the folder PATCHES. Both are built
with $CC (cc). Each case of the patch's header must fail the example in form A and the twin in form
D. EXCEPTIONS names the patches for which this does not hold, with the reasons. COUNT patches are
compared, others each day; 0 or nothing: all."""

import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import kill_matrix
import patches

EXAMPLE_FORM, TWIN_FORM = "A", "D"
DAY_SECONDS = kill_matrix.DAY_SECONDS
NO_TWIN, DIFFERS = "no twin", "differs"
# A search may take minutes until it finds nothing. A short comparison leaves it out.
SEARCHES = ("/explored-", "/soak")


@dataclass
class Programs:
    """How to build a consumer, and where."""

    example: str
    twin: str
    folder: Path

    def build(self, path, entry, form):
        """The program of a patch in a form."""
        name = f"{entry['name']}-{form}"
        source, program = self.folder / f"{name}.c", self.folder / name
        arguments = ["apply", path, self.example, str(source)]
        patches.main(arguments + (["--twin", self.twin] if form == TWIN_FORM else []))
        command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-pthread", "-o", program, source]
        subprocess.run(command, check=True)
        return str(program)


def read_exceptions(path):
    """{name: (kind, reason)}."""
    exceptions = {}
    for number, line in enumerate(patches.read(path).splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        columns = [each.strip() for each in line.split("|")]
        if len(columns) != 3 or columns[1] not in (NO_TWIN, DIFFERS) or not columns[2]:
            right = f"'NAME | {NO_TWIN} or {DIFFERS} | reason'"
            sys.exit(f"{path}:{number}: '{line}'; expected {right}")
        exceptions[columns[0]] = tuple(columns[1:])
    return exceptions


def has_twin(path, example, twin):
    """False if the patch does not fit the source of the twin."""
    try:
        patches.patched(path, patches.parse_file(path), patches.twin_of(twin, example))
    except patches.Failed:
        return False
    return True


def faults_of_exceptions(exceptions, paths, example, twin):
    """Each exception has a patch, and is needed as far as the patches show it."""
    faults = []
    for name, (kind, _) in exceptions.items():
        if name not in paths:
            faults.append(f"{name}: no patch has this name; remove the exception")
        elif has_twin(paths[name], example, twin) == (kind == NO_TWIN):
            fits = "fits" if kind == NO_TWIN else "does not fit"
            faults.append(f"{name}: '{kind}' is wrong: its patch {fits} the twin")
    for name, path in paths.items():
        if name not in exceptions and not has_twin(path, example, twin):
            faults.append(f"{name}: its patch does not fit the twin; expected an exception")
    return faults


def failed_cases(runner, program, cases, form):
    """The ids of the cases that failed it, and the results of the others."""
    _, failed, other = kill_matrix.run_suite(runner, program, cases, form=form)
    for case in kill_matrix.undecided(other):
        scale = kill_matrix.WHOLE_SCALE
        _, failed_now, other_now = kill_matrix.run_suite(runner, program, [case], scale, form)
        failed += failed_now
        other.update(other_now)
    return failed, other


def compare(runner, programs, path, entry):
    """A fault for each case and form that does not fail its consumer."""
    faults = []
    for form in (EXAMPLE_FORM, TWIN_FORM):
        program = programs.build(path, entry, form)
        cases = kill_matrix.cases_of(entry)
        failed, other = failed_cases(runner, program, cases, form)
        for case in [case for case in cases if case not in failed]:
            verdict = other.get(case, "not run")
            faults.append(f"{entry['name']}: in form {form}, {case} does not fail it ({verdict})")
    return faults


def judge(entry, faults, exceptions):
    """The faults that no exception covers; an exception that is not needed is one."""
    if entry["name"] not in exceptions:
        return faults
    in_twin = [fault for fault in faults if f": in form {TWIN_FORM}, " in fault]
    others = [fault for fault in faults if fault not in in_twin]
    needless = f"{entry['name']}: '{DIFFERS}' is wrong: its twin fails too; remove the exception"
    return others + ([] if in_twin else [needless])


def is_search(entry):
    return any(word in case for case in kill_matrix.cases_of(entry) for word in SEARCHES)


def share_of_today(entries, count):
    """`count` of them, at random by the day (UTC); all if it is 0."""
    if not count:
        return entries
    day = kill_matrix.today()
    chosen = random.Random(day).sample([e for e in entries if not is_search(e)], count)
    print(f"day {day}: {', '.join(entry['name'] for entry in chosen)}", flush=True)
    return chosen


def main():
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    runner, example, twin, folder, exceptions_path = sys.argv[1:6]
    count = int(sys.argv[6]) if len(sys.argv) == 7 else 0
    exceptions = read_exceptions(exceptions_path)
    paths = {path.stem: str(path) for path in sorted(Path(folder).glob("*.patch"))}
    faults = faults_of_exceptions(exceptions, paths, example, twin)
    entries = [patches.entry_of(path) for path in paths.values()]
    entries = [
        entry
        for entry in entries
        if kill_matrix.catchable(entry) and has_twin(paths[entry["name"]], example, twin)
    ]
    chosen = share_of_today(entries, count)
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(
        kill_matrix.JOBS
    ) as pool:
        programs = Programs(example, twin, Path(scratch))
        futures = {
            pool.submit(compare, runner, programs, paths[entry["name"]], entry): entry
            for entry in chosen
        }
        for future in concurrent.futures.as_completed(futures):
            entry = futures[future]
            found = judge(entry, future.result(), exceptions)
            print(f"{entry['name']}: {len(found)} faults", flush=True)
            faults += found
    for fault in faults:
        print("FAIL: " + fault)
    print(f"{len(chosen)} of {len(paths)} broken consumers compared, {len(faults)} faults")
    return 1 if faults or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
