# SPDX-License-Identifier: MIT
"""Tests of the form of a patch, and of the commands on a small tree."""

import contextlib
import io
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import patch_format
import patches

BASE = "conformance/testees/c/consumer.c"
TEXT = """int first(void) {
    return 1;
}

int second(void) {
    int x = 2;
    return x;
}

int third(void) {
    return 1;
}
"""
HEADER = """Wrong: Returns another number.
Clause: 5.1.1
Case: 5.1.1/four-cpus
"""
FIELDS = {
    "Wrong": "Returns another number.",
    "Clause": "5.1.1",
    "Case": "5.1.1/four-cpus",
    "Also": ["E1/a", "E2/b"],
}
HUNK = """@@ -5,4 +5,4 @@
 int second(void) {
-    int x = 2;
+    int x = 3;
     return x;
 }
"""


def paths(base=BASE):
    return f"\n--- a/{base}\n+++ b/{base}\n"


class Form(unittest.TestCase):
    def test_a_patch_makes_the_edited_text_again(self):
        edits = [
            ("    return 1;\n}\n\nint second", "    return 7;\n}\n\nint second"),
            ("third(void) {\n    return 1;\n}\n", "third(void) {\n    return 1;\n}\n\n// end\n"),
            ("int first(void) {\n", ""),
            (TEXT, "nothing\n"),
            ("    return x;\n", "    x++;\n\n    return x;\n"),
        ]
        for old, new in edits:
            changed = TEXT.replace(old, new)
            text = patch_format.make(FIELDS, BASE, TEXT, changed)
            patch = patch_format.parse(text)
            self.assertEqual(patch_format.apply(patch, TEXT), changed)
            self.assertEqual(patch.fields, FIELDS)
            self.assertEqual(patch.base, BASE)

    def test_old_lines_get_so_much_context_that_they_occur_once(self):
        text = "".join(f"begin\nsame\nsame\nsame\nsame\nend {i}\n" for i in range(3))
        changed = text.replace("same\nend 1", "other\nend 1")
        patch = patch_format.parse(patch_format.make(FIELDS, BASE, text, changed))
        self.assertEqual(patch_format.apply(patch, text), changed)
        self.assertEqual(patch_format.apply(patch, "more\n" + text), "more\n" + changed)

    def test_a_long_field_goes_on_in_the_next_line(self):
        fields = dict(FIELDS, Wrong="Long " * 40 + "sentence.")
        text = patch_format.make(fields, BASE, TEXT, TEXT.replace("2", "3"))
        self.assertLessEqual(max(map(len, text.split("\n"))), patch_format.WIDTH)
        self.assertEqual(patch_format.parse(text).fields, fields)

    def test_what_is_no_patch_is_refused_with_its_line(self):
        for text, line, words in [
            (HEADER + paths() + HUNK[:-1], 12, "no newline at the end"),
            ("What: no\n" + HEADER + paths() + HUNK, 1, "is no field"),
            (HEADER + "Case: E1/a\n" + paths() + HUNK, 4, "a second 'Case:'"),
            (HEADER[HEADER.index("Clause") :] + paths() + HUNK, 1, "no 'Wrong:'"),
            (HEADER.replace("number.", "number") + paths() + HUNK, 1, "full stop"),
            (HEADER.replace("Clause: 5.1.1", "Clause: x") + paths() + HUNK, 1, "'x' is no clause"),
            (HEADER.replace("Case: 5.1.1/four-cpus", "Case: x") + paths() + HUNK, 1, "is no case"),
            (HEADER + "Also: x\n" + paths() + HUNK, 1, "'x' is no case"),
            (HEADER + "\n" + HUNK, 5, "no source"),
            (HEADER + "\n--- a/x.c\n+++ b/y.c\n" + HUNK, 5, "no source"),
            (HEADER, 5, "no source"),
            (HEADER + paths(), 6, "the diff changes nothing"),
            (HEADER + paths() + HUNK + "*\n", 13, "'*' is no line of a diff"),
            (HEADER + paths() + HUNK.replace("-5,4", "-5,3"), 7, "write '@@ -5,4 +5,4 @@'"),
            (HEADER + paths() + HUNK.replace("-5,4", ""), 7, "names no lines"),
            (HEADER + paths() + "@@ -1 +1 @@\n-x\n+x\n", 7, "the hunk changes nothing"),
        ]:
            with self.assertRaises(patch_format.PatchError, msg=text) as caught:
                patch_format.parse(text)
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.line, line, text)

    def test_a_reason_may_stand_in_the_place_of_a_case(self):
        header = HEADER.replace("5.1.1/four-cpus", "- a race of some nanoseconds")
        patch = patch_format.parse(header + paths() + HUNK)
        self.assertEqual(patch.fields["Case"], "- a race of some nanoseconds")

    def test_a_hunk_applies_only_where_its_old_lines_occur_once(self):
        patch = patch_format.parse(HEADER + paths() + HUNK)
        self.assertEqual(patch_format.apply(patch, TEXT), TEXT.replace("x = 2", "x = 3"))
        moved = "// one line more\n" + TEXT
        self.assertEqual(patch_format.apply(patch, moved), moved.replace("x = 2", "x = 3"))
        for text, words in [
            (TEXT.replace("    return x;", "\treturn x;"), "hunk 1 (@@ -5,4 +5,4 @@) does not fit"),
            (TEXT.replace("x = 2", "x = 4"), "its old lines are not in it"),
            (TEXT + TEXT, "its old lines occur 2 times"),
        ]:
            with self.assertRaisesRegex(patch_format.PatchError, "") as caught:
                patch_format.apply(patch, text)
            self.assertIn(words, str(caught.exception))

    def test_hunks_come_in_the_order_of_the_source(self):
        hunk = "@@ -10,1 +10,1 @@\n-int third(void) {\n+int fourth(void) {\n"
        patch = patch_format.parse(HEADER + paths() + hunk + HUNK)
        with self.assertRaisesRegex(patch_format.PatchError, "come before the end of the hunk"):
            patch_format.apply(patch, TEXT)


