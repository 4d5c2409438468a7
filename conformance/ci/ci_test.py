#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The GitHub action and the GitLab template, as far as they run without their servers.

The test plays the server: it resolves the inputs, runs each script in a shell with the server's
files in the environment, and checks the results.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("SKIPPED: no module yaml; install python3-yaml")
    sys.exit(0)

TREE = os.getcwd()
FOLDER = "conformance/ci"
RUNNER = os.path.join(TREE, "conformance/kmes-conformance")
CORRECT = os.path.join(TREE, "conformance/testees/reference")
BROKEN = os.path.join(TREE, "conformance/testees/broken_no-recheck")
OPTIONS = "--cpus\n1\n--filter\nE2/event-at-every-step\n"
REPORTS = {"report.txt", "report.json", "report.html", "junit.xml", "statement.txt"}


def read_yaml(name):
    with open(os.path.join(TREE, FOLDER, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


def shell(script, folder, environment):
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment})


class Server:
    """Runs the steps of a composite action with `run`."""

    def __init__(self, inputs):
        self.action = read_yaml("github/action.yml")
        self.inputs = {name: entry.get("default", "")
                       for name, entry in self.action["inputs"].items()}
        self.inputs.update(inputs)
        self.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        self.environment = {"RUNNER_TEMP": self.folder}
        for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            self.environment[name] = os.path.join(self.folder, name)
            open(self.environment[name], "w", encoding="utf-8").close()
        self.log = ""

    def resolve(self, text):
        def value(match):
            words = match.group(1).strip()
            if words == "github.action_path":
                return os.path.join(TREE, FOLDER, "github")
            return self.inputs[words.removeprefix("inputs.")]
        return re.sub(r"\$\{\{([^}]*)\}\}", value, text)

    def lines_of(self, name):
        with open(self.environment[name], encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def run(self):
        for step in self.action["runs"]["steps"]:
            if "run" not in step:
                continue
            given = {name: self.resolve(text) for name, text in step.get("env", {}).items()}
            done = shell(step["run"], self.folder,
                         {**self.environment, **self.lines_of("GITHUB_ENV"), **given})
            self.log += done.stdout.decode("utf-8")
            if done.returncode != 0:
                return done.returncode
        return 0


class GitHub(unittest.TestCase):
    def test_no_input_is_text_of_a_script(self):
        for step in read_yaml("github/action.yml")["runs"]["steps"]:
            self.assertNotIn("${{", step.get("run", ""))

    def run_on(self, program, **inputs):
        server = Server({"program": program, "suite": RUNNER, "options": OPTIONS, **inputs})
        status = server.run()
        self.assertEqual(server.lines_of("GITHUB_OUTPUT"), {"status": str(status)}, server.log)
        return server, status

    def test_a_consumer_that_passes(self):
        server, status = self.run_on(CORRECT)
        self.assertEqual(status, 0, server.log)
        folder = os.path.join(server.folder, "kmes-reports")
        self.assertEqual(set(os.listdir(folder)), REPORTS)
        with open(os.path.join(server.folder, "GITHUB_STEP_SUMMARY"), encoding="utf-8") as file:
            self.assertIn("    1 case: 1 pass, 0 fail", file.read())
        subprocess.run([RUNNER, "verify", "statement.txt", "report.json"], cwd=folder, check=True)

    def test_a_consumer_that_fails(self):
        server, status = self.run_on(BROKEN, reports="elsewhere")
        self.assertEqual(status, 1, server.log)
        with open(os.path.join(server.folder, "elsewhere/report.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["summary"]["fail"], 1)

    def test_arguments_are_words(self):
        hostile = "two words\n$(touch owned)\n`touch owned`\n'\n"
        server, status = self.run_on(CORRECT, arguments=hostile)
        self.assertIn(status, (0, 1), server.log)
        self.assertFalse(os.path.exists(os.path.join(server.folder, "owned")))
        with open(os.path.join(server.folder, "kmes-reports/report.json"),
                  encoding="utf-8") as file:
            self.assertEqual(json.load(file)["testee"][1:], hostile.splitlines())

    def test_a_suite_that_is_not_there(self):
        server, status = self.run_on(CORRECT, suite="/no/such/suite")
        self.assertEqual(status, 3, server.log)
        self.assertIn("there is no program '/no/such/suite'", server.log)


class GitLab(unittest.TestCase):
    def test_the_script_runs(self):
        job = read_yaml("gitlab.yml")[".kmes-conformance"]
        folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
        script = "\n".join(job["script"]).replace(
            "/usr/share/doc/kmes-conformance/ci/", os.path.join(TREE, FOLDER) + "/")
        given = {**job["variables"], "KMES_PROGRAM": BROKEN, "KMES_CONFORMANCE": RUNNER,
                 # A file that was written on Windows.
                 "KMES_OPTIONS": OPTIONS.replace("\n", "\r\n")}
        done = shell(script, folder, given)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(set(os.listdir(os.path.join(folder, "kmes-reports"))), REPORTS)
        for path in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
            self.assertTrue(os.path.exists(
                os.path.join(folder, path.replace("$KMES_REPORTS", given["KMES_REPORTS"]))), path)

    def test_no_program(self):
        job = read_yaml("gitlab.yml")[".kmes-conformance"]
        script = "\n".join(job["script"]).replace(
            "/usr/share/doc/kmes-conformance/ci/", os.path.join(TREE, FOLDER) + "/")
        done = shell(script, os.environ["TEST_TMPDIR"], job["variables"])
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no program to test is named", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
