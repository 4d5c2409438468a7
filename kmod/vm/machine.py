# SPDX-License-Identifier: GPL-2.0-only
"""One boot of a virtual machine in QEMU, without hardware virtualisation. The first serial line has
the kernel's log, and the second has the output of the guest's command."""

import os
import secrets
import selectors
import subprocess
import time

import log_scan

# The guest's own watchdogs are off or slow, because a busy host can stop the guest for seconds. The
# time limits of the tests find stalls.
KERNEL_ARGUMENTS = ("console=ttyS0 loglevel=8 panic=-1 oops=panic mitigations=off nokaslr "
                    "kasan_multi_shot nmi_watchdog=0 nowatchdog rdinit=/init "
                    "rcupdate.rcu_cpu_stall_timeout=120")
TAIL_LINES = 60


class Ended:
    """How a machine ended. `status`: the exit status of its command, or None if unknown. `why`: the
    reason of a premature end, or empty."""

    def __init__(self, status, taint, why):
        self.status = status
        self.taint = taint
        self.why = why


class Machine:
    def __init__(self, kernel, initramfs, folder, cpus=2, memory_mb=1024, acpi=True):
        self.log_path = os.path.join(folder, "kernel.log")
        self._end_word = "end-" + secrets.token_hex(8)
        self._folder = folder
        self._allowed = self._deadline = 0.0
        self._process, self._is_over = None, False
        topology = f"{cpus}" if acpi else f"{cpus},sockets={cpus}"
        self._command = [
            "qemu-system-x86_64", "-machine", "pc", "-accel", "tcg,thread=multi",
            "-cpu", "max,la57=off", "-smp", topology, "-m", str(memory_mb),
            "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", initramfs,
            "-append", f"{KERNEL_ARGUMENTS} kmes.end={self._end_word}",
            "-serial", f"file:{self.log_path}",
            "-chardev", "stdio,id=said,signal=off", "-serial", "chardev:said"]

    def run(self, seconds, on_line):
        """Boots, and calls on_line(bytes) for each line of the command's output. Returns an Ended
        when the machine is off or this many seconds are over. on_line may call allow()."""
        open(self.log_path, "wb").close()
        with open(os.path.join(self._folder, "qemu.log"), "wb") as errors:
            process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=errors)
        self._process = process
        if self._is_over:
            process.kill()
        self.allow(seconds)
        try:
            return self._follow(process, on_line)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def end(self):
        """Ends the machine, also before it has booted. run() in another thread then returns."""
        self._is_over = True
        if self._process:
            self._process.kill()

    def allow(self, seconds):
        """Sets the remaining time of the machine."""
        self._allowed = seconds
        self._deadline = time.monotonic() + seconds

    def _follow(self, process, on_line):
        ended = None
        for line in lines_until(process.stdout, lambda: self._deadline - time.monotonic()):
            if line is None:
                words = f"the time limit of {self._allowed:.0f} s is over"
                return ended or Ended(None, 0, words)
            at = line.find(self._end_word.encode())
            if at < 0:
                on_line(line)
                continue
            if at > 0:
                on_line(line[:at])
            words = line[at:].split()
            ended = Ended(int(words[1]), int(words[2]), "")
        if ended:
            return ended
        with open(os.path.join(self._folder, "qemu.log"), errors="replace") as file:
            words = file.read().strip()
        return Ended(None, 0, "the machine stopped before its command had ended" +
                     (f": {words}" if words else ""))

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\r\n") for line in file]


def lines_until(stream, seconds_left):
    """Yields the lines of a pipe, as bytes without newlines. Yields None and ends when
    seconds_left() is not positive any more."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            left = seconds_left()
            if left <= 0 or not selector.select(left):
                yield None
                return
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
    if rest:
        yield rest


def what_is_wrong(ended, log):
    """Returns lines that describe the errors of a machine's run; empty if none. Ignores the exit
    status of its command."""
    wrong = []
    reports = log_scan.scan(log)
    for report in reports[:1]:
        wrong.append(f"the kernel reports ({report.kind}; its log has {len(reports)} such lines):")
        wrong += ["    " + line for line in log_scan.excerpt(log, report)]
    if not reports and ended.taint & ~log_scan.HARMLESS_TAINT:
        wrong.append(f"the kernel is tainted ({ended.taint}), but its log has no known report")
    if ended.why:
        wrong.append(ended.why)
    if wrong and not reports:
        wrong.append("the end of the kernel's log:")
        wrong += ["    " + line for line in log[-TAIL_LINES:]]
    return wrong
