#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A KMES consumer on the package kmes, and a testee of the conformance suite.

One thread reads all CPUs, and writes the records of docs/testee-contract.md.
"""
import errno
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kmes  # noqa: E402

# Errors of the buffer itself, which is not a KMES buffer, or has an unknown version.
REFUSALS = errno.EPROTO, errno.EPROTONOSUPPORT, errno.EINVAL, errno.EBADMSG


def fnv_1a(payload):
    """Returns the 64-bit FNV-1a. Four bytes per iteration, because a loop is slow in Python."""
    digest, whole = 0xCBF29CE484222325, len(payload) & ~3
    for a, b, c, d in zip(*(payload[i:whole:4] for i in range(4))):
        digest = ((digest ^ a) * 0x100000001B3 ^ b) * 0x100000001B3
        digest = ((digest ^ c) * 0x100000001B3 ^ d) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    for byte in payload[whole:]:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


class Consumer:
    """Reports the events of a reader set, until every CPU has ended."""

    def __init__(self, events):
        self.events, self.records = events, []
        self.report_fd = int(os.environ.get("KMES_REPORT_FD", "1"))
        self.open = set(range(events.cpus))
        self.switches = dict.fromkeys(self.open, -1)
        self.begun = set()

    def flush(self):
        rest = "".join(self.records).encode()  # whole lines in one write
        self.records.clear()
        while rest:
            rest = rest[os.write(self.report_fd, rest) :]

    def note_generation(self, cpu):
        switches = self.events.statistics(cpu).switches
        if switches != self.switches[cpu]:
            self.switches[cpu] = switches
            self.records.append(f"G {cpu} {self.events.generation(cpu)}\n")

    def deliver(self, event):
        self.note_generation(event.cpu)
        # The contract counts from the first delivered event on, the set from the attach on.
        if event.lost_before and event.cpu in self.begun:
            self.records.append(f"L {event.cpu} {event.lost_before}\n")
        self.records.append(
            f"E {event.cpu} {event.sequence} {event.timestamp_ns} {event.origin} "
            f"{event.type_bytes.hex()} {len(event.payload)} {fnv_1a(event.payload):016x}\n"
        )
        self.begun.add(event.cpu)
        if len(self.records) >= 256:
            self.flush()
        if event.type == "kmes.conformance.end":
            self.open.discard(event.cpu)

    def run(self):
        while self.open:
            for event in self.events.available():
                if event.cpu in self.open:
                    self.deliver(event)
            for cpu in sorted(self.open):
                error = self.events.error_of(cpu)
                if error is None:
                    self.note_generation(cpu)
                elif error.errno in REFUSALS:
                    self.records.append(f"R {cpu} {error.strerror}\n")
                    self.open.discard(cpu)
            self.flush()
            if self.open:
                self.events.wait()


def main():
    try:
        events = kmes.ReaderSet(exclusive=True)  # no other consumer sleeps on these rings (E12)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        # No CPU has a buffer that can be read.
        lines = (f"R {cpu} {error.strerror}\n" for cpu in range(kmes.cpu_count()))
        os.write(int(os.environ.get("KMES_REPORT_FD", "1")), "".join(lines).encode())
        return
    with events:
        Consumer(events).run()


main()
