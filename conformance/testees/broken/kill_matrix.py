# SPDX-License-Identifier: MIT
"""Runs the suite on every broken consumer, and finds the cases that fail it.

  kill_matrix.py check RUNNER FOLDER c|foreign    each consumer with the cases of its header; one
                                                  that does not fail is a fault
  kill_matrix.py measure RUNNER FOLDER c|foreign  each consumer with every case, twice; the same

FOLDER has broken.json, which `patches.py table` writes, and the programs: broken_<name>, and
c_consumer, which is correct. The consumers are those of the C example (c), or of other designs
(foreign). One whose compiler was missing when it was built is left out and reported. With
KMES_SHARE=N in the environment, `check` plays one Nth of them, another each day (UTC).

The result is written to kill-matrix.txt in the folder of TEST_UNDECLARED_OUTPUTS_DIR, which Bazel
keeps as test.outputs. It is printed if there is no such folder.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time

# A broken consumer may hang, or spin, in every case. A small scale shortens that, and can only add
# failures.
TIMEOUT_SCALE = 0.1 * float(os.environ.get("KMES_TIMEOUT_SCALE") or 1)
# The words of a case about a walk that its time limit has ended, and the scale with enough time.
IN_PART = "pass: in part: "
WHOLE_SCALE = 4
# Cases that compare processor times. They blame no consumer on a busy machine.
COMPARES_TIMES = "/idle-"
JOBS = 2
MODES, KINDS = ("check", "measure"), ("c", "foreign")
# A search ends with its first finding. A slow machine needs this much time.
SEARCH_SECONDS = "120"
DAY_SECONDS = 24 * 60 * 60
RIGHT_RUNS = 4  # of the C example: a case that fails it at this scale is a time limit, for anybody
HEAD = """# SPDX-License-Identifier: MIT
#
# Which of the cases that were played fail which broken consumer; written by kill_matrix.py. `*`: a
# case that is meant for it. `~`: not for sure (a race that the consumer may win, a time limit that
# was passed).
"""


def catchable(entry):
    return not entry["case"].startswith("-")


def is_built(folder, entry):
    """False if the compiler of its language was missing (build_or_say.sh)."""
    path = os.path.join(folder, "right_%s.toolchain" % entry["design"])
    if not os.path.exists(path):
        return True
    with open(path) as file:
        return file.read() != "none\n"


def today():
    """The number of the day (UTC)."""
    return int(time.time()) // DAY_SECONDS


def share_of_today(entries):
    """The part of them that KMES_SHARE selects."""
    shares = int(os.environ.get("KMES_SHARE") or 1)
    number = today() % shares
    if shares > 1:
        print("share %d of %d, today's" % (number + 1, shares), flush=True)
    return entries[number::shares]


def options_of(runner):
    """Every level, and the cases that a run has to be asked for."""
    usage = subprocess.run([runner, "--help"], stdout=subprocess.PIPE, text=True).stdout
    return ["--level", "robust"] + (["--shared"] if "--shared" in usage else [])


def run_suite(runner, program, cases=(), scale=TIMEOUT_SCALE, form="A"):
    """Returns the ids of all cases that ran, the ids of those that failed, in the order of the
    suite, and the results of the others by id. `form` is that of the layout."""
    # On standard output alone: a report file adds a console report, for whose traces each failed
    # case would run once more.
    command = [runner, "--no-preflight", "--layout", form, "--report", "json"]
    command += ["--jobs", "1"]  # JOBS consumers run at the same time
    command += ["--timeout-scale", "%g" % scale] + options_of(runner)
    for case in cases:
        command += ["--filter", case]
    if any(case.endswith("/soak") for case in cases):
        command += ["--soak", SEARCH_SECONDS]
    if any("/explored-" in case for case in cases):
        command += ["--explore", SEARCH_SECONDS]
    done = subprocess.run(
        command + ["--", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        ran = json.loads(done.stdout)["cases"]
    except ValueError:
        sys.exit("%s\nthe runner wrote no report, status %d" % (done.stderr, done.returncode))
    other = {c["id"]: c["verdict"] + ": " + c["message"] for c in ran if c["verdict"] != "fail"}
    return [c["id"] for c in ran], [c["id"] for c in ran if c["verdict"] == "fail"], other


def run_all(runner, folder, entries, cases_of):
    """{name: the result of run_suite}."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        futures = {
            entry["name"]: pool.submit(
                run_suite, runner, os.path.join(folder, "broken_" + entry["name"]), cases_of(entry)
            )
            for entry in entries
        }
        return {name: future.result() for name, future in futures.items()}


