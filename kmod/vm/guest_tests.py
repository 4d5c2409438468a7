# SPDX-License-Identifier: GPL-2.0-only
"""Reads the table of guest tests, tests.txt (README.md describes its columns)."""

import fnmatch
import re

KERNELS = ("6.1", "6.12", "kasan", "kcsan")
SLOW_KERNELS = ("kasan", "kcsan")
SLOW_FACTOR = 4
COLUMNS = ("name", "kernels", "when", "seconds", "load", "needs", "command")


def slowness(kernel):
    """Returns the factor on time limits, relative to Debian's kernels."""
    return SLOW_FACTOR if kernel in SLOW_KERNELS else 1


class TableError(Exception):
    """An invalid line of the table."""


class GuestTest:
    def __init__(self, fields, where):
        if len(fields) != len(COLUMNS):
            raise TableError(f"{where}: {len(fields)} columns; expected {len(COLUMNS)}")
        self.name, kernels, self.when, seconds, self.load, needs, self.command = fields
        self.kernels = KERNELS if kernels == "all" else tuple(kernels.split())
        self.needs = () if needs == "-" else tuple(needs.split())
        self._check(where, seconds)
        self.seconds = int(seconds)
        self.is_for_each_machine = self.when == "each"

    def _check(self, where, seconds):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise TableError(f"{where}: '{self.name}' is not a valid name of a test")
        wrong = [kernel for kernel in self.kernels if kernel not in KERNELS]
        if wrong or not self.kernels:
            raise TableError(f"{where}: kernels are 'all', or some of {' '.join(KERNELS)}")
        if self.when not in ("default", "each", "named"):
            raise TableError(f"{where}: '{self.when}' is not one of default, each, named")
        if not re.fullmatch(r"[1-9][0-9]{0,4}", seconds):
            raise TableError(f"{where}: '{seconds}' is not a number of seconds")
        if not self.command:
            raise TableError(f"{where}: the command is missing")

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
                raise TableError(f"{path}:{number}: the name {test.name} is used above")
            tests.append(test)
    return tests


def choose(tests, kernel, patterns):
    """Returns the tests for a kernel: the default ones, or those whose names match a pattern. A
    pattern after `!` excludes tests. A pattern that matches no test is an error."""
    available = [test for test in tests if kernel in test.kernels]
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for pattern in included + excluded:
        if not any(fnmatch.fnmatchcase(test.name, pattern) for test in available):
            raise TableError(f"no guest test for the kernel {kernel} matches '{pattern}'")

    def matches_any(test, some):
        return any(fnmatch.fnmatchcase(test.name, pattern) for pattern in some)

    return [test for test in available
            if (matches_any(test, included) if included else test.when != "named")
            and not matches_any(test, excluded)]
