# SPDX-License-Identifier: MIT
"""The parser of csource.py, the mutants of mutate.py, and the errors of equivalent.py."""

import tempfile
import unittest
from pathlib import Path

import csource
import equivalent
import mutate
import run_mutants

CONTEXT = mutate.Context(
    labels={
        "TAIL": ("store_release", "tail_pos"),
        "PUBLISH": ("store_release", "write_pos"),
        "SWAP_PUBLISH": ("store_release", "write_pos"),
        "LOAD": ("load_acquire", "write_pos"),
    },
    numbers=frozenset(("bytes", "pos", "tail", "a", "b", "c")),
)


def mutants(text, operator=None):
    found = mutate.mutants_of("x.c", text, CONTEXT)
    return [mutant for mutant in found if operator in (None, mutant.operator)]


def results(body, operator, head="static void f(void)"):
    """Returns the function's body after each mutant of one operator."""
    text = head + " {" + body + "}"
    return [m.apply(text)[len(head) + 2 : -1] for m in mutants(text, operator)]


class Tokens(unittest.TestCase):
    def test_comments_and_strings_hide_what_is_in_them(self):
        tokens = csource.tokens_of('a /* b == */ "c \\" == d" \'"\' // e <\n+= 0x1Full')
        self.assertEqual(
            [token.text for token in tokens], ["a", '"c \\" == d"', "'\"'", "+=", "0x1Full"]
        )

    def test_the_longest_operator_wins(self):
        texts = [token.text for token in csource.tokens_of("a<<=b>>c->d--e&&f...")]
        self.assertEqual(texts, "a <<= b >> c -> d -- e && f ...".split())

    def test_a_byte_that_is_no_c_is_an_error_with_its_line(self):
        with self.assertRaisesRegex(csource.SourceError, "x.c:2"):
            csource.Source("x.c", "int a;\n@")

    def test_directives_are_no_tokens_but_object_like_macros_are_kept(self):
        source = csource.Source(
            "x.c",
            "#include <a.h>\n#define N 4u /* c */\n#define F(x) (x + 1)\n  # define M \\\n 7\n",
        )
        self.assertEqual(source.tokens, [])
        self.assertEqual(
            [(m.name, [t.text for t in m.tokens]) for m in source.macros],
            [("N", ["4u"]), ("M", ["7"])],
        )

    def test_a_hash_in_a_comment_begins_no_directive(self):
        source = csource.Source("x.c", "/*\n#define N 4\n*/\nint a;\n")
        self.assertEqual((source.macros, len(source.tokens)), ([], 3))


class Statements(unittest.TestCase):
    def kinds(self, body):
        source = csource.Source("x.c", "void f(void) {" + body + "}")
        return [node.kind for node in source.functions[0].body.children]

    def test_each_kind_is_known(self):
        body = """
            int a = 1, *b;
            for (a = 0; a < 3; a++) g(a);
            if (a) { a = 2; } else a = 3;
            while (a--);
            do a++; while (a < 9);
            switch (a) { case 1: return; default: break; }
            other_t* p = 0;
            *b = a;
            return;
        """
        self.assertEqual(
            self.kinds(body),
            "declaration for if while do switch declaration expression return".split(),
        )

    def test_what_is_not_known_is_an_error(self):
        for body in ("a = ;", "if a;", "f(;", "return 1"):
            with self.assertRaises(csource.SourceError, msg=body):
                csource.Source("x.c", "void f(void) {" + body + "}")

    def test_functions_are_found_between_other_declarations(self):
        source = csource.Source(
            "x.c",
            "enum e { A, B };\nstruct s { int a; };\nint g(int);\n"
            "static const int table[2] = {1, 2};\nstatic int f(int a) { return a; }\n",
        )
        self.assertEqual([f.name for f in source.functions], ["f"])
        self.assertEqual([name for name, _ in source.objects], ["table"])


