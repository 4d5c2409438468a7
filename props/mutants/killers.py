# SPDX-License-Identifier: MIT
"""The killers of mutants: programs that run with the mutated core preloaded, each in a process of
its own, with limits on processor time and memory. Knows no operators and no compiler."""

import json
import os
import re
import resource
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

MEMORY_LIMIT_BYTES = 1 << 30
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "abort_on_error=1",
}
REPORT = re.compile(r"ERROR: (AddressSanitizer: [\w-]+)|runtime error: ([^\n]*)")
FIRST_FAILURE = re.compile(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", re.MULTILINE)
FAILED_FILE = re.compile(r"^FAILED (.*)$", re.MULTILINE)
LAST_BEGUN = re.compile(r"^\[ RUN      \] ([\w/]+\.[\w/]+)$", re.MULTILINE)


@dataclass
class Finding:
    """The finding that caught a mutant, with `script` if it was a script."""

    what: str
    script: str = ""


@dataclass
class Ended:
    status: int  # as in subprocess: negative for a signal
    output: str
    is_hang: bool
    seconds: float  # of processor time


@dataclass
class Killer:
    """One program. `standard_seconds` of processor time are measured on the unmutated core."""

    name: str
    command: list
    environment: dict = field(default_factory=dict)
    standard_seconds: float = 0.0
    least_seconds: float = 2.0
    is_sanitised: bool = False  # runs a core with a sanitizer

    def limit_seconds(self):
        """Generous: a program that takes twenty times as long as with the unmutated core is in a
        loop."""
        return max(self.least_seconds, 20 * self.standard_seconds)

    def run(self, preload, folder):
        """`preload`: the shared objects, the core's last."""
        limit = int(self.limit_seconds() + 1)
        # prlimit and env must not use the mutant, so it is preloaded after them.
        command = [
            "prlimit",
            f"--cpu={limit}:{limit + 5}",
            "--core=0",
            # A sanitizer needs address space for its shadow of all memory.
            "--as=unlimited" if self.is_sanitised else f"--as={MEMORY_LIMIT_BYTES}",
            "env",
            "LD_PRELOAD=" + " ".join(str(path) for path in preload),
        ]
        environment = {**os.environ, **SANITIZER_OPTIONS, **self.environment}
        scale = float(os.environ.get("KMES_TIMEOUT_SCALE") or 1)
        # A mutant that sleeps uses no processor time.
        return run_limited(command + self.command, environment, folder, (60 + 20 * limit) * scale)

    def finding(self, ended):
        """None: not caught."""
        raise NotImplementedError


def run_limited(command, environment, folder, wall_seconds):
    began = _children_seconds()
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    is_late = threading.Event()

    def end():
        is_late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(wall_seconds, end)
    timer.start()
    try:
        output = process.stdout.read().decode("utf-8", "replace")
        process.wait()
    finally:
        timer.cancel()
    hang = is_late.is_set() or process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    return Ended(process.returncode, output, hang, _children_seconds() - began)


def _children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class TestProgram(Killer):
    """A program of GoogleTest."""

    def finding(self, ended):
        if ended.status == 0 and not ended.is_hang:
            return None
        failed = FIRST_FAILURE.search(ended.output)
        begun = LAST_BEGUN.findall(ended.output)
        if failed and ended.status > 0:
            return Finding(f"test {self.name}: {failed.group(1)}")
        where = f" in {begun[-1]}" if begun else ""
        if ended.is_hang:
            return Finding(f"hang of {self.name}{where}")
        return Finding(f"crash of {self.name}{where} ({_ending(ended.status)})")


class CorpusProgram(Killer):
    """A fuzz target that replays its corpus."""

    def finding(self, ended):
        if ended.status == 0 and not ended.is_hang:
            return None
        failed = FAILED_FILE.search(ended.output)
        if failed:
            return Finding(f"{self.name}: {failed.group(1).replace(self.command[1] + '/', '')}")
        return Finding(f"{'hang' if ended.is_hang else 'crash'} of {self.name}")


class ScriptDriver(Killer):
    """//props/mutants:driver, which prints one line of JSON."""

    def finding(self, ended):
        lines = ended.output.splitlines()
        try:
            said = json.loads(lines[-1]) if lines else {}
        except ValueError:
            said = {}
        if said.get("verdict") == "survived" and ended.status == 0:
            return None
        if said.get("verdict") == "caught":
            report = REPORT.findall(ended.output)  # the last report is of the shortest script
            seen = f": {' '.join(report[-1]).strip()}" if report else ""
            return Finding(said["what"] + seen, said["script"])
        tail = " / ".join(lines[-3:])
        if ended.is_hang:
            return Finding(f"hang of {self.name} {tail}")
        return Finding(f"crash of {self.name} ({_ending(ended.status)}) {tail}")


def _ending(status):
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


class KillerError(Exception):
    """A killer that fails on the unmutated core, or that the mutant does not reach."""


def try_killers(killers, originals, traps, folder):
    """Checks that each killer passes with the unmutated core, and fails with one whose functions
    are traps. `originals` has the preloaded objects by is_sanitised. Fills in
    standard_seconds. Runs one after the other, because it measures processor time."""
    for killer in killers:
        if not Path(killer.command[0]).is_file():
            raise KillerError(f"{killer.name}: {killer.command[0]} is not built")
        killer.least_seconds, least = 600.0, killer.least_seconds
        ended = killer.run(originals[killer.is_sanitised], folder)
        killer.least_seconds = least
        if killer.finding(ended):
            raise KillerError(f"{killer.name} fails on the core as it is:\n{ended.output}")
        killer.standard_seconds = ended.seconds
        if not killer.finding(killer.run([traps], folder)):
            raise KillerError(
                f"{killer.name} passes a core in which every function is a trap: what is preloaded "
                "does not reach it; is it linked dynamically?"
            )


def first_finding(killers, preload_of, folder):
    """Returns (the killer, its finding); (None, None) for a survivor. `preload_of(is_sanitised)`
    builds the preloaded objects on demand."""
    for killer in killers:
        ended = killer.run(preload_of(killer.is_sanitised), folder)
        if ended.status in (126, 127):  # env and prlimit return these for a missing program
            raise KillerError(f"{killer.name} cannot be run:\n{ended.output}")
        finding = killer.finding(ended)
        if finding:
            return killer, finding
    return None, None


def now():
    return time.monotonic()
