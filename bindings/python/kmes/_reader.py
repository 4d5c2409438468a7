# SPDX-License-Identifier: MIT
"""ReaderSet, the events that it delivers, and emit."""
from __future__ import annotations

import ctypes
import errno
import math
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from . import _library
from ._library import library

# The longest sleep in the library: a signal that comes just before a sleep is handled after it.
_SLICE_S = 1.0
_LONGEST_NS = 2.0**63
# Events that an asynchronous iterator delivers before it lets other tasks run.
_TURN_EVENTS = 64


@dataclass(frozen=True, slots=True)
class Event:
    """One event. It owns its bytes.

    `type` is UTF-8. Bytes that are not are surrogates: `type_bytes` has them as they were.
    """

    cpu: int
    sequence: int
    """Of its CPU, from 1."""
    timestamp_ns: int
    """Nanoseconds since the Unix epoch. It may jump either way."""
    origin: int
    """0 userspace, 1 KMES, 2 KACS, 3 LCS."""
    type: str
    payload: bytes
    lost_before: int = 0
    """Events of the same CPU that were lost directly before this one (5.1.9)."""

    @property
    def type_bytes(self) -> bytes:
        """The type as it was emitted."""
        return self.type.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Loss:
    """`count` events of a CPU were lost directly before the event with the number `before`."""

    cpu: int
    count: int
    before: int


