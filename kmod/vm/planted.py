# SPDX-License-Identifier: GPL-2.0-only
"""Boots once for each planted bug of a kernel (kmod/bugs/planted.txt), and passes if the bug is
reported. Without this, a silent log would prove nothing."""

import fnmatch
import time

import log_scan
from guest_tests import KERNELS, TableError

BUGS_MODULE = "/kmes/modules/kmes_bugs.ko"
SECONDS = 60
LIMIT_SECONDS = 5  # from the start of the command, for a bug that the time limit finds
BEGINS = "the command begins"


class Planted:
    def __init__(self, fields, where):
        if len(fields) != 4:
            raise TableError(f"{where}: {len(fields)} columns; expected 4")
        self.name, kernels, self.seen_as, self.command = fields
        self.kernels = kernels.split()
        known = [kind for kind, _ in log_scan.KINDS] + ["status", "limit"]
        if self.seen_as not in known or any(k not in KERNELS for k in self.kernels):
            raise TableError(f"{where}: unknown kernel in '{kernels}', or unknown kind of report "
                             f"'{self.seen_as}'")


def read_planted(path):
    with open(path, encoding="utf-8") as file:
        lines = list(enumerate(file, start=1))
    return [Planted([field.strip() for field in line.split("|", 3)], f"{path}:{number}")
            for number, line in lines if line.strip() and not line.startswith("#")]


def report_of(planted, ended, output, log):
    """Returns the line that reports the bug, or None."""
    if planted.seen_as == "limit":
        is_over = ended.status is None and "time limit" in ended.why
        return ended.why if is_over and BEGINS.encode() in output else None
    if planted.seen_as == "status":
        return f"exit status {ended.status}" if ended.status else None
    for report in log_scan.scan(log):
        if report.kind == planted.seen_as:
            return log[report.line_number]
    return None


def choose(planted_bugs, kernel, patterns):
    chosen = [bug for bug in planted_bugs if kernel in bug.kernels and
              (not patterns or any(fnmatch.fnmatchcase(bug.name, pattern) for pattern in patterns))]
    if not chosen:
        raise TableError(f"no planted bug for the kernel {kernel} matches {' '.join(patterns)}")
    return chosen


def run_planted(planted_bugs, boot_seconds, kernel, boot):
    """Boots once for each bug, and returns True if each was reported. boot(command) returns a
    Machine that can run the command."""
    missed = seen = 0
    for planted in planted_bugs:
        vm = boot(f"bugs={BUGS_MODULE}\necho '{BEGINS}'\n{planted.command}\n")
        begun = time.monotonic()
        output = []

        def on_line(line):
            output.append(line)
            if line == BEGINS.encode() and planted.seen_as == "limit":
                vm.allow(LIMIT_SECONDS)

        ended = vm.run(boot_seconds + SECONDS, on_line)
        line = report_of(planted, ended, output, vm.log())
        seconds = time.monotonic() - begun
        print(f"{'PASS' if line else 'FAIL'} {kernel} {planted.name} {seconds:.1f}s")
        if line:
            seen += 1
            print(f"    {line}", flush=True)
            continue
        missed += 1
        for text in [said.decode("utf-8", "replace") for said in output] + vm.log()[-60:]:
            print(f"    {text}", flush=True)
    print(f"{seen} passed, {missed} failed", flush=True)
    return missed == 0 and seen > 0
