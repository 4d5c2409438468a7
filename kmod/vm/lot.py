# SPDX-License-Identifier: GPL-2.0-only
"""Runs guest tests, and prints a line for each: PASS or FAIL, name, seconds. Can use several
machines at once. A machine that dies during a test is booted again for the following ones."""

import concurrent.futures
import os
import sys
import threading
import time

import guest_tests
import log_scan
import machine

BOOT_SECONDS = 90
MARK_SECONDS = 10


def dealt(tests, machines):
    """Divides the tests among at most this many machines. Tests with the longest limits come first,
    each for the machine with the least work. Tests of the machine itself go to every one. All keep
    the order of the table."""
    once = [test for test in tests if not test.is_for_each_machine]
    hands = [[] for _ in range(max(1, min(machines, len(once))))]
    for test in sorted(once, key=lambda test: -test.seconds):
        min(hands, key=lambda hand: sum(other.seconds for other in hand)).append(test)
    return [[test for test in tests if test in hand or test.is_for_each_machine] for hand in hands]


class Lot:
    def __init__(self, kernel, scale, boot, verbose):
        """boot(tests, number) returns a Machine, ready to run these tests. Machines that run at the
        same time have different numbers."""
        self._kernel = kernel
        self._scale = scale
        self.boot_seconds = BOOT_SECONDS * scale * guest_tests.slowness(kernel)
        self._boot = boot
        self._verbose = verbose
        self._lock = threading.Lock()  # protects everything below
        self._up = []
        self._is_over = False
        self.passed = 0
        self.failed = 0

    def run(self, tests, machines=1):
        hands = dealt(tests, machines)
        with concurrent.futures.ThreadPoolExecutor(len(hands)) as pool:
            futures = [pool.submit(self._run_hand, hand, number)
                       for number, hand in enumerate(hands)]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                self._end_all()
                raise
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return self.failed == 0 and self.passed > 0

    def _run_hand(self, tests, number):
        while tests:
            limits = {test.name: test.limit(self._kernel, self._scale) for test in tests}
            run = Run(self, self._boot(tests, number), limits, number)
            with self._lock:
                if self._is_over:
                    return
                self._up.append(run.vm)
            ended = run.vm.run(self.boot_seconds, run.on_line)
            with self._lock:
                self._up.remove(run.vm)
            run.finish(ended)
            done = [test.name for test in tests].index(run.last) if run.last else len(tests) - 1
            tests = tests[done + 1:]

    def _end_all(self):
        """After an interrupt no machine is left, and the tests that it ended are not reported."""
        with self._lock:
            self._is_over = True
            for vm in self._up:
                vm.end()

    def report(self, name, seconds, output, wrong):
        with self._lock:
            if self._is_over:
                return
            if wrong:
                self.failed += 1
            else:
                self.passed += 1
            print(f"{'FAIL' if wrong else 'PASS'} {self._kernel} {name} {seconds:.1f}s")
            if wrong or self._verbose:
                for line in output + wrong:
                    print("    " + line)
            sys.stdout.flush()


class Run:
    """One boot: interprets its lines, test by test."""

    def __init__(self, lot, vm, limits, number):
        self._lot = lot
        self._suffix = f"-{number + 1}" if number else ""  # for the reports of each machine
        self._limits = limits
        self.vm = vm
        self.last = None  # the last test that began
        self._open = False
        self._output = []
        self._begun = 0.0
        self._told = 0  # reports in the log that are already counted as failures

    def on_line(self, line):
        text = line.decode("utf-8", "replace").rstrip("\r")
        words = text.split()
        if words[:2] == ["@kmes-vm", "begin"]:
            self.last, self._open, self._output = words[2], True, []
            self._begun = time.monotonic()
            # The guest itself enforces the limit while it can.
            self.vm.allow(self._limits[self.last] + self._lot.boot_seconds)
        elif words[:2] == ["@kmes-vm", "end"]:
            self._end(int(words[3]))
            self.vm.allow(self._lot.boot_seconds)
        elif self._open:
            self._output.append(text)
        else:
            print("    " + text, flush=True)

    def _end(self, status):
        seconds = time.monotonic() - self._begun
        self._open = False
        log = self._log_until_mark()
        wrong = self._reports(log)
        if status == 137:
            wrong.append("killed: its time limit is over, or somebody sent SIGKILL")
        elif status:
            wrong.append(f"exit status {status}")
        self._lot.report(self.last, seconds, self._output, wrong)

    def _log_until_mark(self):
        """Returns the log up to the end of the test; all of it if the mark does not come."""
        deadline = time.monotonic() + MARK_SECONDS
        while True:
            log = self.vm.log()
            for number, line in enumerate(log):
                if line.endswith(f"kmes-vm: end {self.last}"):
                    return log[:number]
            if time.monotonic() > deadline:
                return log
            time.sleep(0.05)

    def _reports(self, log):
        """Returns what the kernel has reported since the last check, as lines; empty if nothing."""
        reports = log_scan.scan(log)
        fresh = reports[self._told:]
        self._told = len(reports)
        if not fresh:
            return []
        return ([f"the kernel reports ({fresh[0].kind}; {len(fresh)} such lines):"] +
                ["    " + line for line in log_scan.excerpt(log, fresh[0])])

    def finish(self, ended):
        """The machine is off: a test without an end has failed, and so has one that was never
        reported."""
        log = self.vm.log()
        late = self._reports(log)
        if self._open or (ended.why and self.last is None):
            wrong = late or ["the end of the kernel's log:"] + log[-machine.TAIL_LINES:]
            seconds = time.monotonic() - self._begun if self._open else 0
            self._lot.report(self.last or "boot" + self._suffix, seconds, self._output,
                             wrong + [ended.why or "the machine ended"])
            return
        taint = ended.taint & ~log_scan.HARMLESS_TAINT
        if taint and not log_scan.scan(log):
            late.append(f"the kernel is tainted ({taint}), and no line of its log was known")
        if ended.why:
            late += ["the end of the kernel's log:"] + log[-machine.TAIL_LINES:] + [ended.why]
        self._lot.report("kernel-log" + self._suffix, 0, [], late)


def write_tests(image, tests, kernel, scale):
    """The tests, in the format of guest/run_tests."""
    lines = []
    for test in tests:
        image.add_bytes(f"/kmes/tests/{test.name}", (test.command + "\n").encode(), 0o755)
        limit = int(test.limit(kernel, scale) + 0.999)
        lines.append(f"{test.name} {limit} {test.load}\n")
    image.add_bytes("/kmes/tests.list", "".join(lines).encode())


def pack_needs(image, tests, root, binaries):
    """What the tests need: built programs by their label, and files of the repository by their
    path."""
    for need in sorted({need for test in tests for need in test.needs}):
        if need.startswith("//"):
            path = need[2:].replace(":", "/") if ":" in need else \
                f"{need[2:]}/{os.path.basename(need)}"
            image.add(f"/kmes/bin/{os.path.basename(path)}", os.path.join(binaries, path))
        else:
            image.add(f"/kmes/tree/{need}", os.path.join(root, need))
