# SPDX-License-Identifier: GPL-2.0-only
"""Runs guest tests, in one machine or in several at once. Prints a line for each test: PASS or
FAIL, kernel, name, seconds. If a machine dies during a test, another boot runs the remaining tests.
"""

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


def divide(tests, machines):
    """Divides the tests among at most this many machines, and returns a list of tests for each. The
    test with the longest limit is assigned first, always to the machine with the least work. A test
    for each machine is in every list. Each list keeps the order of the table."""
    once = [test for test in tests if not test.is_for_each_machine]
    parts = [[] for _ in range(max(1, min(machines, len(once))))]
    for test in sorted(once, key=lambda test: -test.seconds):
        min(parts, key=lambda part: sum(other.seconds for other in part)).append(test)
    return [[test for test in tests if test in part or test.is_for_each_machine] for part in parts]


class Suite:
    def __init__(self, kernel, scale, boot, verbose):
        """boot(tests, number) returns a Machine that can run these tests. Machines that run at the
        same time have different numbers."""
        self._kernel = kernel
        self._scale = scale
        self.boot_seconds = BOOT_SECONDS * scale * guest_tests.slowness(kernel)
        self._boot = boot
        self._verbose = verbose
        self._lock = threading.Lock()  # protects everything below
        self._running = []
        self._is_over = False
        self.passed = 0
        self.failed = 0

    def run(self, tests, machines=1):
        parts = divide(tests, machines)
        with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
            futures = [pool.submit(self._run_part, part, number)
                       for number, part in enumerate(parts)]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                self._end_all()
                raise
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return self.failed == 0 and self.passed > 0

    def _run_part(self, tests, number):
        while tests:
            limits = {test.name: test.limit(self._kernel, self._scale) for test in tests}
            run = Run(self, self._boot(tests, number), limits, number)
            with self._lock:
                if self._is_over:
                    return
                self._running.append(run.vm)
            ended = run.vm.run(self.boot_seconds, run.on_line)
            with self._lock:
                self._running.remove(run.vm)
            run.finish(ended)
            done = [test.name for test in tests].index(run.last) if run.last else len(tests) - 1
            tests = tests[done + 1:]

    def _end_all(self):
        """Ends all machines, after an interrupt or an error. Unfinished tests are not reported."""
        with self._lock:
            self._is_over = True
            for vm in self._running:
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
    """One boot: interprets the lines that the guest prints."""

    def __init__(self, suite, vm, limits, number):
        self._suite = suite
        self._suffix = f"-{number + 1}" if number else ""  # of report names, for each machine
        self._limits = limits
        self.vm = vm
        self.last = None  # the last test that began
        self._open = False
        self._output = []
        self._begun = 0.0
        self._reports_counted = 0  # reports in the log that have already failed a test

    def on_line(self, line):
        text = line.decode("utf-8", "replace").rstrip("\r")
        words = text.split()
        if words[:2] == ["@kmes-vm", "begin"]:
            self.last, self._open, self._output = words[2], True, []
            self._begun = time.monotonic()
            # The guest enforces the limit; the host ends the machine if the guest cannot.
            self.vm.allow(self._limits[self.last] + self._suite.boot_seconds)
        elif words[:2] == ["@kmes-vm", "end"]:
            self._end(int(words[3]))
            self.vm.allow(self._suite.boot_seconds)
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
            wrong.append("killed: the time limit is over, or a process sent SIGKILL")
        elif status:
            wrong.append(f"exit status {status}")
        self._suite.report(self.last, seconds, self._output, wrong)

    def _log_until_mark(self):
        """Returns the log up to the mark of the test's end, or all of it if the mark does not come.
        """
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
        """Returns lines that describe the kernel's reports since the last call; empty if none."""
        reports = log_scan.scan(log)
        fresh = reports[self._reports_counted:]
        self._reports_counted = len(reports)
        if not fresh:
            return []
        return ([f"the kernel reports ({fresh[0].kind}; {len(fresh)} such lines):"] +
                ["    " + line for line in log_scan.excerpt(log, fresh[0])])

    def finish(self, ended):
        """Call it when the machine is off. Fails an unfinished test, or the boot if no test began.
        Otherwise reports `kernel-log`, which covers the time after the last test."""
        log = self.vm.log()
        late = self._reports(log)
        if self._open or (ended.why and self.last is None):
            wrong = late or ["the end of the kernel's log:"] + log[-machine.TAIL_LINES:]
            seconds = time.monotonic() - self._begun if self._open else 0
            self._suite.report(self.last or "boot" + self._suffix, seconds, self._output,
                             wrong + [ended.why or "the machine ended"])
            return
        taint = ended.taint & ~log_scan.HARMLESS_TAINT
        if taint and not log_scan.scan(log):
            late.append(f"the kernel is tainted ({taint}), but its log has no known report")
        if ended.why:
            late += ["the end of the kernel's log:"] + log[-machine.TAIL_LINES:] + [ended.why]
        self._suite.report("kernel-log" + self._suffix, 0, [], late)


def write_tests(image, tests, kernel, scale):
    """Adds the tests to the image, in the format of guest/run_tests."""
    lines = []
    for test in tests:
        image.add_bytes(f"/kmes/tests/{test.name}", (test.command + "\n").encode(), 0o755)
        limit = int(test.limit(kernel, scale) + 0.999)
        lines.append(f"{test.name} {limit} {test.load}\n")
    image.add_bytes("/kmes/tests.list", "".join(lines).encode())


def pack_needs(image, tests, root, binaries):
    """Adds what the tests need: built programs by label, and files of the repository by path."""
    for need in sorted({need for test in tests for need in test.needs}):
        if need.startswith("//"):
            path = need[2:].replace(":", "/") if ":" in need else \
                f"{need[2:]}/{os.path.basename(need)}"
            image.add(f"/kmes/bin/{os.path.basename(path)}", os.path.join(binaries, path))
        else:
            image.add(f"/kmes/tree/{need}", os.path.join(root, need))