class Operators(unittest.TestCase):
    def test_bounds(self):
        self.assertEqual(results("if (a < b) g();", "to-le"), ["if (a <= b) g();"])
        self.assertEqual(results("if (a < b) g();", "to-ge"), ["if (a >= b) g();"])
        self.assertEqual(results("if (a >= b) g();", "to-eq"), ["if (a == b) g();"])
        self.assertEqual(results("if (a == b) g();", "to-ne"), ["if (a != b) g();"])

    def test_conditions(self):
        self.assertEqual(results("if (a) g();", "if-true"), ["if (1) g();"])
        self.assertEqual(results("while (a) g();", "if-false"), ["while (0) g();"])
        self.assertEqual(results("a = b ? 2 : 3;", "negate"), ["a = !(b) ? 2 : 3;"])
        self.assertEqual(results("for (;;) g();", "if-true"), [])
        self.assertEqual(results("if (!a) g();", "drop-not"), ["if (a) g();"])

    def test_operands(self):
        body = "if (a && b || c) g();"
        self.assertEqual(
            results(body, "keep-left"), ["if ((a && b)) g();", "if ((a) || c) g();"]
        )
        self.assertEqual(results(body, "to-or"), ["if (a || b || c) g();"])

    def test_off_by_one_at_constants_and_ends(self):
        self.assertEqual(results("a = 7u;", "plus-one"), ["a = 8u;"])
        self.assertEqual(results("a = 0;", "minus-one"), ["a = (0 - 1);"])
        self.assertEqual(results("a = LIMIT;", "minus-one"), ["a = (LIMIT - 1);"])
        self.assertEqual(results("g(a + b);", "plus-one"), ["g((a + b) + 1);"])
        self.assertEqual(results("g(p);", "plus-one"), [])  # nothing says that p is a number

    def test_orders(self):
        text = "kmes_store_release_u64(p, 0, KMES_ORDER_PUBLISH);"
        self.assertEqual(results(text, "weaken"), [text.replace("release", "relaxed")])
        self.assertEqual(results(text, "wrong-label"), [text.replace("PUBLISH", "TAIL")])
        text = "kmes_fence_full(KMES_ORDER_WAKE_FENCE);"
        self.assertEqual(results(text, "drop-fence"), [";"])
        self.assertEqual(
            results(text, "weaken"), [text.replace("full", x) for x in ("release", "acquire")]
        )

    def test_updates(self):
        self.assertEqual(results("a += b;", "drop"), [";"])
        self.assertEqual(results("a += b;", "to-set"), ["a = b;"])
        self.assertEqual(results("a++;", "opposite"), ["a--;"])
        self.assertEqual(results("for (;; a++) g();", "drop"), ["for (;; ) g();", "for (;; a++) ;"])
        self.assertEqual(results("(void)a;", "drop"), [])
        self.assertEqual(results("for (;;) continue;", "other-jump"), ["for (;;) break;"])

    def test_returns(self):
        head = "static bool f(void)"
        self.assertEqual(results("return g();", "negate", head), ["return !(g());"])
        self.assertEqual(results("return true;", "flip", head), ["return false;"])
        self.assertEqual(results("return g();", "return-zero", "int f(void)"), ["return 0;"])
        # The last return is not dropped: without it the function would have no value to test.
        self.assertEqual(
            results("if (a) return 1; return 2;", "drop", "int f(void)"), ["if (a) ; return 2;"]
        )

    def test_adjacent_statements_change_places(self):
        self.assertEqual(results("g(); h();", "swap"), ["h(); g();"])
        self.assertEqual(results("g(); { h(); }", "swap"), ["{ h(); } g();"])

    def test_a_text_of_several_parts_is_one(self):
        for text in ('"a" "b"', 'N "b"', '"a" N "b"', '"a" N'):
            self.assertEqual(results(f" return {text}; ", "no-text"), [' return ""; '])

    def test_equal_statements_are_not_swapped(self):
        self.assertEqual(results("p->a = 1; p->b = 2;", "swap"), [])
        self.assertEqual(results("p->a = 1; p->b = q->a;", "swap"), ["p->b = q->a; p->a = 1;"])
        self.assertEqual(results("p->a.b = 1; p->c = q->a;", "swap"), ["p->c = q->a; p->a.b = 1;"])
        self.assertEqual(results("p->a.b = 1; p->a.c++;", "swap"), [])
        self.assertEqual(results("p->a = 1; p->b = a;", "swap"), [])
        self.assertEqual(results("v.a = 1; v.b = 2;", "swap"), [])
        self.assertEqual(len(results("v.a = 1; q->b = p->a;", "swap")), 1)
        self.assertEqual(len(results("v.a = 1; f = v;", "swap")), 1)
        self.assertEqual(len(results("p = q; p->a = 1;", "swap")), 1)
        self.assertEqual(len(results("int* p = q; int a = p->b;", "swap")), 1)
        self.assertEqual(results("p->a = 1; q->a = 2;", "swap"), ["q->a = 2; p->a = 1;"])
        self.assertEqual(results("p[a] = 1; p[b] = 2;", "swap"), ["p[b] = 2; p[a] = 1;"])
        self.assertEqual(results("p->a = 1; kmes_store_u64(p->b, c);", "swap"), [])
        self.assertEqual(results("p->a++; p->b = kmes_load_u64(q->c);", "swap"), [])
        body = "p->a = 1; kmes_store_u64(p->b, p->a);"
        self.assertEqual(len(results(body, "swap")), 1)
        body = "kmes_fence_full(A); kmes_store_u64(p->b, c);"
        self.assertEqual(len(results(body, "swap")), 1)
        self.assertEqual(len(results("p->a = 1; g(p->b);", "swap")), 1)
        self.assertEqual(results("g(); return;", "swap"), [])
        self.assertEqual(results("int a; g();", "swap"), [])

    def test_static_tables_and_their_sizes(self):
        found = mutants("static const int table[2] = {5, 6};\n", "plus-one")
        self.assertEqual([m.new for m in found], ["6", "7"])
        self.assertEqual({m.function for m in found}, {"table"})

    def test_constants_of_macros(self):
        found = mutants("#define LIMIT 64u\n", "plus-one")
        self.assertEqual([(m.id, m.new) for m in found], [("x.c/LIMIT/plus-one/0", "65u")])

    def test_every_mutant_differs_from_its_source(self):
        text = "int f(int a) { if (a < 3 && !b) { a += 2; g(a, LIMIT); } return a ? -1 : a << 1; }"
        found = mutants(text)
        self.assertGreater(len(found), 30)
        self.assertNotIn(text, [mutant.apply(text) for mutant in found])


