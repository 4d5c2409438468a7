#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A correct consumer for the patches of this folder: one thread serves all CPUs in turn, and
waits for at most 50 ms on the counter of one of them when all are empty. x86-64."""
import ctypes
import errno
import os
import struct
import time

ATTACH, FUTEX, MEMBARRIER = 1091, 202, 324
PAGE, GENERATION, WRITE_POS, TAIL_POS, COUNTER, NEED_WAKE = 4096, 32, 64, 72, 128, 132
HEADER = struct.Struct("<IIQQHBH")
END = b"kmes.conformance.end"
MAY_PASS = errno.EAGAIN, errno.EPERM, errno.ENOMEM, errno.ENFILE, errno.EMFILE

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
report_fd = int(os.environ.get("KMES_REPORT_FD", "1"))
report = []


def flush():
    rest = "".join(report).encode()
    report.clear()
    while rest:
        rest = rest[os.write(report_fd, rest) :]


def attach_all():
    count, capacity = ctypes.c_int(0), ctypes.c_uint64()
    for _ in range(5000):
        fds = (ctypes.c_int * count.value)()
        if libc.syscall(ATTACH, fds, ctypes.byref(count), ctypes.byref(capacity)) == 0:
            return list(fds)[: count.value], capacity.value
        if ctypes.get_errno() in MAY_PASS:
            time.sleep(0.001)
        elif ctypes.get_errno() != errno.ERANGE:
            break
    raise OSError(ctypes.get_errno(), "kmes_attach")


def attach(cpu):
    fds, capacity = attach_all()
    for other in set(range(len(fds))) - {cpu}:
        os.close(fds[other])
    return fds[cpu], capacity


def fnv_1a(payload):
    digest, whole = 0xCBF29CE484222325, len(payload) & ~3
    for a, b, c, d in zip(*(payload[i:whole:4] for i in range(4))):
        digest = ((digest ^ a) * 0x100000001B3 ^ b) * 0x100000001B3
        digest = ((digest ^ c) * 0x100000001B3 ^ d) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    for byte in payload[whole:]:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


class Refused(Exception):
    pass


class Cpu:
    def __init__(self, cpu):
        self.cpu, self.base, self.capacity, self.done = cpu, None, 0, False
        self.generation, self.replaced, self.read_pos, self.last_sequence = 0, False, 0, 0

    def load(self, field):
        return ctypes.c_uint64.from_address(self.base + field).value

    def load_counter(self):
        return ctypes.c_uint32.from_address(self.base + COUNTER).value

    def set_flag(self, value):
        ctypes.c_uint8.from_address(self.base + NEED_WAKE).value = value

    def take_buffer(self):
        fd, capacity = attach(self.cpu)
        if capacity < 64 or capacity & (capacity - 1) or capacity >> 60:
            raise Refused("capacity")
        base = libc.mmap(None, PAGE + 2 * capacity, 3, 1, fd, 0)
        if base == ctypes.c_void_p(-1).value:
            raise Refused("cannot be mapped")
        if self.base is not None:
            libc.munmap(self.base, PAGE + 2 * self.capacity)
        self.base, self.capacity = base, capacity
        magic, version, _, _, inside, start = struct.unpack("<8sIHHQQ", ctypes.string_at(base, 32))
        if (magic, version, inside, start) != (b"KMESRING", 1, capacity, PAGE):
            raise Refused("metadata")
        self.generation = self.load(GENERATION)
        now, _ = attach(self.cpu)
        self.replaced = not os.path.samestat(os.fstat(fd), os.fstat(now))
        os.close(fd)
        os.close(now)
        self.read_pos = self.load(TAIL_POS)
        report.append("G %d %d\n" % (self.cpu, self.generation))

    def is_retired(self):
        return self.replaced or self.load(GENERATION) != self.generation

    def copy_event(self, readable):
        at = self.base + PAGE + (self.read_pos & (self.capacity - 1))
        if not HEADER.size <= readable <= self.capacity:
            return None
        header = HEADER.unpack(ctypes.string_at(at, HEADER.size))
        size, header_size, type_len = header[0], header[1], header[6]
        if type_len == 0 or not HEADER.size + type_len <= header_size <= size <= readable:
            return None
        return ctypes.string_at(at, size)

    def deliver(self, event):
        _, header_size, timestamp, sequence, _, origin, type_len = HEADER.unpack_from(event)
        if sequence <= self.last_sequence:
            return
        kind, payload = event[HEADER.size : HEADER.size + type_len], event[header_size:]
        if self.last_sequence != 0 and sequence > self.last_sequence + 1:
            report.append("L %d %d\n" % (self.cpu, sequence - self.last_sequence - 1))
        self.last_sequence = sequence
        record = self.cpu, sequence, timestamp, origin, kind.hex(), len(payload), fnv_1a(payload)
        report.append("E %d %d %d %d %s %d %016x\n" % record)
        if kind == END:
            self.done = True

    def drain(self):
        while not self.done:
            write_pos = self.load(WRITE_POS)
            if self.read_pos >= write_pos:
                return
            lapped = self.load(TAIL_POS) > self.read_pos
            event = None if lapped else self.copy_event(write_pos - self.read_pos)
            tail_pos = self.load(TAIL_POS)
            if tail_pos > self.read_pos:
                self.read_pos = tail_pos
                continue
            if event is None:
                raise Refused("corrupt")
            self.deliver(event)
            self.read_pos += len(event)

    def serve(self):
        try:
            if self.base is None:
                self.take_buffer()
            while not self.done:
                retired = self.is_retired()
                self.drain()
                if self.done or not retired:
                    break
                self.take_buffer()
        except Refused as reason:
            report.append("R %d %s\n" % (self.cpu, reason))
            self.done = True


def wait(cpu, counter, seconds):
    limit = (ctypes.c_long * 2)(int(seconds), int(seconds % 1 * 1e9))
    word, value = ctypes.c_void_p(cpu.base + COUNTER), ctypes.c_uint32(counter)
    libc.syscall(FUTEX, word, 0, value, ctypes.byref(limit), None, 0)


def sleep(live):
    counters = [cpu.load_counter() for cpu in live]
    for cpu in live:
        cpu.set_flag(1)
    # The full barrier. It takes milliseconds, but needs only a system call.
    libc.syscall(MEMBARRIER, 1, 0, 0)
    if all(cpu.load(WRITE_POS) <= cpu.read_pos and not cpu.is_retired() for cpu in live):
        wait(live[0], counters[0], 0.05)
    for cpu in live:
        cpu.set_flag(0)


def main():
    fds, _ = attach_all()
    for fd in fds:
        os.close(fd)
    cpus = [Cpu(cpu) for cpu in range(len(fds))]
    while True:
        for cpu in cpus:
            cpu.serve()
        flush()
        live = [cpu for cpu in cpus if not cpu.done]
        if not live:
            return
        sleep(live)


main()
