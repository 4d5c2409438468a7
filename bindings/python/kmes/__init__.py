# SPDX-License-Identifier: MIT
"""KMES for Python: the events of all CPUs as an iterator, over the shared library libkmes.

    import kmes

    with kmes.ReaderSet() as events:
        for event in events:
            print(event.cpu, event.sequence, event.type, event.payload)

`async for event in events` does the same in an asyncio program. `kmes.emit` emits an event from
this process, and `kmes.msgpack.decode(event.payload)` decodes a payload in msgpack.

Errors of the library are OSError with its errno: ENOSYS if there is no producer, EPERM and EACCES
for a caller that may not attach or emit. The pages kmes_reader_set_open(3), kmes_reader_set_poll(3)
and kmes_emit(3) of the package libkmes-dev have the others.

A ReaderSet may be used from any thread: its calls exclude each other. No copy of a payload points
into memory that a producer can change.

To end by a signal, raise an exception in a handler of signal.signal, which runs within a second. Or
set a flag there, and iterate over `events(timeout=1)` while it is not set.

A set continues with the next producer. Its sequence numbers begin again at 1, and
`place(event.cpu).session` of its events differs. The README also explains a change of the number
of CPUs.
"""
from . import msgpack
from ._reader import Event, Loss, Place, ReaderSet, Statistics, cpu_count, emit

__all__ = ["Event", "Loss", "Place", "ReaderSet", "Statistics", "cpu_count", "emit", "msgpack"]
__version__ = "0.20.0"
