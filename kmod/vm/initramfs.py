# SPDX-License-Identifier: GPL-2.0-only
"""Writes the initramfs of the virtual machine, a cpio archive ("newc"), without root and without
the program cpio. Adds the shared libraries of each program."""

import os
import stat
import subprocess


class Initramfs:
    """The files of an archive, by their path in the guest."""

    def __init__(self):
        self._entries = {}
        for folder in ("bin", "dev", "proc", "sys", "tmp", "root"):
            self._entries[folder] = (stat.S_IFDIR | 0o755, b"", 0)
        self._entries["dev/console"] = (stat.S_IFCHR | 0o600, b"", os.makedev(5, 1))

    def add_bytes(self, place, content, mode=0o644):
        place = self._place(place)
        self._entries[place] = (stat.S_IFREG | mode, content, 0)

    def add_link(self, place, target):
        self._entries[self._place(place)] = (stat.S_IFLNK | 0o777, target.encode(), 0)

    def add(self, place, path):
        """Adds a file, or a folder with its content. Adds the libraries of programs, too."""
        if os.path.isdir(path):
            for folder, folders, names in os.walk(path):
                folders.sort()
                for name in sorted(names):
                    inside = os.path.relpath(os.path.join(folder, name), path)
                    self.add(os.path.join(place, inside), os.path.join(folder, name))
            return
        with open(path, "rb") as file:
            content = file.read()
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self.add_bytes(place, content, mode)
        if content[:4] == b"\x7fELF" and mode == 0o755:
            for library in libraries_of(path):
                if library.lstrip("/") not in self._entries:
                    self.add_bytes(library, read_file(library), 0o755)

    def write(self, path):
        with open(path, "wb") as out:
            for number, place in enumerate(sorted(self._entries), start=1):
                mode, content, device = self._entries[place]
                write_entry(out, number, place, mode, content, device)
            write_entry(out, 0, "TRAILER!!!", 0, b"", 0)

    def _place(self, place):
        """Returns the path without its first `/`, and adds its parent folders."""
        place = os.path.normpath(place).lstrip("/")
        folder = os.path.dirname(place)
        while folder:
            self._entries.setdefault(folder, (stat.S_IFDIR | 0o755, b"", 0))
            folder = os.path.dirname(folder)
        return place


def write_entry(out, number, name, mode, content, device):
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, os.major(device), os.minor(device),
              len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    for part in (head, content):
        out.write(part)
        out.write(b"\0" * (-len(part) % 4))


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def libraries_of(program):
    """Returns the absolute paths of a program's shared libraries and its loader; none if it is
    static."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    missing = [line.strip() for line in said.stdout.splitlines() if "not found" in line]
    if missing:
        raise OSError(f"{program}: {missing[0]}")
    words = [word for line in said.stdout.splitlines() for word in line.split()]
    return sorted({word for word in words if word.startswith("/") and os.path.exists(word)})
