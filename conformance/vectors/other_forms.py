#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the vectors of forms B and D (docs/layouts.md) from those of form A, in form-b and form-d.

usage: other_forms.py [--check]

It reads NAME.hex and NAME.json, and moves what the form moves. Positions, sizes and records follow.
It knows the numbers of the two forms and nothing of the code that is tested. --check reports a file
that differs, and a vector of a form that has no vector of form A and is not one of its own.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
CAPACITY = 4096  # of every vector
# The GUIDs of an event. An event with an even sequence number has no identity: all zeros.
GUIDS = (("effective_token_guid", 0xE1), ("true_token_guid", 0x72), ("process_guid", 0x90))
GUID_BYTES = 16
SIZE_MAX = 0xFFFFFFFF
# Vectors that only one form has. They are written by hand, like those of form A.
OWN = {"b": (), "d": ("wrap-inside-a-guid",)}

# The texts with a number of form A, and the text of another form.
PAGES = (
    ("does not begin at 4096", "does not begin at 8192"),
    ("4096 + 2 x capacity", "8192 + 2 x capacity"),
    ("a mapping of 4096 bytes", "a mapping of 8192 bytes"),
    ("A consumer that adds 4096", "A consumer that adds 8192"),
    ("Equal to the metadata page size", "Equal to the size of both pages"),
)
HEADERS = (
    ("size is 29", "size is 77"),
    ("a header of 30 bytes", "a header of 78 bytes"),
    ("fewer than 30 bytes", "fewer than 78 bytes"),
    ("at 29 + type_len", "at 77 + type_len"),
    ("An event of 3030 bytes", "An event of 3078 bytes"),
)


class Form:
    def __init__(self, letter, fixed_bytes, texts):
        self.letter = letter
        self.longer = fixed_bytes - 29  # bytes of a header that form A has not
        self.texts = texts
        self.folder = FOLDER / ("form-" + letter)


FORMS = (Form("b", 29, PAGES), Form("d", 77, PAGES + HEADERS))


class Row:
    """One field: its bytes, and the comment that names it."""

    def __init__(self, name, data):
        self.name, self.data = name, data

    def number(self):
        return int.from_bytes(self.data, "little")

    def set_number(self, number):
        field = self.name.split()[0]
        self.name = f"{field} {number}"
        self.data = number.to_bytes(len(self.data), "little")


class Event:
    def __init__(self, pos):
        self.pos, self.rows = pos, []

    def row(self, field):
        return next((row for row in self.rows if row.name.split()[0] == field), None)

    def bytes(self):
        return sum(len(row.data) for row in self.rows)


class Image:
    """The content of NAME.hex: the page by offset, bytes in no event by offset, and the events."""

    def __init__(self, text):
        self.title, self.page, self.remains, self.events = "", [], [], []
        section = None
        for line in text.splitlines():
            row, _, comment = (part.strip() for part in line.partition("#"))
            if row.startswith("size "):
                continue
            if not row:
                if comment.startswith("event "):
                    self.events.append(Event(int(comment.split()[-1])))
                    section = self.events
                elif comment.startswith("metadata page"):
                    section = self.page
                elif comment.startswith("SPDX"):
                    continue
                elif section is None:
                    self.title = comment
                else:
                    section, self.remains_title = self.remains, comment
                continue
            at, _, digits = row.partition(":")
            words = digits.split()
            data = (bytes([int(words[0], 16)]) * int(words[2]) if words[1:2] == ["x"]
                    else bytes(int(word, 16) for word in words))
            name, is_second, _ = comment.partition(" (goes on")
            name = name.partition(" (up to")[0]
            if section is not self.events:
                section.append((int(at), Row(name, data)))
            elif is_second or not name:  # the field of the line before it goes on
                self.events[-1].rows[-1].data += data
            else:
                self.events[-1].rows.append(Row(name, data))

    def field(self, name):
        return next((row for _, row in self.page if row.name.split()[0] == name), None)

    def position(self, name):
        row = self.field(name)
        return row.number() if row else 0


def set_position(image, name, offset, number):
    row = image.field(name)
    if row is None and number == 0:
        return
    if row is None:
        row = Row(name, bytes(8))
        image.page.append((offset, row))
        image.page.sort(key=lambda entry: entry[0])
    row.set_number(number)


def grown(size, longer):
    """A size that names a length grows with the header. 0, 1 and 2^32 - 1 name none."""
    return size if size in (0, 1, SIZE_MAX) else size + longer


def move_page(image):
    """need_wake has a page of its own, and the data begins after it."""
    moved = []
    for at, row in image.page:
        if row.name.startswith("data_offset"):
            row.set_number(4096 if row.number() == 8192 else 8192)
        if row.name.startswith("need_wake"):
            at = 4096
        if row.name == "reserved3":
            at, row = 132, Row("reserved3", row.data[:1] * 60)
            moved.append((4097, Row("the rest of the page of the consumer", row.data[:1] * 4095)))
        moved.append((at, row))
    image.page = sorted(moved, key=lambda entry: entry[0])


