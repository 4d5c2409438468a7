# SPDX-License-Identifier: MIT
"""Runs the suite on every broken consumer: which cases fail which.

  kill_matrix.py check RUNNER TABLE FOLDER MATRIX   each is failed by the case meant for it, and by
                                                    the searches that TABLE says find it, too
  kill_matrix.py compare RUNNER TABLE FOLDER MATRIX the whole suite on each, against MATRIX
  kill_matrix.py write RUNNER TABLE FOLDER MATRIX   the same twice, and writes MATRIX
  kill_matrix.py add RUNNER TABLE FOLDER MATRIX     the same, for those that MATRIX does not have

TABLE is table.bzl or foreign.bzl, MATRIX the one that belongs to it, or `-`: then `check` asks only
the suite.
FOLDER has the programs (broken_<name>, and c_consumer, which is right). One whose compiler was
missing when it was built is left out, and that is said. In MATRIX `*` marks the
case that is meant, `~` one that does not fail for sure. A listed case that does not fail any more
is a failure of `compare`. One that fails and is not listed is only printed: on a slow machine more
of them pass a time limit.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

# A broken consumer may hang, or spin, in every case. A small scale makes that short; all that it
# can do is to fail more.
TIMEOUT_SCALE = 0.1 * float(os.environ.get("KMES_TIMEOUT_SCALE") or 1)
# What a case says of a walk that it has ended by time, and the scale at which there is enough.
IN_PART = "pass: in part: "
WHOLE_SCALE = 4
JOBS = 2
# A search ends with what it finds; on a slow machine it gets the time that it needs.
SEARCH_SECONDS = "120"
RIGHT_RUNS = 4  # of the C example: a case that fails it at this scale is a time limit, for anybody
HEAD = """# SPDX-License-Identifier: MIT
#
# Which cases fail which broken consumer; written by kill_matrix.py. `*`: the case that is meant for
# it. `~`: not for sure (a race that the consumer may win, a time limit that was passed).
"""


def catchable(entry):
    return not entry["case"].startswith("-")


def is_built(folder, entry):
    """False where the compiler of its language was missing (build_mistakes.sh)."""
    path = os.path.join(folder, entry["name"].partition("-")[0] + ".toolchain")
    if "language" not in entry or not os.path.exists(path):
        return True
    with open(path) as file:
        return file.read() != "none\n"


def options_of(runner):
    """Every level, and the cases that a run has to be asked for."""
    usage = subprocess.run([runner, "--help"], stdout=subprocess.PIPE, text=True).stdout
    return ["--level", "robust"] + (["--shared"] if "--shared" in usage else [])


def run_suite(runner, program, cases=(), scale=TIMEOUT_SCALE):
    """The ids of all cases that ran, of those that failed, in the order of the suite; and what
    the others came to, by id."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [runner, "--report", "json", "--report-file", report]
        command += ["--timeout-scale", "%g" % scale] + options_of(runner)
        for case in cases:
            command += ["--filter", case]
        if any(case.endswith("/soak") for case in cases):
            command += ["--soak", SEARCH_SECONDS]
        if any("/explored-" in case for case in cases):
            command += ["--explore", SEARCH_SECONDS]
        done = subprocess.run(
            command + ["--", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if not os.path.exists(report):
            sys.exit("%s\nthe runner wrote no report, status %d" % (done.stdout, done.returncode))
        with open(report) as file:
            ran = json.load(file)["cases"]
    other = {c["id"]: c["verdict"] + ": " + c["message"] for c in ran if c["verdict"] != "fail"}
    return [c["id"] for c in ran], [c["id"] for c in ran if c["verdict"] == "fail"], other


def run_all(runner, folder, entries, cases_of):
    """{name: what run_suite gives}."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        futures = {
            entry["name"]: pool.submit(
                run_suite, runner, os.path.join(folder, "broken_" + entry["name"]), cases_of(entry)
            )
            for entry in entries
        }
        return {name: future.result() for name, future in futures.items()}


def play_whole(runner, folder, entries, results):
    """Those again, one at a time, of which a busy machine has played a case in part."""
    for entry in entries:
        _, failed, other = results[entry["name"]]
        program = os.path.join(folder, "broken_" + entry["name"])
        for case in [each for each in other if other[each].startswith(IN_PART)]:
            print("%s: %s: %s; again, with more time" % (entry["name"], case, other.pop(case)))
            _, failed_now, other_now = run_suite(runner, program, [case], WHOLE_SCALE)
            failed += failed_now
            other.update(other_now)


def run_twice(runner, folder, entries):
    """What run_all gives, twice, and the cases that failed the right consumer in between."""
    runs, doubtful = [], set()
    for _ in range(2):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            right = [
                pool.submit(run_suite, runner, os.path.join(folder, "c_consumer"))
                for _ in range(RIGHT_RUNS)
            ]
            runs.append(run_all(runner, folder, entries, lambda entry: ()))
            doubtful.update(case for future in right for case in future.result()[1])
    return runs, doubtful


def read_matrix(path):
    """{name: {id: mark}}; marks are `*`, `~` and the empty one."""
    matrix, name = {}, None
    with open(path) as file:
        for line in file.read().splitlines():
            if line.startswith("#") or not line:
                continue
            if not line.startswith(" "):
                name = line
                matrix[name] = {}
            else:
                mark, _, case = line.strip().rpartition(" ")
                matrix[name][case] = mark
    return matrix


def mark_of(entry, case, times, runs, doubtful):
    if case == entry["case"] and times == runs:
        return "*"
    return "~" if times < runs or case in doubtful else " "


def write_matrix(path, entries, runs, doubtful):
    ids = runs[0][entries[0]["name"]][0]
    killed = {case for run in runs for _, failed, _ in run.values() for case in failed}
    with open(path, "w") as file:
        file.write(HEAD)
        for entry in entries:
            file.write("\n%s\n" % entry["name"])
            failed = [run[entry["name"]][1] for run in runs]
            for case in ids:
                times = sum(case in one for one in failed)
                if times == 0:
                    continue
                mark = mark_of(entry, case, times, len(runs), doubtful)
                file.write("  %s %s\n" % (mark, case))
        file.write("\n# Cases that failed none of them:\n")
        for case in ids:
            if case not in killed:
                file.write("#   %s\n" % case)


def add_to_matrix(path, entries, runs, doubtful):
    """Writes the blocks of `entries` behind the last one of the file."""
    with open(path) as file:
        head, mark, rest = file.read().partition("\n# Cases")
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as part:
        write_matrix(part.name, entries, runs, doubtful)
        blocks = part.read()[len(HEAD) :].partition("\n# Cases")[0]
    killed = {line.split()[-1] for line in blocks.splitlines() if line.startswith(" ")}
    left = [line for line in rest.splitlines(True) if line.strip("# \n") not in killed]
    with open(path, "w") as file:
        file.write(head + blocks + mark + "".join(left))


def cases_of(entry, searches):
    """The case that is meant for it, and the searches that find it, too."""
    name = entry["name"]
    return [entry["case"]] + [search for search, names in searches.items() if name in names]


def check(matrix, entries, results, searches):
    """What is wrong when each ran with the cases of cases_of."""
    faults = []
    for entry in filter(catchable, entries):
        name, case = entry["name"], entry["case"]
        for each in cases_of(entry, searches):
            if each not in results[name][1]:
                what = results[name][2].get(each, "not run")
                faults.append("%s: %s does not fail it (%s)" % (name, each, what))
        if matrix is not None and matrix.get(name, {}).get(case) != "*":
            faults.append("%s: the matrix has no '* %s'; write it again" % (name, case))
    names = [entry["name"] for entry in entries]
    if matrix is not None and [name for name in matrix if name in names] != names:
        faults.append("the matrix has other names than the table; write it again")
    return faults


def compare(matrix, entries, results, searches):
    """What is wrong when each ran with the whole suite."""
    faults = check(matrix, entries, results, searches)
    for entry in entries:
        name = entry["name"]
        listed, failed = matrix.get(name, {}), results[name][1]
        print("%-32s fails %d of %d" % (name, len(failed), len(results[name][0])))
        for case in failed:
            print("    %s%s" % (case, "" if case in listed else "   (not in the matrix)"))
        faults += [
            "%s: %s is listed and does not fail it" % (name, case)
            for case, mark in listed.items()
            if mark != "~" and case not in failed
        ]
    return faults


def main():
    if len(sys.argv) != 6 or sys.argv[1] not in ("check", "compare", "write", "add"):
        sys.exit(__doc__)
    mode, runner, table, folder, path = sys.argv[1:]
    scope = {}
    with open(table) as file:
        exec(file.read(), scope)  # Starlark that is Python, too
    named, searches = scope["BROKEN"], scope.get("FOUND_BY_SEARCH", {})
    entries = [entry for entry in named if is_built(folder, entry)]
    if len(entries) < len(named):
        print("SKIPPED: %d, for want of a compiler" % (len(named) - len(entries)))
    if mode == "write":
        if len(entries) < len(named):
            sys.exit("the matrix is written with all compilers at hand, or not at all")
        runs, doubtful = run_twice(runner, folder, entries)
        write_matrix(path, entries, runs, doubtful)
        results, matrix = runs[0], read_matrix(path)
        faults = check(matrix, entries, results, searches)
    elif mode == "add":
        entries = [entry for entry in entries if entry["name"] not in read_matrix(path)]
        runs, doubtful = run_twice(runner, folder, entries)
        add_to_matrix(path, entries, runs, doubtful)
        added = {entry["name"]: read_matrix(path)[entry["name"]] for entry in entries}
        faults = check(added, entries, runs[0], searches)
    elif mode == "compare":
        matrix = read_matrix(path)
        results = run_all(runner, folder, entries, lambda entry: ())
        faults = compare(matrix, entries, results, searches)
    else:
        matrix = None if path == "-" else read_matrix(path)
        known = [entry for entry in entries if catchable(entry)]
        results = run_all(runner, folder, known, lambda entry: cases_of(entry, searches))
        play_whole(runner, folder, known, results)
        faults = check(matrix, entries, results, searches)
    for fault in faults:
        print("FAIL: " + fault)
    print("%d broken consumers, %d faults" % (len(entries), len(faults)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