def undecided(other):
    """The cases that did not fail, but have no verdict because the machine was busy."""
    return [
        case
        for case, what in other.items()
        if what.startswith(IN_PART) or (COMPARES_TIMES in case and what.startswith("pass"))
    ]


def play_whole(runner, folder, entries, results):
    """Plays the undecided cases again, one at a time."""
    for entry in entries:
        _, failed, other = results[entry["name"]]
        program = os.path.join(folder, "broken_" + entry["name"])
        for case in undecided(other):
            print("%s: %s: %s; again, with more time" % (entry["name"], case, other.pop(case)))
            _, failed_now, other_now = run_suite(runner, program, [case], WHOLE_SCALE)
            failed += failed_now
            other.update(other_now)


def run_twice(runner, folder, entries):
    """Two results of run_all, and the cases that failed the correct consumer in between."""
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


def mark_of(entry, case, times, runs, doubtful):
    if case == entry["case"] and times == runs:
        return "*"
    return "~" if times < runs or case in doubtful else " "


def matrix_text(entries, runs, doubtful=()):
    """The cases that fail each entry, in each of `runs`, in the form of run_all."""
    text = HEAD
    for entry in entries:
        text += "\n%s\n" % entry["name"]
        failed = [run[entry["name"]][1] for run in runs]
        for case in dict.fromkeys(case for one in failed for case in one):
            times = sum(case in one for one in failed)
            text += "  %s %s\n" % (mark_of(entry, case, times, len(runs), doubtful), case)
    return text


def keep(text):
    folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if not folder:
        print(text)
        return
    with open(os.path.join(folder, "kill-matrix.txt"), "w") as file:
        file.write(text)


def cases_of(entry):
    """The case that is meant for it, and others that fail it in every run."""
    return [entry["case"]] + entry["also"]


def faults_of(entries, results):
    """The cases of cases_of that did not fail their consumer."""
    return [
        "%s: %s does not fail it (%s)"
        % (entry["name"], case, results[entry["name"]][2].get(case, "not run"))
        for entry in entries
        for case in cases_of(entry)
        if case not in results[entry["name"]][1]
    ]


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in MODES or sys.argv[4] not in KINDS:
        sys.exit(__doc__)
    mode, runner, folder, kind = sys.argv[1:]
    with open(os.path.join(folder, "broken.json")) as file:
        named = [each for each in json.load(file) if (each["design"] is None) == (kind == "c")]
    entries = [entry for entry in named if is_built(folder, entry)]
    if len(entries) < len(named):
        print("SKIPPED: %d, for want of a compiler" % (len(named) - len(entries)))
    if mode == "check":
        entries = share_of_today(entries)
    known = [entry for entry in entries if catchable(entry)]
    if mode == "measure":
        runs, doubtful = run_twice(runner, folder, entries)
        keep(matrix_text(entries, runs, doubtful))
        # A case that only some runs have (a search) is not among them.
        results = runs[0]
        ran = results[entries[0]["name"]][0]
        for entry in entries:
            entry["also"] = [case for case in entry["also"] if case in ran]
    else:
        results = run_all(runner, folder, known, cases_of)
        play_whole(runner, folder, known, results)
        keep(matrix_text(known, [results]))
    faults = faults_of(known, results)
    for fault in faults:
        print("FAIL: " + fault)
    print("%d broken consumers, %d faults" % (len(entries), len(faults)))
    return 1 if faults or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
