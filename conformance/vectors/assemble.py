#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Assembles NAME.hex into NAME.bin. It only places bytes: it knows no field and computes nothing.

usage: assemble.py [--check] [FOLDER]

A line of NAME.hex has one of these forms:
size BYTES                 of the image, once, first
OFFSET: BYTE BYTE ...      two hex digits each, placed from the decimal OFFSET on
OFFSET: BYTE x COUNT       the same byte, COUNT times
`#` begins a comment. Bytes in no line are zero; a byte in two lines is an error. Without FOLDER,
the script assembles the vectors of every form.
"""
import pathlib
import sys


class BadLine(Exception):
    pass


def row_bytes(text):
    words = text.split()
    if len(words) == 3 and words[1] == "x":
        return bytes([int(words[0], 16)]) * int(words[2])
    if not words or any(len(word) != 2 for word in words):
        raise BadLine("bytes are two hex digits each, or one of them, `x` and a count")
    return bytes(int(word, 16) for word in words)


def place(image, placed, offset, row):
    if offset + len(row) > len(image):
        raise BadLine("reaches beyond the size of the image")
    for at in range(offset, offset + len(row)):
        if at in placed:
            raise BadLine(f"byte {at} is named twice")
        placed.add(at)
    image[offset : offset + len(row)] = row


def assemble(path):
    image, placed = None, set()
    for number, line in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
        text = line.split("#")[0].strip()
        try:
            if not text:
                continue
            if text.startswith("size "):
                image = bytearray(int(text[5:]))
            elif image is None:
                raise BadLine("`size BYTES` comes first")
            else:
                offset, _, row = text.partition(":")
                place(image, placed, int(offset), row_bytes(row))
        except (BadLine, ValueError) as error:
            raise SystemExit(f"{path}:{number}: {error}: {text}")
    if image is None:
        raise SystemExit(f"{path}:1: no `size BYTES`")
    return bytes(image)


def main(arguments):
    check = "--check" in arguments
    folders = [a for a in arguments if a != "--check"]
    if len(folders) > 1 or any(a.startswith("-") for a in folders):
        print(__doc__.strip().splitlines()[2], file=sys.stderr)
        return 2
    here = pathlib.Path(__file__).parent
    chosen = [pathlib.Path(f) for f in folders] or [here, *sorted(here.glob("form-*"))]
    sources = sorted(source for folder in chosen for source in folder.glob("*.hex"))
    if not sources:
        print(f"{chosen[0]}: holds no .hex file", file=sys.stderr)
        return 2
    wrong = 0
    for source in sources:
        image, target = assemble(source), source.with_suffix(".bin")
        if not check:
            target.write_bytes(image)
        elif not target.exists() or target.read_bytes() != image:
            print(f"{target}: is not what {source.name} says; run assemble.py", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