class Identities(unittest.TestCase):
    TEXT = "int f(int a) {\n    g(a);\n    return a < 2;\n}\nint h(int a) { return a < 3; }\n"

    def test_they_are_unique(self):
        identities = [mutant.id for mutant in mutants(self.TEXT)]
        self.assertEqual(len(identities), len(set(identities)))

    def test_edits_of_other_functions_leave_them_alone(self):
        longer = "/* new */\nint e(int a) { return a < 1 && a != 7; }\n\n" + self.TEXT
        before = {mutant.id for mutant in mutants(self.TEXT)}
        after = {mutant.id for mutant in mutants(longer) if mutant.function != "e"}
        self.assertEqual(before, after)

    def test_a_diff_is_one_line(self):
        text = "int f(int a) {\n    return a <  /* why */\n        2;\n}\n"
        self.assertEqual(
            [mutant.diff(text) for mutant in mutants(text, "to-le")], ["return a [-<-]{+<=+}"]
        )
        for mutant in mutants(self.TEXT):
            self.assertNotIn("\n", mutant.diff(self.TEXT))


class Numbers(unittest.TestCase):
    def test_names_of_numbers_are_those_that_declarations_say(self):
        text = """
            #define N 1 \\
                + 2
            struct s { __u64 pos; __u8* data; const void* from; };
            __u64 size_of(const struct s* s, __u32 bytes, int error);
            static void f(void) { __u64 first, second; unsigned i = 0; }
        """
        names = mutate.number_names(text)
        self.assertEqual(names, {"pos", "size_of", "bytes", "first", "second", "i"})


class List(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "list.txt"
            path.write_text(text)
            return equivalent.read_list(path)

    def test_a_reason_stands_over_its_mutants(self):
        text = "# note\n= one reason\na.c/f/drop/0 11\na.c/f/drop/1 22\n"
        text += "\n= another\nb.c/g/swap/0 33\n"
        self.assertEqual(
            self.read(text),
            {
                "a.c/f/drop/0": equivalent.Listed("one reason", "11"),
                "a.c/f/drop/1": equivalent.Listed("one reason", "22"),
                "b.c/g/swap/0": equivalent.Listed("another", "33"),
            },
        )

    def test_what_is_wrong_is_said_with_its_line(self):
        for text, message in (
            ("a.c/f/drop/0 11\n", ":1: .*under no reason"),
            ("=\n", ":1: .*without a reason"),
            ("= r\na.c f drop\n", ":2: .*is no FILE"),
            ("= r\na.c/f/drop/0\n", ":2: .*is no FILE"),
            ("= r\na.c/f/drop/0 11\na.c/f/drop/0 11\n", ":3: .*twice"),
        ):
            with self.assertRaisesRegex(equivalent.ListError, message):
                self.read(text)

    def test_another_edit_under_the_same_id_is_reported(self):
        diffs = {"a.c/f/drop/0": "[-f();-]{+;+}", "a.c/f/drop/1": "[-g();-]{+;+}"}
        digest = equivalent.digest_of(diffs["a.c/f/drop/0"])
        names = ["a.c/f/drop/0", "a.c/f/drop/1", "a.c/f/drop/2"]
        said = equivalent.outdated({name: equivalent.Listed("r", digest) for name in names}, diffs)
        self.assertEqual(len(said), 2)
        self.assertRegex(said[0], "drop/1 is another edit now, .*g")
        self.assertRegex(said[1], "drop/2 is listed, and is no mutant")

    def test_the_list_of_the_core_is_of_its_mutants(self):
        root = Path(__file__).absolute().parent.parent.parent
        listed = equivalent.read_list(root / "props/mutants/equivalent.txt")
        diffs = {mutant.id: mutant.diff(text) for mutant, text in run_mutants.all_mutants(root)}
        self.assertEqual(equivalent.outdated(listed, diffs), [])


if __name__ == "__main__":
    unittest.main()
