# SPDX-License-Identifier: MIT
"""KMES for Python: the events of all CPUs as an iterator, over the shared library libkmes.

    import kmes

    with kmes.ReaderSet() as events:
        for event in events:
            print(event.cpu, event.sequence, event.type, event.payload)

`async for event in events` does the same in an asyncio program. `kmes.emit` emits an event from
this process, and `kmes.msgpack.decode(event.payload)` decodes a payload in msgpack.

Errors of the library are OSError with its errno; docs/producer-socket.md explains each. A ReaderSet
may be used from any thread: its calls exclude each other. No copy of a payload points into memory
that a producer can change.
"""
from . import msgpack
from ._reader import Event, Loss, Place, ReaderSet, Statistics, cpu_count, emit

__all__ = ["Event", "Loss", "Place", "ReaderSet", "Statistics", "cpu_count", "emit", "msgpack"]
__version__ = "0.20.0"
