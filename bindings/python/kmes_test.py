# SPDX-License-Identifier: MIT
"""The Python binding over a real producer (`kmesctl serve`), and the decoder of msgpack.

kmes_test.py KMESCTL LIBRARY LAYOUTS [unittest arguments]

LAYOUTS: the program of layouts.c.
"""
import asyncio
import ctypes
import errno
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
SCALE = float(os.environ.get("KMES_TIMEOUT_SCALE", "1"))
PATIENCE_S = 20 * SCALE


class Producer:
    """`kmesctl serve` with two CPUs. Its address is short: a socket's path has 107 bytes."""

    def __init__(self, kmesctl):
        self.folder = tempfile.mkdtemp(prefix="kmes", dir="/tmp")
        self.address = f"{self.folder}/socket"
        self.process = subprocess.Popen(
            [kmesctl, "serve", "--socket", self.address, "--cpus", "2", "--capacity", "64K"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        line = self.process.stdout.readline()
        if b"serves" not in line:
            raise RuntimeError(f"kmesctl serve says {line!r}")

    def terminate(self):
        self.process.terminate()
        self.process.wait()

    def end(self):
        self.terminate()
        self.process.stdout.close()
        shutil.rmtree(self.folder)


class BindingTest(unittest.TestCase):
    def setUp(self):
        self.producer = Producer(KMESCTL)
        self.addCleanup(self.producer.end)
        os.environ["KMES_SOCKET"] = self.producer.address

    def test_iterator_delivers_every_field(self):
        with kmes.ReaderSet() as events:
            kmes.emit("a.type", b"\0payload")
            kmes.emit("\u00e4".encode())
            first, second = events.available()
            if first.type != "a.type":
                first, second = second, first
            self.assertEqual((first.type, first.payload), ("a.type", b"\0payload"))
            self.assertEqual(second.type_bytes, b"\xc3\xa4")
            self.assertEqual(first.origin, 0)
            self.assertIn(first.cpu, range(2))
            self.assertGreater(first.timestamp_ns, 0)
            self.assertEqual(list(events.available()), [])
            delivered = sum(events.statistics(cpu).delivered for cpu in range(events.cpus))
            self.assertEqual(delivered, 2)
            self.assertEqual(events.generation(0), 1)
            self.assertIsNone(events.error_of(1))

    def test_iterator_sleeps_until_an_event_comes(self):
        with kmes.ReaderSet() as events:
            emitter = threading.Thread(target=lambda: [kmes.emit(f"t{i}") for i in range(50)])
            emitter.start()
            seen = []
            for event in events:
                seen.append(event.type)
                if len(seen) == 50:
                    break
            emitter.join()
            self.assertEqual(set(seen), {f"t{i}" for i in range(50)})

    def test_events_end_after_the_timeout(self):
        with kmes.ReaderSet() as events:
            self.assertEqual(list(events.events(timeout=0.01)), [])
            self.assertFalse(events.wait(0))
            self.assertFalse(events.wait(-1))

    def test_events_end_after_the_end_of_the_producer(self):
        # The set tries the CPUs again within the timeout, and each attempt ends a wait.
        with kmes.ReaderSet() as events:
            kmes.emit("t")
            self.assertEqual(len(list(events.available())), 1)
            self.producer.terminate()
            with self.assertRaises(OSError) as caught:
                list(events.events(timeout=0.5))
            self.assertEqual(caught.exception.errno, errno.ENOSYS)

    def test_losses_are_objects(self):
        with kmes.ReaderSet() as events:
            kmes.emit("first")
            first = next(iter(events))
            emitted = 0
            while True:
                for _ in range(300):
                    kmes.emit("t", b"x" * 1000)
                emitted += 300
                items = list(events.events_and_losses(timeout=0.01))
                losses = [item for item in items if isinstance(item, kmes.Loss)]
                if losses:
                    break
            for loss in losses:
                event = items[items.index(loss) + 1]
                self.assertEqual((event.cpu, event.lost_before), (loss.cpu, loss.count))
                self.assertEqual(event.sequence, loss.before)
            self.assertGreater(first.sequence, 0)

    def test_losses_before_the_first_event_are_counted(self):
        count = 5000
        for _ in range(2):  # an empty ring, and one with events
            with kmes.ReaderSet() as events:
                before = sum(events.place(cpu).last_sequence for cpu in range(events.cpus))
                for _ in range(count):
                    kmes.emit("t", b"x" * 100)
                delivered = len(list(events.available()))
                lost = sum(events.statistics(cpu).lost for cpu in range(events.cpus))
                after = sum(events.place(cpu).last_sequence for cpu in range(events.cpus))
                self.assertGreater(lost, 0)
                self.assertEqual(delivered + lost, after - before)
                self.assertGreaterEqual(after - before, count)

    def test_place_resumes(self):
        with kmes.ReaderSet() as events:
            kmes.emit("old")
            self.assertEqual([event.type for event in events.available()], ["old"])
            places = [events.place(cpu) for cpu in range(events.cpus)]
        kmes.emit("new")
        with kmes.ReaderSet(places=places) as events:
            self.assertEqual([event.type for event in events.available()], ["new"])
        with kmes.ReaderSet() as events:
            self.assertEqual(len(list(events.available())), 2)

    def test_read_only_set_delivers(self):
        with kmes.ReaderSet(read_only=True) as events:
            kmes.emit("t")
            self.assertEqual(next(iter(events)).type, "t")
        with self.assertRaises(OSError) as caught:
            kmes.ReaderSet(read_only=True, exclusive=True)
        self.assertEqual(caught.exception.errno, errno.EINVAL)

    def test_watermark_holds_for_longer_than_one_slice(self):
        def emit():
            kmes.emit("first")
            time.sleep(2.5)  # wait() sleeps in slices of a second
            for _ in range(100):
                kmes.emit("t", b"x" * 200)

        with kmes.ReaderSet(watermark_bytes=8192, watermark_s=3600) as events:
            emitter = threading.Thread(target=emit)
            emitter.start()
            self.assertTrue(events.wait())
            self.assertGreater(len(list(events.available())), 30)
            emitter.join()
            kmes.emit("t")
            self.assertTrue(events.wait(0.01))
        with kmes.ReaderSet(watermark_bytes=2**40, watermark_s=1.5) as events:
            list(events.available())
            kmes.emit("t")
            self.assertTrue(events.wait())

    def test_async_iterator(self):
        async def collect(events, count):
            seen = []
            async for event in events:
                seen.append(event.type)
                if len(seen) == count:
                    return seen

        async def main(events):
            collector = asyncio.create_task(collect(events, 200))
            for i in range(200):
                kmes.emit(f"t{i}")
                if i % 50 == 0:
                    await asyncio.sleep(0.001)
            seen = await asyncio.wait_for(collector, PATIENCE_S)
            self.assertEqual(set(seen), {f"t{i}" for i in range(200)})

        with kmes.ReaderSet() as events:
            asyncio.run(main(events))

    def test_errors_are_os_errors(self):
        with self.assertRaises(OSError) as caught:
            kmes.emit("")
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        with self.assertRaises(OSError) as caught:
            kmes.emit("t" * 70000)
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        with self.assertRaises(OSError) as caught:
            kmes.ReaderSet(watermark_bytes=1)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        os.environ["KMES_SOCKET"] = f"{self.producer.folder}/nobody"
        with self.assertRaises(OSError) as caught:
            kmes.ReaderSet()
        self.assertEqual(caught.exception.errno, errno.ENOSYS)
        self.assertRaises(OSError, kmes.cpu_count)

    def test_closed_set_refuses(self):
        events = kmes.ReaderSet()
        self.assertRaises(IndexError, events.error_of, 2)
        self.assertRaises(IndexError, events.place, -1)
        iterator = iter(events)
        events.close()
        events.close()
        self.assertRaises(ValueError, events.try_next)
        self.assertRaises(ValueError, next, iterator)

    def test_other_threads_may_close(self):
        events = kmes.ReaderSet()
        closer = threading.Timer(0.01, events.close)
        closer.start()
        with self.assertRaises(ValueError):
            events.wait()
        closer.join()

    def signal_after(self, function, handler):
        """Python's handler of SIGALRM runs when the C function has returned, inside the method."""
        real = getattr(kmes._library.library, function)

        def interrupted(*arguments):
            result = real(*arguments)
            os.kill(os.getpid(), signal.SIGALRM)
            return result

        before = signal.signal(signal.SIGALRM, lambda *_: handler())
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        return unittest.mock.patch.object(kmes._library.library, function, interrupted)

    def test_signal_handler_may_close(self):
        events = kmes.ReaderSet()
        kmes.emit("a.type", b"payload")
        with self.signal_after("kmes_reader_set_next", events.close):
            event = events.try_next()
        self.assertEqual((event.type, event.payload), ("a.type", b"payload"))
        with self.assertRaises(ValueError):
            events.try_next()
        self.assertIsNone(events._closed)

    def test_signal_handler_may_close_before_a_call(self):
        events = kmes.ReaderSet()
        with self.signal_after("kmes_reader_set_cpus", events.close):
            self.assertEqual(events.cpus, 2)
        with self.assertRaises(ValueError):
            events.cpus

    def test_signal_handler_may_not_read_inside_a_read(self):
        with kmes.ReaderSet() as events:
            kmes.emit("first")
            kmes.emit("second")
            seen = []
            with self.signal_after("kmes_reader_set_next", lambda: seen.append(events.cpus)):
                self.assertIsNotNone(events.try_next())
            self.assertEqual(seen, [2])
            with self.signal_after("kmes_reader_set_next", events.try_next):
                with self.assertRaises(RuntimeError):
                    events.try_next()
            self.assertIsNone(events.try_next())

    def test_signal_interrupts_a_wait(self):
        def stop(*_):
            raise InterruptedError("by the handler")

        with kmes.ReaderSet() as events:
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            self.assertRaises(InterruptedError, events.wait)


class LibraryTest(unittest.TestCase):
    def test_missing_library_is_one_clear_error(self):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HERE)}
        code = "import kmes._library as l"
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        if found.returncode == 0:
            self.skipTest("libkmes is installed on this machine")
        self.assertIn("LD_LIBRARY_PATH", found.stderr.splitlines()[-1])


    def test_structures_are_those_of_the_headers(self):
        names = {
            "kmes_event_view": kmes._library.EventView,
            "kmes_reader_place": kmes._library.Place,
            "kmes_reader_statistics": kmes._library.Statistics,
            "kmes_reader_set_options": kmes._library.Options,
        }
        printed = subprocess.run([LAYOUTS], capture_output=True, text=True, check=True).stdout
        repeated = []
        for name, structure in names.items():
            repeated.append(f"{name} - 0 {ctypes.sizeof(structure)}")
            for field, *_ in structure._fields_:
                place = getattr(structure, field)
                repeated.append(f"{name} {field} {place.offset} {place.size}")
        self.assertEqual(printed.splitlines(), repeated)


