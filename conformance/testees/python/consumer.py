#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A KMES consumer in one file of Python, with no packages: copy from it what you need.

It follows the specification (5.1), its errata (E..) and the testee contract. For each CPU, one
thread drains the buffer, sleeps while it is empty, and takes the next after a resize. Python 3.8+.
"""
import ctypes
import errno
import os
import platform
import struct
import sys
import threading
import time

SYS_KMES_ATTACH = 1091
SYS_FUTEX, SYS_MEMBARRIER = (202, 324) if platform.machine() == "x86_64" else (98, 283)
FUTEX_WAIT = 0  # shared: without FUTEX_PRIVATE_FLAG (E17)
MEMBARRIER_CMD_GLOBAL = 1
ATTACH_RETRIES, METADATA_BYTES = 5000, 4096
# 5.1.6: offsets in the first page of the mapping.
STATIC_FIELDS = struct.Struct("<8sIHHQQ")  # magic, version, cpu_id, 0, capacity, data_offset
GENERATION, WRITE_POS, TAIL_POS, FUTEX_COUNTER, NEED_WAKE = 32, 64, 72, 128, 132
# event_size, header_size, timestamp, sequence, cpu_id, origin_class, type_len; then the type.
HEADER = struct.Struct("<IIQQHBH")

# CDLL lets other threads run during a call, as a wait must; PyDLL does not, and is faster.
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

# Python has no atomics. The run-time library of the compilers has them as functions.
RELAXED, ACQUIRE, SEQ_CST = 0, 2, 5
try:
    atomic = ctypes.PyDLL("libatomic.so.1")
    load_64, load_32 = atomic.__atomic_load_8, atomic.__atomic_load_4
    load_64.argtypes, load_64.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_uint64
    load_32.argtypes, load_32.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_uint32
    store_8, fence = atomic.__atomic_store_1, atomic.atomic_thread_fence
    store_8.argtypes = [ctypes.c_void_p, ctypes.c_uint8, ctypes.c_int]
except (OSError, AttributeError):
    if platform.machine() != "x86_64":
        sys.exit("libatomic.so.1 is needed: without it Python cannot order its accesses here")

    # x86-64 works without it: loads stay in order, and ctypes copies an aligned number in one piece
    # (CPython: memcpy of a constant size). The full barrier is a system call, and slow.
    def load_64(address, _):
        return ctypes.c_uint64.from_address(address).value

    def load_32(address, _):
        return ctypes.c_uint32.from_address(address).value

    def store_8(address, value, _):
        ctypes.c_uint8.from_address(address).value = value

    def fence(order):
        if order == SEQ_CST and libc.syscall(SYS_MEMBARRIER, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "neither libatomic.so.1 nor membarrier")


attach_lock = threading.Lock()  # only one thread at a time holds files for all CPUs


def attach(cpu):
    """The CPU's current buffer, the capacity, the number of CPUs. Retries while means are short."""
    may_pass = errno.EAGAIN, errno.EPERM, errno.ENOMEM, errno.ENFILE, errno.EMFILE
    count, capacity = ctypes.c_int(2), ctypes.c_uint64()
    with attach_lock:
        for _ in range(ATTACH_RETRIES):
            fds = (ctypes.c_int * count.value)()
            arguments = fds, ctypes.byref(count), ctypes.byref(capacity)
            if libc.syscall(SYS_KMES_ATTACH, *arguments) == 0:
                for other in set(range(count.value)) - {cpu}:
                    os.close(fds[other])
                return fds[cpu], capacity.value, count.value
            if ctypes.get_errno() in may_pass:
                time.sleep(0.001)
            elif ctypes.get_errno() != errno.ERANGE:
                break
    raise OSError(ctypes.get_errno(), "kmes_attach")


def fnv_1a(payload):
    """FNV-1a. The loop is slow in Python: so four bytes a turn, with one reduction modulo 2^64."""
    digest, whole = 0xCBF29CE484222325, len(payload) & ~3
    for a, b, c, d in zip(*(payload[i:whole:4] for i in range(4))):
        digest = ((digest ^ a) * 0x100000001B3 ^ b) * 0x100000001B3
        digest = ((digest ^ c) * 0x100000001B3 ^ d) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    for byte in payload[whole:]:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


class Refused(Exception):
    """The reason to refuse a buffer."""


