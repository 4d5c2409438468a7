# SPDX-License-Identifier: MIT
"""flake.py: no correct consumer is ever blamed, however often it runs.

    python3 flake.py --suite SUITE --programs FOLDER --counts FILE [--share N/M] [GLOB...]

puts each entry of table.bzl through the suite: 20 default runs and 200 with `--explore off`, idle
and with every core busy, each run with a seed and an order of the cases of its own. It counts what
was wrong (everything but exit status 0), prints a line for each consumer and a total, and keeps the
counts in FILE, so that an interrupted run can continue. The outputs of wrong runs are in
FILE.wrong/.

    --share N/M   the Nth of M shares of the table; N may be `today`: another share each day
    --once        one default run of each, idle, and no counts kept: what CI does
    --case GLOB   with --once: only the cases that match, instead of the default run
    --jobs N      N suites at once while the cores are busy anyway, or with --once
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT_OUT = 77  # the exit status of a program that could not be built, or not for this machine
RUNS = {"default": 20, "explore-off": 200}
LOADS = ["idle", "busy"]


def table():
    scope = {}
    with open(os.path.join(HERE, "table.bzl")) as source:
        exec(source.read(), scope)  # Starlark that is Python, too
    return scope["CORRECT"]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--counts")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--case", metavar="GLOB")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--level", default="erratum")
    parser.add_argument("globs", nargs="*")
    arguments = parser.parse_args()
    if not arguments.once and not arguments.counts:
        parser.error("--counts FILE says where the counts are kept")
    if arguments.case and not arguments.once:
        parser.error("--case needs --once: the counts are of whole runs")
    return arguments


def chosen(arguments):
    which, shares = arguments.share.split("/")
    shares = int(shares)
    number = time.gmtime().tm_yday % shares if which == "today" else int(which) - 1
    entries = table()[number::shares]
    if arguments.globs:
        globs = arguments.globs
        entries = [e for e in entries if any(fnmatch.fnmatch(e["name"], g) for g in globs)]
    print("share %d of %d: %d consumers" % (number + 1, shares, len(entries)), flush=True)
    return entries


def command_of(entry, programs):
    program = os.path.join(os.path.abspath(programs), entry["name"] + ".program")
    return [word.replace("{program}", program) for word in entry["run"]]


def is_left_out(entry, programs):
    """Started without the suite, a program that cannot run here says so; others get ENOSYS."""
    if not entry["build"]:
        return False
    program = os.path.join(os.path.abspath(programs), entry["name"] + ".program")
    try:
        ran = subprocess.run([program], capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return False  # this machine has kmes_attach, or the program waits for it
    return ran.returncode == LEFT_OUT


class Busy:
    """Keeps every core busy while it is entered."""

    def __enter__(self):
        loop = [sys.executable, "-c", "while True: pass"]
        self.loops = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)]

    def __exit__(self, *unused):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class Counts:
    """Runs and wrong verdicts by consumer, kind of run and load; kept in a file after each run."""

    def __init__(self, path):
        # Follow links, so that the file is replaced and not the link.
        self.path, self.cells, self.lock = path and os.path.realpath(path), {}, threading.Lock()
        if self.path and os.path.isfile(self.path):
            with open(self.path) as kept:
                self.cells = json.load(kept)

    def of(self, key):
        return self.cells.get("/".join(key), [0, 0])

    def add(self, key, was_wrong, said):
        with self.lock:
            runs, wrong = self.of(key)
            self.cells["/".join(key)] = [runs + 1, wrong + was_wrong]
            if not self.path:
                return
            # A device or a FIFO is written to, not replaced.
            is_file = os.path.isfile(self.path) or not os.path.exists(self.path)
            with open(self.path + ".new" if is_file else self.path, "w") as new:
                json.dump(self.cells, new, indent=0, sort_keys=True)
            if is_file:
                os.replace(self.path + ".new", self.path)
            if was_wrong:
                os.makedirs(self.path + ".wrong", exist_ok=True)
                name = "%s-%d" % ("-".join(key), runs)
                with open(os.path.join(self.path + ".wrong", name), "w") as text:
                    text.write(said)


class Runner:
    def __init__(self, arguments, counts):
        self.arguments, self.counts = arguments, counts
        usage = subprocess.run([arguments.suite, "--help"], capture_output=True, text=True).stdout
        self.can_explore = "--explore" in usage
        if not self.can_explore:
            print("this suite has no --explore: both kinds of runs are the same", flush=True)

    def run(self, entry, key):
        """One run of the suite; the number of the run gives the seed and the order of the cases."""
        number = self.counts.of(key)[0]
        options = ["--level", self.arguments.level]
        if number > 0:
            options += ["--seed", str(number + 1), "--shuffle", str(number)]
        if key[1] == "explore-off" and self.can_explore:
            options += ["--explore", "off"]
        if self.arguments.case:
            options += ["--filter", self.arguments.case]
        command = [self.arguments.suite] + options + ["--"]
        command += command_of(entry, self.arguments.programs)
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
        wrong = ran.returncode != 0
        said = "%s\nexit status %d\n%s" % (" ".join(command), ran.returncode, ran.stdout)
        self.counts.add(key, int(wrong), said)
        if wrong:
            lines = [line for line in ran.stdout.splitlines() if not line.rstrip().endswith("pass")]
            print("WRONG: %s: %s" % (" ".join(key), said.split("\n", 1)[0]), flush=True)
            print("\n".join("    " + line for line in lines[-60:]), flush=True)
        return wrong


def line_of(entry, counts, kinds, loads):
    parts, total = [], [0, 0]
    for kind in kinds:
        for load in loads:
            runs, wrong = counts.of((entry["name"], kind, load))
            parts.append("%s %s %d/%d" % (load, kind, wrong, runs))
            total = [total[0] + runs, total[1] + wrong]
    return "%-24s %s" % (entry["name"], ", ".join(parts)), total


def run_all(arguments, entries, counts):
    kinds = ["default"] if arguments.once else list(RUNS)
    loads = ["idle"] if arguments.once else LOADS
    runner = Runner(arguments, counts)
    for load in loads:
        jobs = arguments.jobs if load == "busy" or arguments.once else 1
        for kind in kinds:
            for number in range(1 if arguments.once else RUNS[kind]):
                # Every consumer gets the same number of runs, so that an early end says most.
                due = [e for e in entries if counts.of((e["name"], kind, load))[0] <= number]
                with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                    run = lambda e: runner.run(e, (e["name"], kind, load))
                    if load == "busy":
                        with Busy():
                            list(pool.map(run, due))
                    else:
                        list(pool.map(run, due))
    return kinds, loads


def main():
    arguments = parse()
    entries = []
    for entry in chosen(arguments):
        if is_left_out(entry, arguments.programs):
            print("SKIPPED: %s was not built, or is not for this machine" % entry["name"])
        else:
            entries.append(entry)
    if not entries:
        print("nothing was chosen")
        return 2
    counts = Counts(None if arguments.once else arguments.counts)
    kinds, loads = run_all(arguments, entries, counts)
    runs = wrong = 0
    for entry in entries:
        line, total = line_of(entry, counts, kinds, loads)
        print(line)
        runs, wrong = runs + total[0], wrong + total[1]
    print("%d consumers, %d runs, %d wrong verdicts" % (len(entries), runs, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