class MsgpackTest(unittest.TestCase):
    VALUES = {
        b"\x00": 0,
        b"\x7f": 127,
        b"\xff": -1,
        b"\xe0": -32,
        b"\xc0": None,
        b"\xc2": False,
        b"\xc3": True,
        b"\xcc\xff": 255,
        b"\xcd\x01\x00": 256,
        b"\xce\x00\x01\x00\x00": 65536,
        b"\xcf" + b"\xff" * 8: 2**64 - 1,
        b"\xd0\x80": -128,
        b"\xd1\x80\x00": -32768,
        b"\xd2\x80\x00\x00\x00": -(2**31),
        b"\xd3\x80" + b"\0" * 7: -(2**63),
        b"\xca\x3f\x80\x00\x00": 1.0,
        b"\xcb" + struct.pack(">d", 0.1): 0.1,
        b"\xa0": "",
        b"\xa3\xe2\x82\xac": "\u20ac",
        b"\xd9\x01a": "a",
        b"\xda\x00\x01a": "a",
        b"\xdb\x00\x00\x00\x01a": "a",
        b"\xc4\x01a": b"a",
        b"\xc5\x00\x01a": b"a",
        b"\xc6\x00\x00\x00\x01a": b"a",
        b"\x93\x01\xa1b\xc0": [1, "b", None],
        b"\xdc\x00\x01\x01": [1],
        b"\xdd\x00\x00\x00\x01\x01": [1],
        b"\x81\xa1a\x90": {"a": []},
        b"\xde\x00\x01\x01\x80": {1: {}},
        b"\xdf\x00\x00\x00\x01\x01\x02": {1: 2},
    }

    def test_every_form(self):
        for payload, value in self.VALUES.items():
            self.assertEqual(kmes.msgpack.decode(payload), value)
        for size in (1, 2, 4, 8, 16):
            payload = bytes([0xD4 + size.bit_length() - 1, 0xFF]) + b"x" * size
            self.assertEqual(kmes.msgpack.decode(payload), kmes.msgpack.Ext(-1, b"x" * size))
        self.assertEqual(kmes.msgpack.decode(b"\xc7\x01\x05x"), kmes.msgpack.Ext(5, b"x"))

    def test_every_cut_and_every_addition_is_an_error(self):
        for payload in self.VALUES:
            for end in range(len(payload)):
                self.assertRaises(ValueError, kmes.msgpack.decode, payload[:end])
            self.assertRaises(ValueError, kmes.msgpack.decode, payload + b"\xc0")

    def test_hostile_values_are_errors(self):
        depth = kmes.msgpack.MAX_DEPTH
        kmes.msgpack.decode(b"\x91" * depth + b"\x00")
        hostile = [
            b"\xc1",
            b"\x91" * (depth + 1) + b"\x00",
            b"\x91" * 100000,
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff\x01",
            b"\xdb\xff\xff\xff\xff",
            b"\xa1\xff",
            b"\x82\x01\x01\x01\x01",
            b"\x81\x90\x01",
            b"\x81\x80\x01",
        ]
        for payload in hostile:
            self.assertRaises(ValueError, kmes.msgpack.decode, payload)

    def test_every_short_payload_ends(self):
        for first in range(256):
            for second in (0, 1, 0x91, 0xC1, 0xFF):
                try:
                    kmes.msgpack.decode(bytes([first, second, 0, 0, 0]))
                except ValueError:
                    pass


if __name__ == "__main__":
    KMESCTL, LIBRARY, LAYOUTS = (os.path.abspath(path) for path in sys.argv[1:4])
    if os.path.dirname(LIBRARY) not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        # The dynamic linker reads the variable when a program starts.
        os.environ["LD_LIBRARY_PATH"] = os.path.dirname(LIBRARY)
        os.execv(sys.executable, [sys.executable] + sys.argv)
    sys.path.insert(0, str(HERE))
    import kmes

    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
