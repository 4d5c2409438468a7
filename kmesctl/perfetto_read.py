#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perfetto_read.py SCHEMA TRACE: prints a trace, one packet per line.

It reads the text of the schema and the wire format of Protocol Buffers, and shares no code with the
program that wrote the trace. It exits with one line and status 1 if the schema does not have a
field, or has it with another type.
"""
import re
import sys

VARINT, BYTES = 0, 2
SCALARS = {"uint32": 32, "uint64": 64}


def fail(line):
    sys.exit(f"perfetto_read.py: {line}")


def read_schema(text):
    """Messages and enumerations by name: {number: (label, type, name)} and {number: name}."""
    text = re.sub(r"//.*", "", text)
    messages, enums, open_names = {}, {}, []
    tokens = re.compile(
        r"(message|enum)\s+(\w+)\s*\{"
        r"|(optional|repeated)\s+(\w+)\s+(\w+)\s*=\s*(\d+)\s*;"
        r"|(\w+)\s*=\s*(\d+)\s*;|\}")
    for token in tokens.finditer(re.sub(r"syntax[^;]*;|package[^;]*;", "", text)):
        kind, name, label, of, field, number, value, value_number = token.groups()
        if kind:
            open_names.append(name)
            (messages if kind == "message" else enums)[name] = {}
        elif label:
            messages[open_names[-1]][int(number)] = (label, of, field)
        elif value:
            enums[open_names[-1]][int(value_number)] = value
        else:
            open_names.pop()
    return messages, enums


def varint(data, at):
    value = shift = 0
    while True:
        if at == len(data) or shift > 63:
            fail("a number is truncated, or longer than 64 bits")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


class Reader:
    def __init__(self, schema):
        self.messages, self.enums = read_schema(schema)

    def number(self, of, field, value):
        if of in self.enums:
            if value not in self.enums[of]:
                fail(f"{field} is {value}, which is not a value of {of}")
            return self.enums[of][value]
        if of not in SCALARS or value >> SCALARS[of]:
            fail(f"{field} is a number; expected a valid {of}")
        return str(value)

    def piece(self, of, field, value):
        if of == "string":
            try:
                return '"' + value.decode() + '"'
            except UnicodeDecodeError:
                fail(f"{field} is not UTF-8")
        if of not in self.messages:
            fail(f"{field} is bytes; expected {of}")
        return "{" + self.message(of, value) + "}"

    def message(self, name, data):
        parts, seen, at = [], set(), 0
        while at < len(data):
            key, at = varint(data, at)
            number, wire = key >> 3, key & 7
            if number not in self.messages[name]:
                fail(f"{name} has no field {number}")
            label, of, field = self.messages[name][number]
            if label == "optional" and number in seen:
                fail(f"{name} has {field} twice")
            seen.add(number)
            value, at = varint(data, at)
            if wire == VARINT:
                parts.append(f"{field}={self.number(of, field, value)}")
            elif wire == BYTES:
                if value > len(data) - at:
                    fail(f"{field} is truncated")
                parts.append(f"{field}={self.piece(of, field, data[at:at + value])}")
                at += value
            else:
                fail(f"{field} has the wire type {wire}")
        return " ".join(parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    with open(sys.argv[1], encoding="utf-8") as schema, open(sys.argv[2], "rb") as trace:
        text = Reader(schema.read()).message("Trace", trace.read())
    for packet in text.split("packet=")[1:]:
        print(packet.strip())


if __name__ == "__main__":
    main()