def lengthen_events(image, longer):
    """Adds the GUIDs. A ring that was full stays full: there the payloads are shorter."""
    tail, write = image.position("tail_pos"), image.position("write_pos")
    is_full = write - tail == CAPACITY
    if not image.events:
        return
    first, last = image.events[0], image.events[-1]
    is_at_end = write == last.pos + last.bytes()
    begins_at_tail = tail == first.pos
    pos = first.pos
    # The end of the data stays inside the same field of the first event.
    if not is_full and 27 < CAPACITY - pos % CAPACITY <= first.bytes():
        pos -= longer
    for event in image.events:
        is_set = event.row("sequence").number() % 2
        at = event.rows.index(event.row("type_len"))
        event.rows[at:at] = [Row(name, bytes([byte if is_set else 0]) * GUID_BYTES)
                             for name, byte in GUIDS]
        header = event.row("header_size")
        header.set_number(grown(header.number(), longer))
        size = event.row("event_size")
        if is_full:
            event.row("payload").data = event.row("payload").data[longer:]
        else:
            size.set_number(grown(size.number(), longer))
        event.pos = pos
        pos += event.bytes()
    if is_at_end:
        set_position(image, "write_pos", 64, pos)
    if begins_at_tail:
        set_position(image, "tail_pos", 72, first.pos)


def digits(data):
    if len(data) >= 16 and len(set(data)) == 1:
        return f"{data[0]:02X} x {len(data)}"
    return " ".join(f"{byte:02X}" for byte in data)


def hex_text(image):
    lines = ["# SPDX-License-Identifier: MIT", "# " + image.title, "size 12288",
             "# metadata pages (5.1.6)"]
    lines += [f"{at}: {digits(row.data)}  # {row.name}" for at, row in image.page]
    if image.remains:
        lines.append("# " + image.remains_title)
        lines += [f"{at + 4096}: {digits(row.data)}  # {row.name}" for at, row in image.remains]
    for event in image.events:
        lines.append(f"# event {event.row('sequence').number()} at position {event.pos}")
        pos = event.pos
        for row in event.rows:
            to_the_end = CAPACITY - pos % CAPACITY
            parts = [(row.data, "")]
            if len(row.data) > to_the_end:
                parts = [(row.data[:to_the_end], " (up to the end of the data)"),
                         (row.data[to_the_end:], " (goes on at the start of the data)")]
            for data, note in parts:
                if data:
                    lines.append(f"{8192 + pos % CAPACITY}: {digits(data)}  # {row.name}{note}")
                pos += len(data)
    return "\n".join(lines) + "\n"


def digest(payload):
    """docs/testee-contract.md: 64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in payload:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def shortened(record, image):
    """The record of an event, with the payload that it has in this form."""
    words = record.split()
    if words[0] != "E":
        return record
    event = next(e for e in image.events if e.row("sequence").number() == int(words[2]))
    payload = event.row("payload").data if event.row("payload") else b""
    return " ".join(words[:6] + [str(len(payload)), digest(payload)])


def in_words(text, form):
    for old, new in form.texts:
        text = text.replace(old, new)
    return text


def converted(name, form):
    """The two files of a vector in another form."""
    image = Image((FOLDER / (name + ".hex")).read_text(encoding="ascii"))
    image.title = in_words(image.title, form)
    move_page(image)
    if form.longer:
        lengthen_events(image, form.longer)
    vector = json.loads((FOLDER / (name + ".json")).read_text(encoding="ascii"))
    described = {"schema": vector.pop("schema"), "form": form.letter.upper()}
    described.update(vector)
    for field in ("what", "why", "without"):
        described[field] = in_words(described[field], form)
    described["records"] = [shortened(record, image) for record in described["records"]]
    return hex_text(image), json.dumps(described, indent=2) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__.strip().splitlines()[2], file=sys.stderr)
        return 2
    names = sorted(path.stem for path in FOLDER.glob("*.hex"))
    wrong = 0
    for form in FORMS:
        form.folder.mkdir(exist_ok=True)
        for name in names:
            for extension, text in zip((".hex", ".json"), converted(name, form)):
                target = form.folder / (name + extension)
                if not arguments:
                    target.write_text(text, encoding="ascii")
                elif not target.exists() or target.read_text(encoding="ascii") != text:
                    print(f"{target}: is not what {name} says; run other_forms.py", file=sys.stderr)
                    wrong += 1
        there = {path.stem for path in form.folder.glob("*.hex")}
        for name in sorted(there.symmetric_difference(set(names) | set(OWN[form.letter]))):
            print(f"form-{form.letter}/{name}: one of the two forms has no such vector",
                  file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