class Consumer:
    """Consumes one CPU, in a thread of its own."""

    def __init__(self, cpu, report_fd):
        self.cpu, self.report_fd, self.report = cpu, report_fd, []
        self.base, self.capacity, self.generation = None, 0, 0  # of the current buffer
        self.replaced = False  # known to have a successor, whatever its generation shows
        self.read_pos = 0  # in the current buffer
        self.last_sequence = 0  # over all buffers of this CPU (E21); 0: none delivered yet

    def load(self, field):
        return load_64(self.base + field, ACQUIRE)

    def flush(self):
        rest = "".join(self.report).encode()  # whole lines in one write: threads do not mix
        self.report.clear()
        while rest:
            rest = rest[os.write(self.report_fd, rest) :]

    def take_buffer(self):
        """5.1.8.3 steps 2 to 6, for the first and each later buffer."""
        fd, capacity, _ = attach(self.cpu)
        if capacity < 32 or capacity & (capacity - 1) or capacity >> 60:
            raise Refused("capacity %d is no power of two" % capacity)
        size, read_write, shared = METADATA_BYTES + 2 * capacity, 3, 1
        base = libc.mmap(None, size, read_write, shared, fd, 0)
        if base == ctypes.c_void_p(-1).value:
            raise Refused("cannot be mapped")
        if self.base is not None:
            libc.munmap(self.base, METADATA_BYTES + 2 * self.capacity)
        self.base, self.capacity = base, capacity
        fields = STATIC_FIELDS.unpack(ctypes.string_at(base, STATIC_FIELDS.size))
        if fields[:2] != (b"KMESRING", 1):
            raise Refused("magic %r, version %d" % fields[:2])
        if fields[4:] != (capacity, METADATA_BYTES):  # E14. Reserved bytes are not checked.
            raise Refused("capacity %d or data_offset %d" % fields[4:])
        # E19: a buffer retired since the attach already shows its successor's generation, so no
        # change would follow. If it still is the CPU's current buffer, the generation is its own.
        self.generation = self.load(GENERATION)
        current = attach(self.cpu)[0]
        self.replaced = not os.path.samestat(os.fstat(fd), os.fstat(current))
        os.close(fd)  # the mapping stays
        os.close(current)
        # E11: positions of the old buffer say nothing about this one. Start at its oldest event;
        # sequence numbers show which events were delivered from an earlier buffer (E21).
        self.read_pos = self.load(TAIL_POS)
        self.report.append("G %d %d\n" % (self.cpu, self.generation))

    def copy_event(self, readable):
        """5.1.8.1 step 4: a private copy of the event (E6). None if its sizes are impossible: they
        may be torn (E7). An event of more than half of the capacity can have survived a shrink."""
        at = self.base + METADATA_BYTES + (self.read_pos & (self.capacity - 1))
        if not HEADER.size <= readable <= self.capacity:
            return None
        header = HEADER.unpack(ctypes.string_at(at, HEADER.size))
        event_size, header_size, type_len = header[0], header[1], header[6]
        if type_len == 0 or not HEADER.size + type_len <= header_size <= event_size <= readable:
            return None
        return ctypes.string_at(at, event_size)

    def deliver(self, event):
        """Reports the event, unless an earlier buffer contained it. False: the end event."""
        _, header_size, timestamp, sequence, _, origin, type_len = HEADER.unpack_from(event)
        if sequence <= self.last_sequence:
            return True
        kind, payload = event[HEADER.size : HEADER.size + type_len], event[header_size:]
        if self.last_sequence != 0 and sequence > self.last_sequence + 1:  # 5.1.9
            self.report.append("L %d %d\n" % (self.cpu, sequence - self.last_sequence - 1))
        self.last_sequence = sequence
        record = self.cpu, sequence, timestamp, origin, kind.hex(), len(payload), fnv_1a(payload)
        self.report.append("E %d %d %d %d %s %d %016x\n" % record)
        if len(self.report) >= 256:
            self.flush()
        return kind != b"kmes.conformance.end"

    def drain(self):
        """5.1.8.1. True once the buffer is empty, false if this CPU has ended. After each move of
        read_pos it loads write_pos again, as tail_pos may have reached it (E20)."""
        while True:
            write_pos = self.load(WRITE_POS)  # step 1
            if self.read_pos >= write_pos:
                return True
            lapped = self.load(TAIL_POS) > self.read_pos  # step 2
            event = None if lapped else self.copy_event(write_pos - self.read_pos)
            fence(ACQUIRE)  # E4: the copy is done before the next load
            tail_pos = self.load(TAIL_POS)  # step 5
            if tail_pos > self.read_pos:
                self.read_pos = tail_pos  # lapped, or torn
                continue
            if event is None:
                raise Refused("corrupt event at %d" % self.read_pos)
            if not self.deliver(event):
                return False
            self.read_pos += len(event)  # step 6

    def is_retired(self):  # by any change, not only plus one (E15); never cached (E9)
        return self.replaced or self.load(GENERATION) != self.generation

    def sleep_until_woken(self):
        """5.1.8.2, alone on the buffer (E12). Returns when there may be work."""
        word = self.base + FUTEX_COUNTER
        counter = load_32(word, ACQUIRE)  # E2: first, so that an event from here on ends the wait
        store_8(self.base + NEED_WAKE, 1, RELAXED)
        fence(SEQ_CST)  # E1: we see the event or they see the flag
        if self.load(WRITE_POS) <= self.read_pos and not self.is_retired():  # E3: both
            arguments = ctypes.c_void_p(word), FUTEX_WAIT, ctypes.c_uint32(counter), None
            result = libc.syscall(SYS_FUTEX, *arguments)
            # Whatever ends the wait counts as a wake.
            if result != 0 and ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                raise OSError(ctypes.get_errno(), "futex")
        store_8(self.base + NEED_WAKE, 0, RELAXED)

    def consume(self):
        self.take_buffer()
        while True:
            # Before the drain, so that the drain sees the last write_pos of a retired buffer (E24)
            # and delivers all of it, even if the next buffer is too small for that (E10).
            retired = self.is_retired()
            if not self.drain():
                return
            self.flush()
            if retired:
                self.take_buffer()
            else:
                self.sleep_until_woken()

    def run(self):
        try:
            self.consume()
        except Refused as reason:
            self.report.append("R %d %s\n" % (self.cpu, reason))
        self.flush()


def main():
    # A thread that fails ends the program: the others would go on forever.
    threading.excepthook = lambda failure: (sys.__excepthook__(*failure[:3]), os._exit(1))
    report_fd = int(os.environ.get("KMES_REPORT_FD", "1"))
    fd, _, count = attach(0)
    os.close(fd)
    consumers = [Consumer(cpu, report_fd) for cpu in range(count)]
    threads = [threading.Thread(target=consumer.run) for consumer in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