@dataclass(frozen=True, slots=True)
class Place:
    """Up to which event a CPU was delivered, or the event before the first.

    Plain numbers: save them, and resume later.
    """

    session: int
    """Identifies the producer, whose sequence numbers begin at 1. 0: a producer in a kernel."""
    last_sequence: int
    is_known: bool


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one CPU, over all its buffers (struct kmes_reader_statistics)."""

    delivered: int
    lost: int
    laps: int
    torn: int
    corrupt: int
    not_newer: int
    switches: int
    sleeps: int


def _error(number: int, what: str) -> OSError:
    return OSError(number, f"{what}: {os.strerror(number)}")


def _ns_of(timeout: float | None) -> int:
    if timeout is None:
        return _library.NO_TIMEOUT
    return int(max(0.0, min(timeout * 1e9, _LONGEST_NS)))


def emit(type: str | bytes, payload: bytes = b"") -> None:
    """Emits one event from this process (kmes_emit).

    Raises OSError: EINVAL for an empty type or one that is not UTF-8, ENOSPC for an event that is
    too large, ENOSYS where nobody serves KMES, and what kmes/user/libkmes.h lists besides.
    """
    name = type.encode() if isinstance(type, str) else bytes(type)
    body = bytes(payload)
    if len(name) >= 2**16 or len(body) >= 2**32:
        raise _error(errno.ENOSPC, "kmes_emit")
    if library.kmes_emit(name, len(name), body, len(body)) != 0:
        raise _error(ctypes.get_errno(), "kmes_emit")


def cpu_count() -> int:
    """Number of CPUs of the producer, also where no buffer can be read. Errors as ReaderSet."""
    result = library.kmes_cpus_by_libkmes()
    if result < 0:
        raise _error(-result, "kmes_cpus_by_libkmes")
    return result


class ReaderSet:
    """A reader of the rings of all CPUs.

    It is an iterator of all events, which sleeps while there is none, and a context manager. The
    iterator ends only by an exception, such as that of a signal handler. A CPU
    that cannot be read now does not stop it: error_of() says why, and the set tries that CPU again.

    exclusive: the caller promises that nobody else sleeps on these rings (E12). The default is
    correct with any number of consumers.

    read_only: maps everything read-only, and checks every 10 ms in place of a wake. Not with
    exclusive.

    watermark_bytes, watermark_s: wait() returns when so many bytes are unread, or so long after the
    first of them. Both or neither. That time may be up to a second longer, and at most twice as
    long.

    places: one for each CPU, from place() of an earlier set: events up to there are not delivered
    again.

    Raises OSError: what kmes_reader_set_open returns, ENOSYS where nobody serves KMES.
    """

    def __init__(
        self,
        *,
        exclusive: bool = False,
        read_only: bool = False,
        watermark_bytes: int = 0,
        watermark_s: float = 0.0,
        places: Sequence[Place] = (),
    ) -> None:
        self._lock = threading.RLock()
        self._set: ctypes.c_void_p | None = None
        # A signal handler runs inside an interrupted call, and the lock lets its thread in.
        self._is_in_call = False
        self._is_in_next = False
        self._closed: ctypes.c_void_p | None = None  # until the interrupted call ends
        self._view = _library.EventView()
        self._watermark_s = watermark_s
        options = _library.Options(
            size=ctypes.sizeof(_library.Options),
            is_exclusive=exclusive,
            is_read_only=read_only,
            watermark_bytes=watermark_bytes,
            watermark_ns=_ns_of(watermark_s),
        )
        if places:
            array = [_library.Place(p.session, p.last_sequence, p.is_known) for p in places]
            options.place = (_library.Place * len(array))(*array)
            options.places = len(array)
        handle = ctypes.c_void_p()
        result = library.kmes_reader_set_open(ctypes.byref(handle), ctypes.byref(options))
        if result != 0:
            raise _error(-result, "kmes_reader_set_open")
        self._set = handle

    def close(self) -> None:
        """Detaches. A call of another thread ends first. A closed set raises ValueError.

        A signal handler may call it: the call that it interrupted ends first, as if it came before.
        """
        with self._lock:
            handle, self._set = self._set, None
            if handle is not None:
                self._closed = handle
            if not self._is_in_call:
                self._free_closed()

    def _free_closed(self) -> None:
        handle, self._closed = self._closed, None
        if handle is not None:
            library.kmes_reader_set_close(handle)

    def __enter__(self) -> ReaderSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_set", None) is not None:
            self.close()

    def _call(self, function, *arguments):
        with self._lock:
            was_in_call = self._is_in_call
            try:
                self._is_in_call = True
                handle = self._set
                if handle is None:
                    raise ValueError("the ReaderSet is closed")
                return function(handle, *arguments)
            finally:
                self._is_in_call = was_in_call
                if not was_in_call:
                    self._free_closed()

    @property
    def cpus(self) -> int:
        """Number of CPUs, the same for the life of the set; cpu_count() has the producer's now."""
        return self._call(library.kmes_reader_set_cpus)

    def _check_cpu(self, cpu: int) -> None:
        if not 0 <= cpu < self.cpus:
            raise IndexError(f"CPU {cpu}; the set has CPUs 0 to {self.cpus - 1}")

    def error_of(self, cpu: int) -> OSError | None:
        """Return why a CPU cannot be read now; None if it can.

        ENOSYS: no producer serves. If it was killed, a set finds that out by waits in which no
        event comes, each CPU about once a second.
        """
        self._check_cpu(cpu)
        result = self._call(library.kmes_reader_set_error, cpu)
        return _error(-result, f"CPU {cpu}") if result else None

    def statistics(self, cpu: int) -> Statistics:
        """The counts of one CPU."""
        self._check_cpu(cpu)
        counts = self._call(library.kmes_reader_set_statistics, cpu)
        return Statistics(*(getattr(counts, name) for name, _ in counts._fields_))

    def generation(self, cpu: int) -> int:
        """The generation of the buffer that is read now (5.1.8.3); 0 where none was."""
        self._check_cpu(cpu)
        return self._call(library.kmes_reader_set_generation, cpu)

    def place(self, cpu: int) -> Place:
        """Up to which event the CPU was delivered, for `places` of a later set."""
        self._check_cpu(cpu)
        place = self._call(library.kmes_reader_set_get_place, cpu)
        return Place(place.session, place.last_sequence, place.is_known)

    def try_next(self) -> Event | None:
        """The next event of any CPU that is there now. MemoryError: the event is not consumed.

        RuntimeError: a signal handler has interrupted try_next() of this set, and calls it again.
        """
        with self._lock:
            if self._is_in_next:
                raise RuntimeError("a signal handler calls try_next() inside try_next()")
            try:
                self._is_in_next = True
                return self._call(self._next_of)
            finally:
                self._is_in_next = False

    def _next_of(self, handle: ctypes.c_void_p) -> Event | None:
        view = self._view
        found = library.kmes_reader_set_next(handle, ctypes.byref(view))
        if found != _library.READ_EVENT:
            if found == -errno.ENOMEM:
                raise MemoryError("no room for the next event")
            if found < 0:
                raise _error(-found, "kmes_reader_set_next")
            return None
        # The set's own copy, which the producer cannot reach, is good until its next call.
        name = ctypes.string_at(view.type, view.type_len)
        return Event(
            view.cpu_id,
            view.sequence,
            view.timestamp,
            view.origin_class,
            name.decode("utf-8", "surrogateescape"),
            ctypes.string_at(view.payload, view.payload_len),
            view.lost_before,
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Sleeps until there may be something new, at most `timeout` seconds. False: time is over.

        Other threads run meanwhile, but those that call this set wait for a second at most.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        # The end of the watermark's time, if a slice has ended before the watermark.
        watermark_end = math.inf
        while True:
            begin = time.monotonic()
            left = min(end, watermark_end) - begin
            result = self._call(library.kmes_reader_set_wait, _ns_of(min(left, _SLICE_S)))
            if result > 0:
                is_slice_over = left > _SLICE_S and time.monotonic() >= begin + _SLICE_S
                if self._watermark_s == 0 or not is_slice_over:
                    return True
                if watermark_end == math.inf:
                    watermark_end = time.monotonic() + self._watermark_s
                continue
            # Python handles the signal of an EINTR before the next line: KeyboardInterrupt.
            if result != -errno.EINTR:
                watermark_end = math.inf  # nothing is unread
            is_quiet = result in (-errno.ETIMEDOUT, -errno.EINTR)
            is_over = time.monotonic() >= end
            # No CPU can be read now: the set tries them again until the caller's time is over.
            is_retried = result == self._call(library.kmes_reader_set_error, 0)
            if not is_quiet and (is_over or not is_retried):
                raise _error(-result, "kmes_reader_set_wait")
            if is_over:
                return False

    def available(self) -> Iterator[Event]:
        """The events that are there now; ends when no CPU has one."""
        while (event := self.try_next()) is not None:
            yield event

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """All events, with sleeps between them; ends when none came for `timeout` seconds.

        Without a timeout it ends only by an exception, such as that of a signal handler.
        """
        end = None
        while True:
            for event in self.available():
                end = None
                yield event
            # A wait may end without an event, and the next one has the rest of the time.
            if timeout is not None and end is None:
                end = time.monotonic() + timeout
            if not self.wait(None if end is None else end - time.monotonic()):
                return

    def events_and_losses(self, timeout: float | None = None) -> Iterator[Event | Loss]:
        """As events(), with a Loss before each event that has `lost_before`."""
        for event in self.events(timeout):
            if event.lost_before:
                yield Loss(event.cpu, event.lost_before, event.sequence)
            yield event

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def fileno(self) -> int:
        """A descriptor that is readable while there is something unread, for select and epoll.

        It becomes unreadable when try_next() returns None. It belongs to the set: do not close it.
        """
        result = self._call(library.kmes_reader_set_fd)
        if result < 0:
            raise _error(-result, "kmes_reader_set_fd")
        return result

    async def _readable(self) -> None:
        import asyncio  # half of the time of an import of this package

        loop = asyncio.get_running_loop()
        descriptor = self.fileno()
        is_readable = asyncio.Event()
        loop.add_reader(descriptor, is_readable.set)
        try:
            await is_readable.wait()
        finally:
            loop.remove_reader(descriptor)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """All events, for `async for`. One task at a time iterates over a set."""
        import asyncio

        while True:
            for count, event in enumerate(self.available(), 1):
                yield event
                if count % _TURN_EVENTS == 0:
                    await asyncio.sleep(0)
            await self._readable()
