# SPDX-License-Identifier: MIT
"""A decoder of msgpack for payloads that nobody vouches for: bounded in depth, time and memory."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Ext:
    """A value of an extension type, timestamps (code -1) included."""

    code: int
    data: bytes


# First byte: the form of a number, for struct.
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
# First byte: what follows, and the form of its length.
_LENGTHS = {
    0xC4: ("bin", ">B"),
    0xC5: ("bin", ">H"),
    0xC6: ("bin", ">I"),
    0xC7: ("ext", ">B"),
    0xC8: ("ext", ">H"),
    0xC9: ("ext", ">I"),
    0xD9: ("str", ">B"),
    0xDA: ("str", ">H"),
    0xDB: ("str", ">I"),
    0xDC: ("array", ">H"),
    0xDD: ("array", ">I"),
    0xDE: ("map", ">H"),
    0xDF: ("map", ">I"),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(payload: bytes) -> Any:
    """The one value that `payload` is.

    Maps are dicts, arrays lists, bin is bytes. Raises ValueError with the offset for anything else:
    a cut value, bytes after it, the unused byte C1, text that is not UTF-8, a map key that is an
    array or a map or comes twice, and more than MAX_DEPTH arrays and maps in each other.
    """
    reader = _Reader(bytes(payload))
    value = reader.value(0)
    if reader.at != len(reader.bytes):
        raise ValueError(f"msgpack: {len(reader.bytes) - reader.at} bytes after the value")
    return value


class _Reader:
    def __init__(self, payload: bytes) -> None:
        self.bytes, self.at = payload, 0

    def take(self, count: int) -> bytes:
        if count > len(self.bytes) - self.at:
            raise ValueError(f"msgpack: cut at offset {self.at}: {count} bytes expected")
        self.at += count
        return self.bytes[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, depth: int) -> Any:
        first = self.take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0xC0:  # fixmap, fixarray, fixstr
            kind = "map" if first < 0x90 else "array" if first < 0xA0 else "str"
            return self.body(kind, first & (0x1F if kind == "str" else 0x0F), depth)
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self.number(_NUMBERS[first])
        if first in _LENGTHS:
            kind, form = _LENGTHS[first]
            return self.body(kind, self.number(form), depth)
        if first == 0xC1:
            raise ValueError(f"msgpack: byte C1 at offset {self.at - 1}")
        return self.body("ext", 1 << (first - 0xD4), depth)  # fixext

    def body(self, kind: str, length: int, depth: int) -> Any:
        if kind == "bin":
            return self.take(length)
        if kind == "ext":
            return Ext(self.number(">b"), self.take(length))
        if kind == "str":
            try:
                return self.take(length).decode()
            except UnicodeDecodeError:
                raise ValueError(f"msgpack: text before offset {self.at} is not UTF-8") from None
        if depth == MAX_DEPTH:
            raise ValueError(f"msgpack: more than {MAX_DEPTH} levels at offset {self.at}")
        # Each element has a byte at least: a length that lies costs nothing.
        if length * (2 if kind == "map" else 1) > len(self.bytes) - self.at:
            raise ValueError(f"msgpack: cut at offset {self.at}: {length} elements expected")
        if kind == "array":
            return [self.value(depth + 1) for _ in range(length)]
        return self.map(length, depth)

    def map(self, length: int, depth: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for _ in range(length):
            start = self.at
            key = self.value(depth + 1)
            if isinstance(key, (dict, list)) or key in result:
                raise ValueError(f"msgpack: key at offset {start} is no scalar, or comes twice")
            result[key] = self.value(depth + 1)
        return result
