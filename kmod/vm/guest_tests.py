# SPDX-License-Identifier: GPL-2.0-only
"""The table of guest tests (tests.txt; README.md says its columns). Knows no machine."""

import fnmatch
import re

KERNELS = ("6.1", "6.12", "kasan", "kcsan")
SLOW_KERNELS = ("kasan", "kcsan")
SLOW_FACTOR = 4
COLUMNS = ("name", "kernels", "when", "seconds", "load", "needs", "command")


def slowness(kernel):
    """How much longer everything may take than on Debian's kernels."""
    return SLOW_FACTOR if kernel in SLOW_KERNELS else 1


class TableError(Exception):
    """An invalid line of the table."""


class GuestTest:
    def __init__(self, fields, where):
        if len(fields) != len(COLUMNS):
            raise TableError(f"{where}: {len(fields)} columns; it has {len(COLUMNS)}")
        self.name, kernels, self.when, seconds, self.load, needs, self.command = fields
        self.kernels = KERNELS if kernels == "all" else tuple(kernels.split())
        self.needs = () if needs == "-" else tuple(needs.split())
        self._check(where, seconds)
        self.seconds = int(seconds)
        self.is_for_each_machine = self.when == "each"

    def _check(self, where, seconds):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise TableError(f"{where}: '{self.name}' is no name of a test")
        wrong = [kernel for kernel in self.kernels if kernel not in KERNELS]
        if wrong or not self.kernels:
            raise TableError(f"{where}: kernels are 'all', or some of {' '.join(KERNELS)}")
        if self.when not in ("lot", "each", "named"):
            raise TableError(f"{where}: a test is run with the 'lot', in 'each' machine of it, or "
                             "when 'named'")
        if not re.fullmatch(r"[1-9][0-9]{0,4}", seconds):
            raise TableError(f"{where}: '{seconds}' is no number of seconds")
        if not self.command:
            raise TableError(f"{where}: no command")

    def limit(self, kernel, scale):
        return self.seconds * scale * slowness(kernel)


def read_table(path):
    tests = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.rstrip("\n").split("|", len(COLUMNS) - 1)]
            test = GuestTest(fields, f"{path}:{number}")
            if any(test.name == other.name for other in tests):
                raise TableError(f"{path}:{number}: there is a test {test.name} above")
            tests.append(test)
    return tests


def choose(tests, kernel, patterns):
    """The tests for a kernel: all, or those whose names match. Patterns after a `!` exclude
    tests. A pattern that matches no test is an error."""
    mine = [test for test in tests if kernel in test.kernels]
    taken = [pattern for pattern in patterns if not pattern.startswith("!")]
    left_out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for pattern in taken + left_out:
        if not any(fnmatch.fnmatchcase(test.name, pattern) for test in mine):
            raise TableError(f"no guest test for the kernel {kernel} matches '{pattern}'")

    def is_any_of(test, some):
        return any(fnmatch.fnmatchcase(test.name, pattern) for pattern in some)

    return [test for test in mine
            if (is_any_of(test, taken) if taken else test.when != "named")
            and not is_any_of(test, left_out)]
