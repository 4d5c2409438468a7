# SPDX-License-Identifier: MIT
"""Tests of the comparison of broken examples with their twins, with a fake runner."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import patch_format
import twins

BASE = "conformance/testees/c/consumer.c"
SOURCE = "int form(void) {\n    return 0;\n}\n\nint main(void) {\n    return 1;\n}\n"
FIELDS = {"Wrong": "Is wrong.", "Clause": "E1", "Case": "E1/a", "Also": []}
# Its last argument is the program, whose name has the form.
RUNNER = """#!/bin/sh
[ "$1" != --help ] || exit 0
for program in "$@"; do :; done
case $program in *-FORM) verdict=fail ;; *) verdict=pass ;; esac
[ "FORM" != both ] || verdict=fail
echo "{\\"cases\\": [{\\"id\\": \\"E1/a\\", \\"verdict\\": \\"$verdict\\", \\"message\\": \\"\\"}]}"
"""


def diff(old, new):
    made = patch_format.make(FIELDS, BASE, SOURCE, SOURCE.replace(old, new))
    return made[made.index("--- ") :]


class Comparison(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        for folder in ("conformance/testees/c", "broken"):
            os.makedirs(folder)
        Path(BASE).write_text(SOURCE)
        Path("twin.diff").write_text("A twin.\n\n" + diff("return 0", "return 9"))
        self.patch("of-both", "return 1", "return 2")
        self.patch("of-one", "return 1", "return 3")
        self.patch("without-twin", "return 0", "return 5")

    def patch(self, name, old, new):
        header = "Wrong: Is wrong.\nClause: E1\nCase: E1/a\n\n"
        Path(f"broken/{name}.patch").write_text(header + diff(old, new))

    def run_twins(self, fails_in, exceptions, *count):
        runner = Path("runner")
        runner.write_text(RUNNER.replace("FORM", fails_in))
        runner.chmod(0o755)
        Path("exceptions.txt").write_text(exceptions)
        arguments = ["twins.py", "./runner", BASE, "twin.diff", "broken", "exceptions.txt", *count]
        out = io.StringIO()
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(out):
            return twins.main(), out.getvalue()

    def test_both_forms_fail(self):
        status, out = self.run_twins("both", "without-twin | no twin | another line\n")
        self.assertEqual(status, 0, out)
        self.assertIn("2 of 3 broken consumers compared, 0 faults", out)

    def test_a_twin_that_passes_is_a_fault(self):
        status, out = self.run_twins("A", "without-twin | no twin | another line\n")
        self.assertEqual(status, 1)
        self.assertIn("FAIL: of-one: in form D, E1/a does not fail it (pass: )", out)

    def test_an_example_that_passes_is_a_fault(self):
        status, out = self.run_twins(
            "D", "without-twin | no twin | one\nof-one | differs | two\nof-both | differs | three\n"
        )
        self.assertEqual(status, 1)
        self.assertIn("FAIL: of-one: in form A, E1/a does not fail it (pass: )", out)

    def test_an_exception_covers_a_twin_that_passes(self):
        status, out = self.run_twins(
            "A", "without-twin | no twin | one\nof-one | differs | two\nof-both | differs | three\n"
        )
        self.assertEqual(status, 0, out)

    def test_an_exception_that_is_not_needed_is_a_fault(self):
        for line, fault in [
            ("of-one | no twin | one", "of-one: 'no twin' is wrong: its patch fits the twin"),
            ("of-one | differs | one", "of-one: 'differs' is wrong: its twin fails too"),
            ("nobody | differs | one", "nobody: no patch has this name"),
        ]:
            status, out = self.run_twins("both", f"without-twin | no twin | two\n{line}\n")
            self.assertEqual(status, 1, out)
            self.assertIn("FAIL: " + fault, out)

    def test_a_patch_without_a_twin_needs_an_exception(self):
        status, out = self.run_twins("both", "of-both | differs | one\n", "1")
        self.assertEqual(status, 1)
        self.assertIn("FAIL: without-twin: its patch does not fit the twin; expected an", out)

    def test_a_malformed_exception_ends_the_run(self):
        with self.assertRaises(SystemExit) as raised:
            self.run_twins("both", "of-both | other | one\n")
        self.assertIn("exceptions.txt:1: 'of-both | other | one'; expected", str(raised.exception))

    def test_a_share_is_that_of_the_day(self):
        entries = [dict(name=str(i), case="E1/a", also=[]) for i in range(50)]
        entries.append(dict(name="search", case="E1/explored-x", also=[]))
        shares = set()
        for day in range(40):
            with mock.patch("time.time", return_value=day * twins.DAY_SECONDS):
                with contextlib.redirect_stdout(io.StringIO()):
                    share = [entry["name"] for entry in twins.share_of_today(entries, 4)]
                    again = [entry["name"] for entry in twins.share_of_today(entries, 4)]
            self.assertEqual(share, again)
            self.assertEqual(len(set(share) - {"search"}), 4)
            shares.update(share)
        self.assertGreater(len(shares), 40)


if __name__ == "__main__":
    unittest.main()
