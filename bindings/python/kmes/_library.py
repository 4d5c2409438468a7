# SPDX-License-Identifier: MIT
"""The functions and structures of libkmes.so.0 that the package uses (kmes/user/reader_set.h)."""
import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int, c_uint, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p

NAME = "libkmes.so.0"
READ_EVENT = 1
NO_TIMEOUT = 2**64 - 1


class EventView(ctypes.Structure):
    """struct kmes_event_view of kmes/event.h."""

    _fields_ = [
        ("timestamp", c_uint64),
        ("sequence", c_uint64),
        ("lost_before", c_uint64),
        ("type", c_void_p),
        ("payload", c_void_p),
        ("event_size", c_uint32),
        ("header_size", c_uint32),
        ("payload_len", c_uint32),
        ("type_len", c_uint16),
        ("cpu_id", c_uint16),
        ("origin_class", c_uint8),
    ]


class Place(ctypes.Structure):
    """struct kmes_reader_place of kmes/reader.h."""

    _fields_ = [("session", c_uint64), ("last_sequence", c_uint64), ("is_known", c_bool)]


class Statistics(ctypes.Structure):
    """struct kmes_reader_statistics of kmes/reader.h."""

    _fields_ = [
        (name, c_uint64)
        for name in (
            "delivered",
            "lost",
            "laps",
            "torn",
            "corrupt",
            "not_newer",
            "switches",
            "sleeps",
        )
    ]


class Options(ctypes.Structure):
    """struct kmes_reader_set_options of kmes/user/reader_set.h."""

    _fields_ = [
        ("size", c_uint64),
        ("is_exclusive", c_bool),
        ("is_read_only", c_bool),
        ("watermark_bytes", c_uint64),
        ("watermark_ns", c_uint64),
        ("configure", c_void_p),
        ("cpus", c_void_p),
        ("context", c_void_p),
        ("place", POINTER(Place)),
        ("places", c_uint),
    ]


_SET = c_void_p
_FUNCTIONS = {
    "kmes_reader_set_open": (c_int, [POINTER(_SET), POINTER(Options)]),
    "kmes_reader_set_close": (None, [_SET]),
    "kmes_reader_set_cpus": (c_uint, [_SET]),
    "kmes_reader_set_fd": (c_int, [_SET]),
    "kmes_reader_set_error": (c_int, [_SET, c_uint]),
    "kmes_reader_set_generation": (c_uint64, [_SET, c_uint]),
    "kmes_reader_set_get_place": (Place, [_SET, c_uint]),
    "kmes_reader_set_statistics": (Statistics, [_SET, c_uint]),
    "kmes_reader_set_next": (c_int, [_SET, POINTER(EventView)]),
    "kmes_reader_set_wait": (c_int, [_SET, c_uint64]),
    "kmes_cpus_by_libkmes": (c_int, []),
    "kmes_emit": (c_int, [c_char_p, c_uint16, c_char_p, c_uint32]),
}


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(NAME, use_errno=True)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{error}; the package kmes needs {NAME} of the same release: install libkmes, or "
            "name its folder in LD_LIBRARY_PATH"
        ) from error
    return library


library = _load()