class Commands(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.folder = self.root / patches.FOLDER / "c"
        self.folder.mkdir(parents=True)
        self.base = self.root / BASE
        self.base.parent.mkdir()
        self.base.write_text(TEXT)
        (self.folder / "another-number.patch").write_text(HEADER + paths() + HUNK)
        self.copy = self.root / "copy.c"

    def run_command(self, *words):
        """(status, standard output, standard error)"""
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = patches.main(["--root", str(self.root), *map(str, words)])
        return status, out.getvalue(), error.getvalue()

    def git(self, *words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", self.root, *who, *words], check=True, capture_output=True)

    def test_a_consumer_is_listed_and_shown(self):
        self.assertEqual(
            self.run_command("list"), (0, "another-number\t5.1.1\t5.1.1/four-cpus\n", "")
        )
        self.assertEqual(
            self.run_command("show", "another-number"), (0, TEXT.replace("x = 2", "x = 3"), "")
        )
        status, _, error = self.run_command("show", "nobody")
        self.assertEqual(status, 2)
        self.assertIn("no broken consumer 'nobody'", error)

    def test_an_edited_copy_becomes_a_patch(self):
        self.copy.write_text(TEXT.replace("return x;", "return -x;"))
        header = ["--wrong", "Is negative.", "--clause", "E7", "--case", "E7/a"]
        path = f"{patches.FOLDER}/c/negative.patch"
        self.assertEqual(
            self.run_command("make", "negative", self.copy, *header), (0, path + "\n", "")
        )
        self.assertEqual(self.run_command("show", "negative"), (0, self.copy.read_text(), ""))
        # Made again, it keeps its header.
        self.copy.write_text(TEXT.replace("return x;", "return x - 1;"))
        self.assertEqual(self.run_command("make", "negative", self.copy)[0], 0)
        self.assertIn("\nnegative\tE7\tE7/a\n", self.run_command("list")[1])
        self.assertEqual(self.run_command("show", "negative"), (0, self.copy.read_text(), ""))

    def test_what_cannot_become_a_patch_is_refused_and_nothing_is_written(self):
        self.copy.write_text(TEXT.replace("return x;", "return -x;"))
        header = ["--wrong", "Is negative.", "--clause", "E7", "--case", "E7/a"]
        before = sorted(self.folder.iterdir())
        for words, expected in [
            (["new", self.copy], "new is new; give --wrong, --clause, --case"),
            (["new", self.copy, *header, "--folder", "x"], "no folder of patches"),
            (["New", self.copy, *header], "'New' is no name"),
            (["new", self.base, *header], "the same text as"),
            (["new", self.root / "none", *header], "cannot be read"),
            (["new", self.copy, "--wrong", "No stop", *header[2:]], "full stop"),
        ]:
            status, _, error = self.run_command("make", *words)
            self.assertEqual(status, 2, words)
            self.assertIn(expected, error)
            self.assertEqual(error.count("\n"), 1, error)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_patch_follows_a_change_of_its_source(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.base.write_text(TEXT.replace("}\n\nint third", "}  // second\n\nint third"))
        self.assertEqual(self.run_command("show", "another-number")[0], 1)
        self.assertEqual(
            self.run_command("refresh"), (0, "1 patches, 1 changed, 0 to be edited\n", "")
        )
        changed = self.base.read_text().replace("x = 2", "x = 3")
        self.assertEqual(self.run_command("show", "another-number"), (0, changed, ""))
        self.assertEqual(
            self.run_command("refresh"), (0, "1 patches, 0 changed, 0 to be edited\n", "")
        )

    def test_a_conflict_is_for_a_person(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.base.write_text(TEXT.replace("x = 2", "x = 8"))
        status, _, error = self.run_command("refresh")
        conflict = self.folder / "another-number.conflict"
        self.assertEqual(status, 1)
        self.assertIn(f"another-number.patch: in conflict with the change of {BASE}; edit", error)
        self.assertIn("<<<<<<< mistake", conflict.read_text())
        edited = TEXT.replace("x = 2", "x = 9")
        conflict.write_text(edited)
        self.assertEqual(self.run_command("refresh")[0], 1)
        self.assertEqual(conflict.read_text(), edited)
        self.assertEqual(self.run_command("make", "another-number", conflict)[0], 0)
        self.assertFalse(conflict.exists())
        self.assertIn("x = 9", self.run_command("show", "another-number")[1])

    def test_a_source_that_made_the_mistake_itself_is_reported(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.base.write_text(TEXT.replace("x = 2", "x = 3"))
        status, _, error = self.run_command("refresh")
        self.assertEqual(status, 1)
        self.assertIn("has this mistake itself now", error)

    def test_a_name_is_no_path(self):
        kept = (self.folder / "another-number.patch").read_text()
        for words in [
            ["../c/another-number"],
            ["../../escaped"],
            ["c/foo"],
            ["foo", "--folder", "../c"],
        ]:
            given = ["--wrong", "One is three.", "--clause", "5.1.1", "--case", "5.1.1/four-cpus"]
            status, _, error = self.run_command("make", words[0], self.base, *words[1:], *given)
            self.assertEqual(status, 2, words)
            self.assertIn("is no name; small letters, digits, single hyphens", error)
            self.assertEqual(error.count("\n"), 1)
        self.assertEqual((self.folder / "another-number.patch").read_text(), kept)

    def test_the_build_gets_sources_and_a_table(self):
        os.chdir(self.root)
        patch = f"{patches.FOLDER}/c/another-number.patch"
        self.assertEqual(self.run_command("apply", patch, BASE, "out.c")[0], 0)
        self.assertEqual(Path("out.c").read_text(), TEXT.replace("x = 2", "x = 3"))
        self.assertEqual(self.run_command("check", patch), (0, "1 of 1 patches apply\n", ""))
        self.assertEqual(self.run_command("table", "out.json", patch)[0], 0)
        self.assertIn('"name": "another-number"', Path("out.json").read_text())
        status, _, error = self.run_command("apply", patch, "copy.c", "out.c")
        self.assertEqual(status, 1)
        self.assertIn("patches of this folder change copy.c", error)
        self.base.write_text(TEXT.replace("x = 2", "x = 8"))
        status, out, error = self.run_command("check", patch, patch)
        self.assertEqual((status, out, error.count("\n")), (1, "0 of 2 patches apply\n", 2))
        status, _, error = self.run_command("apply", patch, BASE, "out.c")
        self.assertEqual(status, 1)
        self.assertIn(f"{patch}:7: hunk 1 (@@ -5,4 +5,4 @@) does not fit {BASE}", error)


if __name__ == "__main__":
    unittest.main()
