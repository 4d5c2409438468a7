# SPDX-License-Identifier: MIT
"""One thread for all CPUs, with the module mmap and memoryview casts: an aligned 64-bit number is
read with one instruction. A lock of the interpreter (`lock cmpxchg`) is the barrier
between the flag and the second check. Waits 50 ms at most."""
import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
ATTACH, FUTEX = 1091, 202
BARRIER = threading.Lock()
END = b"kmes.conformance.end"


class TimeSpec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def attach(slots):
    """The fds and the capacity; with no slots, the number of CPUs."""
    while True:
        fds = (ctypes.c_int * max(slots, 1))()
        count, capacity = ctypes.c_int(slots), ctypes.c_uint64()
        array = fds if slots else None
        result = LIBC.syscall(ATTACH, array, ctypes.byref(count), ctypes.byref(capacity))
        if result == 0:
            return list(fds[:count.value]), capacity.value
        failed = ctypes.get_errno()
        if failed == errno.ERANGE and not slots:
            return count.value
        if failed not in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EPERM):
            sys.exit("kmes_attach: " + os.strerror(failed))
        time.sleep(0.001)


def digest(payload):
    value = 0xCBF29CE484222325
    for byte in payload:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Source:
    def __init__(self, cpu, cpus):
        self.cpu, self.cpus, self.last, self.over, self.ring = cpu, cpus, 0, False, None
        self.lines = []
        self.open()

    def open(self):
        fds, self.capacity = attach(self.cpus)
        length = 4096 + 2 * self.capacity
        self.ring = mmap.mmap(fds[self.cpu], length, mmap.MAP_SHARED,
                              mmap.PROT_READ | mmap.PROT_WRITE)
        for fd in fds:
            os.close(fd)
        self.bytes = memoryview(self.ring)
        self.words, self.shorts = self.bytes[:4096].cast("Q"), self.bytes[:4096].cast("I")
        if self.ring[:8] != b"KMESRING":
            self.refuse("magic")
        elif self.shorts[2] != 1:
            self.refuse("version")
        elif self.words[2] != self.capacity or self.capacity & (self.capacity - 1):
            self.refuse("capacity")
        elif self.words[3] != 4096:
            self.refuse("data_offset")
        self.generation, self.position = self.words[4], self.words[9]
        self.counter = (ctypes.c_uint32 * 2).from_buffer(self.ring, 128)

    def close(self):
        del self.counter
        for view in (self.words, self.shorts, self.bytes):
            view.release()
        self.ring.close()

    def refuse(self, reason):
        self.lines.append("R %d %s" % (self.cpu, reason))
        self.over = True

    def take(self):
        """Copies one event and delivers it. False if there is nothing."""
        end = self.words[8]
        if self.position >= end:
            return False
        tail = self.words[9]
        if tail > self.position:
            self.position = tail
            return True
        start = 4096 + (self.position & (self.capacity - 1))
        # More than the capacity is corrupt content (E26): no event fits.
        room = end - self.position if end - self.position <= self.capacity else 0
        copy, fits = b"", room >= 30
        if fits:
            size = int.from_bytes(bytes(self.bytes[start:start + 4]), "little")
            fits = 30 <= size <= room
        if fits:
            copy = bytes(self.bytes[start:start + size])
        tail = self.words[9]
        if tail > self.position:
            self.position = tail
            return True
        if fits:
            size, header, stamp, sequence, _, origin, kind = struct.unpack_from("<IIQQHBH", copy)
            fits = kind > 0 and 29 + kind <= header <= len(copy)
        if not fits:
            self.refuse("corrupt content")
            return False
        self.position += len(copy)
        if sequence <= self.last:
            return True
        if self.last and sequence != self.last + 1:
            self.lines.append("L %d %d" % (self.cpu, sequence - self.last - 1))
        self.last = sequence
        name, payload = copy[29:29 + kind], copy[header:]
        self.lines.append("E %d %d %d %d %s %d %016x" % (
            self.cpu, sequence, stamp, origin, name.hex(), len(payload), digest(payload)))
        self.over = name == END
        return not self.over

    def is_retired(self):
        return self.words[4] != self.generation

    def serve(self):
        """True if something was there."""
        retired, any_event = self.is_retired(), False
        while not self.over and self.take():
            any_event = True
        if retired and not self.over:
            self.close()
            self.open()
            if not self.over:
                self.lines.append("G %d %d" % (self.cpu, self.generation))
        return any_event or retired or self.over

    def is_quiet(self):
        return self.over or (self.words[8] <= self.position and not self.is_retired())


def rest(place, sources):
    seen = place.counter[0]
    place.bytes[132] = 1
    with BARRIER:
        pass
    if all(source.is_quiet() for source in sources):
        limit = TimeSpec(0, 50_000_000)
        LIBC.syscall(FUTEX, ctypes.byref(place.counter), 0, ctypes.c_uint(seen),
                     ctypes.byref(limit), None, 0)
    place.bytes[132] = 0


def main():
    if platform.machine() != "x86_64":
        sys.exit("the order of plain loads and of a lock is that of x86-64")
    report = int(os.environ.get("KMES_REPORT_FD", "1"))
    cpus = attach(0)
    sources = [Source(cpu, cpus) for cpu in range(cpus)]
    turn = 0
    while True:
        alive = [source for source in sources if not source.over]
        any_of_them = [source.serve() for source in alive]
        lines = [line for source in sources for line in source.lines]
        for source in sources:
            source.lines = []
        if lines:
            os.write(report, ("\n".join(lines) + "\n").encode())
        alive = [source for source in alive if not source.over]
        if not alive:
            return
        if not any(any_of_them):
            turn += 1
            rest(alive[turn % len(alive)], sources)


main()
