# SPDX-License-Identifier: MIT
"""`tools/kmes fuzz`, after the build (tools/lib/fuzz.sh). Runs an engine on a target with a status
line, and then prints the results: the speed compared with an empty target, the coverage of the
core, the new files of the corpus, and each crash with the command that repeats it.

Exit status: 0 nothing found; 1 a crash was found; 3 the engine does not run."""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import coverage
import engines

MINIMISE_SECONDS = 20
SCRIPT_MARK = "the script, for tools/kmes replay:\n"


class Job:
    """One run: its arguments, and its folder."""

    def __init__(self, options):
        self.target = options.target
        self.binary = Path(options.binary).resolve()
        self.seconds = options.seconds
        self.jobs = options.jobs
        self.most_bytes = options.most_bytes
        self.root = Path(options.root).resolve()
        self.corpus = self.root / "fuzz/corpora" / options.target
        dictionary = self.root / "fuzz/dictionaries" / f"{options.target}.dict"
        self.dictionary = dictionary if dictionary.is_file() else None
        self.mutator = options.mutator and Path(options.mutator).resolve()
        started = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self.folder = self.root / "fuzz-out" / options.target / f"{options.engine}-{started}"
        self.new = self.folder / "new"
        self.crashes = self.folder / "crashes"
        for folder in (self.new, self.crashes):
            folder.mkdir(parents=True)

    def keep(self, file, folder=None, prefix=""):
        data = file.read_bytes()
        kept = (folder or self.new) / (prefix + hashlib.sha1(data).hexdigest())
        kept.write_bytes(data)
        return kept

    def shown(self, path):
        return str(Path(path).relative_to(self.root))


def watch(engine, processes, job):
    """Runs until the engine ends, or Ctrl-C. Returns the seconds, and whether it was Ctrl-C."""
    start = time.monotonic()
    is_interrupted = False
    is_screen = sys.stdout.isatty()
    last = 0.0
    try:
        while any(process.poll() is None for process in processes):
            time.sleep(0.5)
            seconds = time.monotonic() - start
            if seconds - last < (1 if is_screen else 10):
                continue
            last = seconds
            status = engine.update()
            line = (f"{job.target}: {seconds:.0f} of {job.seconds} s, "
                    f"{status.executions} executions, {status.edges} edges, "
                    f"{status.corpus} inputs, {status.crashes} crashes")
            print(f"\r{line:<78}" if is_screen else line, end="" if is_screen else "\n",
                  flush=True)
    except KeyboardInterrupt:
        is_interrupted = True
        for process in processes:
            process.terminate()
    for process in processes:
        process.wait()
    if is_screen:
        print()
    engine.update()
    return max(time.monotonic() - start, 1e-9), is_interrupted


def run_once(job, file):
    """Returns the error text of a run of one input; an empty one if it passes."""
    command = [str(job.triage), f"-timeout={engines.INPUT_SECONDS}",
               f"-rss_limit_mb={engines.MEMORY_MB}", f"-artifact_prefix={job.folder}/again-",
               str(file)]
    run = subprocess.run(command, capture_output=True, env=engines.environment(), text=True,
                         errors="replace", stdin=subprocess.DEVNULL, check=False)
    return run.stderr if run.returncode else ""


def signature(words):
    """Returns a key that is equal for inputs with the same bug: the first words of the error,
    without numbers.
    """
    for pattern in (r"^kmes fuzz: (.*)$", r"^.*runtime error: (.*)$",
                    r"^.*ERROR: AddressSanitizer: (\S+)", r"^.*ERROR: libFuzzer: (.*)$"):
        found = re.search(pattern, words, re.MULTILINE)
        if found:
            text = re.sub(r"0x[0-9a-f]+|\d+", "N", found.group(1))
            place = re.search(r"^\s+#\d+ .* in (\S+) .*/(?:kmes|props|conformance)/", words,
                              re.MULTILINE)
            # A broken property names itself; the place where it was found differs from run to run.
            return re.split(r"[:;]", text)[0] + ("" if "kmes fuzz" in pattern or not place else
                                                 " in " + place.group(1))
    return "it ends otherwise"


def first_line(words):
    found = re.search(r"^(kmes fuzz: .*|.*runtime error: .*|.*ERROR: .*)$", words, re.MULTILINE)
    return found.group(1)[:300] if found else "it fails"


