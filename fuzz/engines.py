# SPDX-License-Identifier: MIT
"""The engines of `tools/kmes fuzz`: their start, their status, and the places of their finds.
Knows no target and prints nothing."""

import os
import re
import subprocess
from pathlib import Path

# An input that takes longer than this counts as an endless loop.
INPUT_SECONDS = 60
MEMORY_MB = 4096
PROBE_SECONDS = 3

SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=0:symbolize=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def plain_environment(**more):
    """For AFL++, which checks the sanitizers' options; its build has no sanitizer."""
    kept = {name: value for name, value in os.environ.items() if name not in SANITIZERS}
    return {**kept, **more}


def environment(**more):
    symbolizer = "external_symbolizer_path=/usr/lib/llvm-19/bin/llvm-symbolizer"
    options = {key: value + ":" + symbolizer for key, value in SANITIZERS.items()}
    return {**os.environ, **options, **more}


class Status:
    """The known facts about a running engine."""

    def __init__(self):
        self.executions = 0
        self.edges = 0
        self.corpus = 0
        self.crashes = 0
        self.mode = ""


class LibFuzzer:
    """libFuzzer in fork mode: a crash ends one child, not the run."""

    name = "libfuzzer"
    STATUS = re.compile(
        r"^#(\d+): cov: (\d+) ft: \d+ corp: (\d+) .*oom/timeout/crash: (\d+)/(\d+)/(\d+)")

    def __init__(self, job):
        self.job = job
        self.status = Status()
        self.log = None

    def start(self):
        job = self.job
        command = [
            str(job.binary), f"-fork={job.jobs}", "-ignore_crashes=1", "-ignore_timeouts=1",
            "-ignore_ooms=1", f"-max_total_time={job.seconds}", f"-timeout={INPUT_SECONDS}",
            f"-rss_limit_mb={MEMORY_MB}", f"-max_len={job.most_bytes}",
            f"-artifact_prefix={job.crashes}/"
        ]
        if job.dictionary:
            command.append(f"-dict={job.dictionary}")
        command += [str(job.new), str(job.corpus)]
        self.log = job.folder / "libfuzzer.log"
        with open(self.log, "wb") as log:
            return [
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 env=environment(), cwd=job.folder)
            ]

    def update(self):
        with open(self.log, "rb") as log:
            log.seek(max(0, self.log.stat().st_size - 8192))
            for line in log.read().decode(errors="replace").splitlines():
                found = self.STATUS.match(line)
                if found:
                    numbers = [int(number) for number in found.groups()]
                    self.status.executions, self.status.edges, self.status.corpus = numbers[:3]
                    self.status.crashes = sum(numbers[3:])
        return self.status

    def collect(self):
        """Returns the crashes. New files of the corpus are in their place already."""
        self.status.mode = f"{self.job.jobs} in fork mode"
        return sorted(file for file in self.job.crashes.iterdir()
                      if file.name.startswith(("crash-", "timeout-", "oom-", "leak-")))

    def problem(self):
        """Returns why nothing was executed; None if something was."""
        return "" if self.status.executions else tail(self.log)

    @staticmethod
    def rate(binary, corpus, folder):
        """Returns the executions per second of one process."""
        run = subprocess.run(
            [str(binary), f"-max_total_time={PROBE_SECONDS}", "-print_final_stats=1",
             f"-artifact_prefix={folder}/", str(corpus)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment(), text=True, errors="replace", check=False)
        found = re.search(r"^#(\d+)\s+DONE.*exec/s: (\d+)", run.stderr, re.MULTILINE)
        return int(found.group(2)) if found else 0


class Afl:
    """AFL++: one main instance, the others secondary."""

    name = "afl"

    def __init__(self, job):
        self.job = job
        self.status = Status()
        self.out = job.folder / "afl"

    def start(self):
        job = self.job
        settings = {
            "AFL_NO_UI": "1",
            "AFL_SKIP_CPUFREQ": "1",
            "AFL_NO_AFFINITY": "1",
            "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
            "AFL_IGNORE_PROBLEMS": "1",
        }
        if job.mutator:
            settings["AFL_CUSTOM_MUTATOR_LIBRARY"] = str(job.mutator)
        running = []
        for index in range(job.jobs):
            command = ["afl-fuzz", "-i", str(job.corpus), "-o", str(self.out),
                       "-V", str(job.seconds), "-t", str(INPUT_SECONDS * 100), "-m", "none"]
            command += ["-M", "main"] if index == 0 else ["-S", f"other{index}"]
            if job.dictionary:
                command += ["-x", str(job.dictionary)]
            command += ["--", str(job.binary)]
            with open(job.folder / f"afl-{index}.log", "wb") as log:
                running.append(
                    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=plain_environment(**settings), cwd=job.folder))
        return running

    def statistics(self):
        for file in sorted(self.out.glob("*/fuzzer_stats")):
            lines = (line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
            yield {key.strip(): value.strip() for key, value in lines}

    def update(self):
        status = Status()
        for one in self.statistics():
            status.executions += int(one.get("execs_done", 0))
            status.edges = max(status.edges, int(one.get("edges_found", 0)))
            status.corpus = max(status.corpus, int(one.get("corpus_count", 0)))
            status.crashes += int(one.get("saved_crashes", 0)) + int(one.get("saved_hangs", 0))
            status.mode = one.get("target_mode", "")
        self.status = status
        return status

    def collect(self):
        """Copies the new files of the queues to the folder of new files. Returns the crashes."""
        self.update()
        for file in sorted(self.out.glob("*/queue/id:*")):
            if ",orig:" not in file.name and ",sync:" not in file.name:
                self.job.keep(file)
        found = []
        for file in sorted(self.out.glob("*/crashes/id:*")) + sorted(self.out.glob("*/hangs/id:*")):
            kind = "timeout" if file.parent.name == "hangs" else "crash"
            found.append(self.job.keep(file, self.job.crashes, kind + "-"))
        return sorted(set(found))

    def problem(self):
        if not self.status.executions:
            return tail(self.job.folder / "afl-0.log")
        words = self.status.mode.split()
        if "persistent" not in words or "shmem_testcase" not in words:
            return ("AFL++ runs it, but not in persistent mode with the input in shared memory: "
                    f"target_mode is '{self.status.mode}'")
        return ""

    @staticmethod
    def rate(binary, corpus, folder):
        out = folder / "afl-rate"
        subprocess.run(
            ["afl-fuzz", "-i", str(corpus), "-o", str(out), "-V", str(PROBE_SECONDS), "-m", "none",
             "--", str(binary)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=plain_environment(AFL_NO_UI="1", AFL_SKIP_CPUFREQ="1", AFL_NO_AFFINITY="1",
                                  AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES="1"), check=False)
        stats = out / "default" / "fuzzer_stats"
        found = stats.is_file() and re.search(r"^execs_per_sec\s*: ([\d.]+)", stats.read_text(),
                                              re.MULTILINE)
        return int(float(found.group(1))) if found else 0


def tail(file, lines=15):
    if not Path(file).is_file():
        return "it did not start"
    text = Path(file).read_text(errors="replace")
    text = re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\)B)|[\x0e\x0f]", "", text)
    return "\n".join(text.splitlines()[-lines:])


ENGINES = {engine.name: engine for engine in (LibFuzzer, Afl)}
