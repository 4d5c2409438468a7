#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests figures.py with fake builds."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures  # noqa: E402


def row(variant, ns, value=64, group="producer", table="one event"):
    return {
        "group": group,
        "table": table,
        "variant": variant,
        "column": "payload bytes",
        "value": value,
        "median": ns,
    }


class Figures(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, name, rounds, status=0):
        """Makes a program that writes the rows of the next round to its --json file at each run."""
        with open(self.path(name), "w") as file:
            file.write(
                "#!%s\nimport json, os, sys\n"
                "if %d: sys.exit('no such group')\n"
                "turn = %r\n"
                "number = int(open(turn).read()) if os.path.exists(turn) else 0\n"
                "open(turn, 'w').write(str(number + 1))\n"
                "path = sys.argv[sys.argv.index('--json') + 1]\n"
                "json.dump({'schema': 3, 'rows': %r[number]}, open(path, 'w'))\n"
                % (sys.executable, status, self.path(name + ".turn"), rounds)
            )
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def call(self, *arguments):
        """Returns the exit status, the output and the errors."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = figures.main([str(each) for each in arguments])
        return status, out.getvalue(), err.getvalue()

    def against(self, new, old):
        return self.call(
            "against",
            "--rounds",
            len(new),
            "--new",
            self.build("new", [[row("floor", 10), row("emit", ns)] for ns in new]),
            "--old",
            self.build("old", [[row("floor", 10), row("emit", ns)] for ns in old]),
            "producer",
        )

    def test_a_row_that_is_slower_in_every_round_fails(self):
        status, out, _ = self.against([12, 11, 13], [10, 10, 10])
        self.assertEqual(status, 1)
        self.assertRegex(out, r"producer, one event, emit, 64 +12.0 +10.0  1.20 .* slower")
        self.assertIn("2 rows in 3 rounds: 0 faster, 1 slower, 1 the same", out)

    def test_a_round_that_says_otherwise_is_noise(self):
        status, out, _ = self.against([12, 9, 13], [10, 10, 10])
        self.assertEqual(status, 0)
        self.assertIn("0 slower", out)

    def test_less_than_the_limit_is_the_same(self):
        self.assertEqual(self.against([10.3, 10.2, 10.3], [10, 10, 10])[0], 0)

    def test_faster_is_no_failure(self):
        status, out, _ = self.against([8, 8, 8], [10, 10, 10])
        self.assertEqual(status, 0)
        self.assertIn("1 faster", out)

    def test_rows_of_one_build_only_are_counted(self):
        old = row("emit", 10)
        old["payload_bytes"] = old.pop("value")  # as schema 1 has it
        old["median_ns"] = old.pop("median")
        status, out, _ = self.call(
            "against",
            "--rounds",
            1,
            "--new",
            self.build("new", [[row("emit", 10), row("batch", 5)]]),
            "--old",
            self.build("old", [[old]]),
        )
        self.assertEqual(status, 0)
        self.assertIn("1 row in the new build only", out)
        self.assertIn("1 row in 1 round:", out)

    def test_a_build_that_fails_is_named_in_one_line(self):
        broken = self.build("broken", [], status=1)
        status, _, err = self.call(
            "against", "--new", self.build("new", [[row("emit", 1)]]), "--old", broken
        )
        self.assertEqual(status, 3)
        self.assertEqual(err, "figures.py: %s ended with status 1: no such group\n" % broken)

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content)
        return self.path(name)

    def test_kept_groups_are_replaced_and_others_stay(self):
        folder = self.path("results")
        for rows in ([row("a", 1), row("b", 2, group="reader")], [row("a", 3)]):
            path = self.write("figures.json", json.dumps({"schema": 3, "rows": rows}))
            self.assertEqual(self.call("keep", path, folder)[0], 0)
        (name,) = os.listdir(folder)
        kept = figures.read(os.path.join(folder, name))
        self.assertEqual(
            sorted((each["group"], each["median"]) for each in kept["rows"]),
            [("producer", 3), ("reader", 2)],
        )
        self.assertEqual(kept["machine"]["processors"], os.cpu_count())

    def test_a_file_without_figures_is_refused(self):
        for content, words in (
            ("{", "not JSON"),
            ("[]", "no figures"),
            ('{"schema": 1, "rows": []}', "schema 1; expected 3"),
        ):
            path = self.write("bad.json", content)
            status, _, err = self.call("keep", path, self.path("results"))
            self.assertEqual(status, 3)
            self.assertIn(words, err)
            self.assertEqual(err.count("\n"), 1)
        self.assertFalse(os.path.exists(self.path("results")))

    def test_a_plot_has_a_line_for_each_variant(self):
        rows = [
            row(variant, ns, value)
            for variant, ns in (("floor", 30), ("emit & publish", 40))
            for value in (16, 64, 4096)
        ]
        path = self.write("kept.json", json.dumps({"schema": 3, "rows": rows}))
        self.assertEqual(self.call("plot", path, self.path("plot.svg"))[0], 0)
        drawn = xml.dom.minidom.parse(self.path("plot.svg"))
        lines = drawn.getElementsByTagName("polyline")
        self.assertEqual(len(lines), 2)
        self.assertEqual(len(lines[0].getAttribute("points").split()), 3)
        words = [node.firstChild.data for node in drawn.getElementsByTagName("text")]
        self.assertIn("emit & publish", words)
        self.assertIn("4096", words)

    def test_an_empty_plot_is_reported(self):
        path = self.write("kept.json", json.dumps({"schema": 3, "rows": []}))
        status, _, err = self.call("plot", path, self.path("plot.svg"))
        self.assertEqual(status, 3)
        self.assertIn("no figures of the groups producer, reader, peers", err)


if __name__ == "__main__":
    unittest.main()