def minimise(job, file, words, name):
    """Makes a smaller input that fails. Returns its file, and the command that repeats it."""
    if SCRIPT_MARK in words and job.replay:
        script = job.crashes / f"{name}.kmes"
        text = words.split(SCRIPT_MARK, 1)[1]
        text = text.split("\n==", 1)[0]
        script.write_text(text.rstrip("\n") + "\n")
        run = subprocess.run([str(job.replay), "--minimise", str(script)], capture_output=True,
                             text=True, errors="replace", check=False)
        start = run.stdout.find("kmes-script 1")
        if start >= 0:
            script.write_text(run.stdout[start:])
        return f"tools/kmes replay {job.shown(script)}"
    smallest = job.crashes / f"{name}.minimised"
    subprocess.run(
        [str(job.triage), "-minimize_crash=1", f"-max_total_time={MINIMISE_SECONDS}",
         f"-exact_artifact_path={smallest}", f"-timeout={engines.INPUT_SECONDS}", str(file)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=engines.environment(), check=False)
    if not smallest.is_file() or not run_once(job, smallest):
        shutil.copyfile(file, smallest)
    return f"tools/kmes fuzz {job.target} --replay {job.shown(smallest)}"


def report_crashes(job, files):
    """Prints a paragraph for each bug."""
    bugs = {}
    for file in files:
        words = run_once(job, file)
        bugs.setdefault(signature(words) if words else "does not fail again", []).append(
            (file, words))
    for number, (_, inputs) in enumerate(sorted(bugs.items()), 1):
        file, words = min(inputs, key=lambda one: one[0].stat().st_size)
        if not words:
            print(f"crash {number}: {len(inputs)} inputs that do not fail again by themselves "
                  f"(too slow, or too much memory): {job.shown(file)}")
            continue
        print(f"crash {number}: {first_line(words)}")
        print(f"  {len(inputs)} inputs; the smallest: {job.shown(file)}")
        print(f"  again:  tools/kmes fuzz {job.target} --replay {job.shown(file)}")
        print(f"  minimised:  {minimise(job, file, words, f'bug-{number}')}")


def report_coverage(job, profile_binary):
    scratch = job.folder / "profile"
    scratch.mkdir()
    error = coverage.replay(profile_binary, [job.corpus, job.new], scratch)
    if error:
        print(f"coverage: the replay does not run: {error}")
        return
    found = coverage.measure(job.root, [profile_binary], scratch)
    if coverage.is_of_socket(job.target):
        print("coverage of the socket (kmes/user): " +
              coverage.read(job.root, found, coverage.IS_SOCKET).text())
        shutil.rmtree(scratch)
        return
    print("coverage of the core (kmes/*.c): " + coverage.read(job.root, found).text())
    print("  report: " + job.shown(coverage.write_html(job.root, found, job.folder / "html")))
    shutil.rmtree(scratch)


def parse(arguments):
    parser = argparse.ArgumentParser(description="one run of a fuzzer, for tools/kmes fuzz")
    parser.add_argument("--root", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--engine", required=True, choices=sorted(engines.ENGINES))
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--most-bytes", type=int, default=2048)
    parser.add_argument("--binary", required=True, help="the target with the engine")
    parser.add_argument("--empty", required=True, help="the empty target with the engine")
    parser.add_argument("--profile", required=True, help="the target of --config=profile")
    parser.add_argument("--triage", required=True, help="the target with libFuzzer")
    parser.add_argument("--replay", help="the player of scripts")
    parser.add_argument("--mutator", help="AFL++'s mutator of scripts")
    return parser.parse_args(arguments)


def interrupt(_signal, _frame):
    raise KeyboardInterrupt


def main():
    # As Ctrl-C: the engine ends too, and the results are printed.
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(parse(sys.argv[1:]))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"tools/kmes: fuzz: {error}", file=sys.stderr)
        return 3


def run(options):
    job = Job(options)
    job.triage = Path(options.triage).resolve()
    job.replay = options.replay and Path(options.replay).resolve()
    engine = engines.ENGINES[options.engine](job)
    processes = engine.start()
    seconds, is_interrupted = watch(engine, processes, job)
    crashes = engine.collect()
    problem = engine.problem()
    if not problem and not crashes and not is_interrupted and seconds < job.seconds / 2:
        ends = ", ".join(str(process.returncode) for process in processes)
        problem = (f"it ended after {seconds:.0f} of {job.seconds} s without a crash, "
                   f"status {ends}; see {job.shown(job.folder)}")
    if problem:
        print(f"tools/kmes: {options.engine} does not work:\n{problem}",
              file=sys.stderr)
        return 3
    status = engine.status
    pace = status.executions / seconds / job.jobs
    empty = engine.rate(Path(options.empty).resolve(), job.corpus, job.folder)
    print(f"{status.executions} executions in {seconds:.0f} s ({status.mode}): {pace:.0f} a second "
          f"and job; an empty target: {empty}")
    report_coverage(job, options.profile)
    new = sum(1 for _ in job.new.iterdir())
    print(f"{new} new files of the corpus, in {job.shown(job.new)}")
    if new:
        print(f"  to keep what they add: fuzz/make_corpora.sh {job.target} {job.shown(job.new)}")
    if not crashes:
        print("no crash")
        return 0
    report_crashes(job, crashes)
    return 1


if __name__ == "__main__":
    sys.exit(main())
