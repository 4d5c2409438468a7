# SPDX-License-Identifier: MIT
"""Mutation operators for the core's C. Each mutant is one edit of one file, whose text csource.py
parses.

A mutant's ID is FILE/FUNCTION/OPERATOR/ORDINAL. The ordinal counts the places in that function
where this operator applies, so edits elsewhere do not change it. A constant that is a macro has
the macro's name as its function.

Prints the mutants of the given files, one per line."""

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from csource import Source, SourceError, Token, tokens_of

# The effect of each operator, for `--operators` and docs/mutants.md.
OPERATORS = {
    "drop-fence": "a fence is taken out",
    "weaken": "a release store or acquire load becomes relaxed; a full fence one of the others",
    "wrong-fence": "a release fence becomes an acquire fence, or the other way round",
    "wrong-label": "an access carries the label of another place with the same kind of access",
    "if-true": "a condition is always true",
    "if-false": "a condition is always false",
    "negate": "a condition, or what a bool function returns, is turned round",
    "drop-not": "a `!` is taken out",
    "to-lt": "a comparison becomes <",
    "to-le": "a comparison becomes <=",
    "to-gt": "a comparison becomes >",
    "to-ge": "a comparison becomes >=",
    "to-eq": "a comparison becomes ==",
    "to-ne": "a comparison becomes !=",
    "to-and": "|| becomes &&",
    "to-or": "&& becomes ||",
    "keep-left": "of two operands of && || + - & the left one is all that is left",
    "keep-right": "the right one is",
    "opposite": "+ and -, * and /, << and >>, & and |, ++ and --, += and -= change places",
    "to-set": "an update (+=, -=) becomes an assignment",
    "plus-one": "a constant, or the end of an arithmetic expression, is one more",
    "minus-one": "... one less",
    "flip": "true and false change places",
    "return-zero": "a function returns 0",
    "start-zero": "a variable starts with 0",
    "swap": "two adjacent statements change places",
    "drop": "an update, a call, or a jump is taken out",
    "drop-else": "an else branch is taken out",
    "other-jump": "break and continue change places",
    "no-text": "a string is empty",
}

RELATIONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
RELATION_TEXT = {name: text for text, name in RELATIONS.items()}
OTHER_RELATIONS = {
    "<": ("le", "gt", "ge", "ne"),
    "<=": ("lt", "gt", "ge", "eq"),
    ">": ("lt", "le", "ge", "ne"),
    ">=": ("lt", "le", "gt", "eq"),
    "==": ("ne",),
    "!=": ("eq",),
}
OPPOSITES = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "++": "--",
    "--": "++",
    "+=": "-=",
    "-=": "+=",
    "*=": "/=",
    "<<=": ">>=",
    ">>=": "<<=",
    "&=": "|=",
    "|=": "&=",
}
ARITHMETIC = frozenset("+ - * / % & | ^ << >>".split())
WHOLE_NUMBERS = frozenset("__u8 __u16 __u32 __u64 unsigned size_t".split())
CONSTANT = re.compile(r"^(?!NULL$|KMES_ORDER_)[A-Z][A-Z0-9_]*[A-Z0-9]$")
# Accesses whose only private effect is their result.
SEAM = re.compile(r"^kmes_(load|store|fence|data_is|copy_in)(_|$)")
LABEL = re.compile(r"\bX\((\w+),\s*(\w+),\s*(\w+)\)")


@dataclass(frozen=True)
class Mutant:
    file: str
    function: str
    operator: str
    ordinal: int
    start: int  # the replaced text
    end: int
    new: str
    line: int

    @property
    def id(self):
        return f"{self.file}/{self.function}/{self.operator}/{self.ordinal}"

    def apply(self, text):
        return text[: self.start] + self.new + text[self.end :]

    def diff(self, text):
        """Returns the statement on one line, with [- -] around removed text and {+ +} around added
        text."""
        begin = text.rfind("\n", 0, self.start) + 1
        end = text.find("\n", self.end)
        end = len(text) if end < 0 else end
        old = _one_line(text[self.start : self.end])
        new = _one_line(self.new)
        shown = _one_line(text[begin : self.start], strip=False)
        shown += (f"[-{old}-]" if old else "") + (f"{{+{new}+}}" if new else "")
        return (shown + _one_line(text[self.end : end], strip=False)).strip()


def _one_line(text, strip=True):
    text = re.sub(r"/\*.*?\*/|//[^\n]*|/\*.*$|^[^*/]*\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return text.strip() if strip else text


@dataclass(frozen=True)
class Context:
    """Information from other files: the labels of order.h, and which names are numbers."""

    labels: dict  # label -> (access, field)
    numbers: frozenset

    @staticmethod
    def read(order_header, texts):
        labels = {name: (access, kind) for name, access, kind in LABEL.findall(order_header)}
        numbers = set()
        for text in texts:
            numbers |= number_names(text)
        return Context(labels, frozenset(numbers))


def number_names(text):
    """Returns names declared as unsigned numbers: variables, members, parameters, functions."""
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.MULTILINE)
    tokens = tokens_of(text)
    names = set()
    for at, token in enumerate(tokens[:-1]):
        if token.text not in WHOLE_NUMBERS:
            continue
        at += 1
        while at < len(tokens) and tokens[at].kind == "name":
            names.add(tokens[at].text)
            if at + 2 >= len(tokens) or tokens[at + 1].text != ",":
                break
            # In `__u64 a, b` the list continues; in `__u64 a, __u64 b` the second name has its own
            # type.
            if tokens[at + 3].text not in (",", ";", "="):
                break
            at += 2
    return names


class Operators:
    """Walks one file and collects its mutants."""

    def __init__(self, source, context):
        self.source = source
        self.context = context
        self.function = "-"
        self.returns = ""
        self.last = None  # the last statement of the function
        self.counts = Counter()
        self.mutants = []

    def run(self):
        for macro in self.source.macros:
            self.function = macro.name
            for token in macro.tokens:
                self.constant(token)
        for name, value in self.source.objects:
            self.function = name
            self.expression(value, is_whole=True)
        for function in self.source.functions:
            self.function = function.name
            self.returns = function.returns
            self.last = function.body.children[-1] if function.body.children else None
            self.statement(function.body)
        return self.mutants

    # -- edits -----------------------------------------------------------------------------------

    def add(self, operator, start, end, new):
        if operator not in OPERATORS:
            raise KeyError(operator)
        key = (self.function, operator)
        line = self.source.line(start)
        self.mutants.append(
            Mutant(
                self.source.name, self.function, operator, self.counts[key], start, end, new, line
            )
        )
        self.counts[key] += 1

    def replace(self, operator, node, new):
        tokens = self.source.tokens
        self.add(operator, tokens[node.first].start, tokens[node.last].end, new)

    def replace_token(self, operator, at, new):
        token = self.source.tokens[at]
        self.add(operator, token.start, token.end, new)

    def text(self, node):
        return self.source.text_of(node)

    def token(self, at):
        return self.source.tokens[at].text

    # -- statements ------------------------------------------------------------------------------

    def statement(self, node):
        kind, parts = node.kind, node.parts
        if kind == "block":
            self.block(node)
            return
        if kind == "expression":
            self.expression_statement(node)
            return
        if kind == "declaration":
            self.declaration(node)
            return
        if kind == "return":
            self.returned(node)
            return
        if kind == "jump":
            self.jump(node)
            return
        if "else" in parts:
            # `else` is the token before the branch.
            start = self.source.tokens[parts["else"].first - 1].start
            self.add("drop-else", start, self.source.tokens[node.last].end, "")
        if "init" in parts:
            if parts["init"].kind == "declaration":
                self.statement(parts["init"])
            else:
                self.expression(parts["init"], is_whole=True)
        if "condition" in parts:
            self.condition(parts["condition"])
        if kind == "switch":
            self.expression(parts["value"], is_whole=True)
        if "step" in parts:
            self.replace("drop", parts["step"], "")
            self.expression(parts["step"], is_whole=True)
        for branch in ("then", "else", "body"):
            if branch in parts:
                self.statement(parts[branch])

    def block(self, node):
        for at, child in enumerate(node.children):
            self.statement(child)
            if at:
                self.swap(node.children[at - 1], child)

    def swap(self, first, second):
        """Leaves the last statement of a block: moved before the previous one, it would only drop
        that. Labels belong to their statement. Two independent statements on private variables
        cannot be distinguished."""
        if second.kind in ("jump", "label", "empty") or first.kind in ("label", "empty"):
            return
        if second.kind == "return" and not _has_effect(self.source, second):
            return
        if first.kind in ("jump", "return"):
            return
        if _is_bare(first) or _is_bare(second) or _is_void_cast(first) or _is_void_cast(second):
            return
        if _are_independent(self.source, first, second):
            return
        tokens = self.source.tokens
        between = self.source.text[tokens[first.last].end : tokens[second.first].start]
        self.add(
            "swap",
            tokens[first.first].start,
            tokens[second.last].end,
            self.text(second) + between + self.text(first),
        )

    def expression_statement(self, node):
        value = node.parts["value"]
        if _is_void_cast(node):
            return
        name = self.token(value.first) if value.kind == "call" else ""
        self.replace("drop-fence" if name.startswith("kmes_fence_") else "drop", node, ";")
        self.expression(value, is_whole=True)

    def declaration(self, node):
        for name, (value, is_pointer) in node.parts["declared"].items():
            if value is None or value.kind in ("list", "number") or is_pointer:
                continue
            if name in self.context.numbers or value.kind != "name":
                self.replace("start-zero", value, "0")
        for child in node.children:
            self.expression(child, is_whole=True)

    def returned(self, node):
        value = node.parts.get("value")
        if node is not self.last:  # otherwise the function would return an arbitrary value
            self.replace("drop", node, ";")
        if value is None:
            return
        is_bool = self.returns.split()[-1:] == ["bool"]
        is_literal = value.kind == "number" or self.text(value) in ("true", "false")
        if is_bool and not is_literal:
            self.replace("negate", value, f"!({self.text(value)})")
        elif not is_bool and not is_literal and value.kind != "string":
            self.replace("return-zero", value, "0")
        self.expression(value, is_whole=True)

    def jump(self, node):
        self.replace("drop", node, ";")
        other = {"break": "continue", "continue": "break"}.get(self.token(node.first))
        if other:
            self.replace("other-jump", node, other + ";")

    def condition(self, node):
        self.replace("if-true", node, "1")
        self.replace("if-false", node, "0")
        self.replace("negate", node, f"!({self.text(node)})")
        self.expression(node, is_whole=False)

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, node, is_whole):
        """`is_whole`: a value that is passed on, the end of an arithmetic expression."""
        if is_whole and self.is_number(node) and not self.is_constant(node):
            self.replace("plus-one", node, f"({self.text(node)}) + 1")
            self.replace("minus-one", node, f"({self.text(node)}) - 1")
        visit = getattr(self, "visit_" + node.kind, None)
        if visit:
            visit(node)
        else:
            for child in node.children:
                self.expression(child, is_whole=False)

    def is_constant(self, node):
        return node.kind == "number" or (
            node.kind == "name" and bool(CONSTANT.match(self.token(node.first)))
        )

    def is_number(self, node):
        """Whether it is an arithmetic value, as far as names tell: not a pointer or a truth value.
        """
        kind = node.kind
        if kind == "name":
            return self.token(node.first) in self.context.numbers
        if kind == "member":
            return self.token(node.last) in self.context.numbers
        if kind == "index":
            return self.is_number(node.children[0])
        if kind == "call":
            name = self.token(node.first)
            return name.startswith("kmes_load_") or name in self.context.numbers
        if kind == "binary":
            return self.token(node.op) in ARITHMETIC
        if kind in ("paren", "ternary"):
            return self.is_number(node.children[-1])
        if kind == "cast":
            return "*" not in node.parts["type"] and node.parts["type"] != ["void"]
        if kind == "unary":
            return self.token(node.op) in ("-", "~") and self.is_number(node.children[0])
        return kind == "sizeof"

    def visit_number(self, node):
        self.constant(self.source.tokens[node.first])

    def constant(self, token: Token):
        if token.kind == "number":
            match = re.match(r"^(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)$", token.text)
            if not match:
                return
            value, suffix = int(match.group(1), 0), match.group(2)
            self.add("plus-one", token.start, token.end, f"{value + 1}{suffix}")
            less = f"{value - 1}{suffix}" if value else f"(0{suffix} - 1)"
            self.add("minus-one", token.start, token.end, less)
        elif token.kind == "name" and CONSTANT.match(token.text):
            self.add("plus-one", token.start, token.end, f"({token.text} + 1)")
            self.add("minus-one", token.start, token.end, f"({token.text} - 1)")

    def visit_name(self, node):
        text = self.token(node.first)
        if text in ("true", "false"):
            self.replace("flip", node, "false" if text == "true" else "true")
        elif text.startswith("KMES_ORDER_"):
            self.label(node, text[len("KMES_ORDER_") :])
        else:
            self.constant(self.source.tokens[node.first])

    def label(self, node, label):
        """Returns another label of the same access: of another field if there is one, so that the
        address differs."""
        access, name = self.context.labels.get(label, (None, None))
        alike = [other for other, rule in self.context.labels.items() if rule[0] == access]
        alike = alike[alike.index(label) + 1 :] + alike[: alike.index(label)] if access else []
        elsewhere = [other for other in alike if self.context.labels[other][1] != name]
        if elsewhere or alike:
            self.replace("wrong-label", node, "KMES_ORDER_" + (elsewhere or alike)[0])

    def visit_string(self, node):
        self.replace("no-text", node, '""')

    def visit_sizeof(self, node):
        pass

    def visit_cast(self, node):
        self.expression(node.children[0], is_whole=False)

    def visit_unary(self, node):
        text = self.token(node.op)
        if text == "!":
            self.replace("drop-not", node, self.text(node.children[0]))
        elif text in ("++", "--"):
            self.replace_token("opposite", node.op, OPPOSITES[text])
        self.expression(node.children[0], is_whole=False)

    def visit_postfix(self, node):
        self.replace_token("opposite", node.op, OPPOSITES[self.token(node.op)])
        self.expression(node.children[0], is_whole=False)

    def visit_member(self, node):
        self.expression(node.children[0], is_whole=False)

    def visit_index(self, node):
        self.expression(node.children[0], is_whole=False)
        self.expression(node.children[1], is_whole=True)

    def visit_list(self, node):
        for child in node.children:
            self.expression(child, is_whole=True)

    def visit_ternary(self, node):
        self.condition(node.children[0])
        self.expression(node.children[1], is_whole=True)
        self.expression(node.children[2], is_whole=True)

    def visit_assign(self, node):
        text = self.token(node.op)
        if text in OPPOSITES:
            self.replace_token("opposite", node.op, OPPOSITES[text])
            self.replace_token("to-set", node.op, "=")
        self.expression(node.children[0], is_whole=False)
        self.expression(node.children[1], is_whole=True)

    def visit_binary(self, node):
        text = self.token(node.op)
        left, right = node.children
        if text in RELATIONS:
            for name in OTHER_RELATIONS[text]:
                self.replace_token("to-" + name, node.op, RELATION_TEXT[name])
        if text in OPPOSITES:
            self.replace_token("opposite", node.op, OPPOSITES[text])
        if text in ("&&", "||"):
            self.replace_token("to-or" if text == "&&" else "to-and", node.op, _other(text))
        if text in ("&&", "||", "+", "-", "&"):
            self.replace("keep-left", node, f"({self.text(left)})")
            self.replace("keep-right", node, f"({self.text(right)})")
        self.expression(left, is_whole=False)
        self.expression(right, is_whole=False)

    def visit_call(self, node):
        name = self.token(node.first)
        self.order(node, name)
        if node.parts["function"].kind != "name":
            self.expression(node.parts["function"], is_whole=False)
        is_likely = name in ("KMES_LIKELY", "KMES_UNLIKELY")
        for argument in node.parts["arguments"]:
            self.expression(argument, is_whole=not is_likely)

    def order(self, node, name):
        match = re.match(r"^kmes_(store_release|load_acquire|fence)_(\w+)$", name)
        if not match:
            return
        what, rest = match.groups()
        if what == "store_release":
            self.replace_token("weaken", node.first, f"kmes_store_relaxed_{rest}")
        elif what == "load_acquire":
            self.replace_token("weaken", node.first, f"kmes_load_relaxed_{rest}")
        elif rest == "full":
            self.replace_token("weaken", node.first, "kmes_fence_release")
            self.replace_token("weaken", node.first, "kmes_fence_acquire")
        elif rest != "light":  # drop-fence removes it; there is no weaker one
            other = {"release": "acquire", "acquire": "release"}[rest]
            self.replace_token("wrong-fence", node.first, f"kmes_fence_{other}")


def _other(text):
    return "||" if text == "&&" else "&&"


def _is_bare(node):
    """A declaration without a value."""
    return node.kind == "declaration" and not node.children


def _is_void_cast(node):
    if node.kind != "expression":
        return False
    value = node.parts["value"]
    return value.kind == "cast" and value.parts["type"] == ["void"]


def _has_effect(source, node):
    return any(
        inner.kind in ("call", "assign", "postfix")
        or (inner.kind == "unary" and source.tokens[inner.op].text in ("++", "--"))
        for inner in node.walk()
    )


def _place(source, node):
    """Returns the parts of a chain of members: `p->m.n` gives (->, m, n), `v.n` gives (v, n). None
    for anything but a chain that begins with a name."""
    names = []
    while node.kind == "member":
        names.insert(0, source.tokens[node.last].text)
        if source.tokens[node.op].text == "->":
            return ("->", *names)
        node = node.children[0]
    return (source.tokens[node.first].text, *names) if node.kind == "name" else None


def _mentioned(source, node):
    """Returns every place that is read or written in it, only the longest chains."""
    found = set()
    if node.kind in ("member", "name"):
        place = _place(source, node)
        if place:
            found.add(place)
        while node.kind == "member" and source.tokens[node.op].text != "->":
            node = node.children[0]
    found.update(*(_mentioned(source, child) for child in node.children))
    return found


def _written(source, node):
    """Returns the places that a statement writes; None if they are not known."""
    if node.kind == "declaration":
        return {(name,) for name in node.parts["declared"]}
    if node.kind != "expression":
        return None
    value = node.parts["value"]
    if value.kind == "call":  # of the seam: it writes nothing private
        return set()
    if value.kind not in ("assign", "postfix"):
        return None
    place = _place(source, value.children[0])
    return {place} if place else None


def _may_be_one(one, other):
    """Whether two places can overlap. A pointer can reach the members of a variable."""
    if (one[0] == "->") == (other[0] == "->"):
        shorter = min(len(one), len(other))
        return one[:shorter] == other[:shorter]
    return bool(set(one[1:]) & set(other[1:]))


def _are_independent(source, first, second):
    """Whether two statements are independent: neither writes a place that the other one uses, and
    at most one calls a function, an access of the seam. (No other thread reads private data
    while a CPU or a reader is in the core.)"""
    written, calls = [], []
    for node in (first, second):
        places = _written(source, node)
        inner = list(node.walk())
        calls += [source.tokens[child.first].text for child in inner if child.kind == "call"]
        if places is None or [child.kind for child in inner].count("assign") > 1:
            return False
        written.append(places)
    if len(calls) > 1 or any(not SEAM.match(name) for name in calls):
        return False
    for places, node in zip(written, (second, first)):
        for mentioned in _mentioned(source, node) | _written(source, node):
            if any(_may_be_one(place, mentioned) for place in places):
                return False
    return True


def read_context(kmes_folder):
    """Whether the file is in the core's own folder."""
    folder = Path(kmes_folder)
    texts = [path.read_text() for path in sorted(folder.glob("*.[ch]"))]
    return Context.read((folder / "order.h").read_text(), texts)


def mutants_of(name, text, context):
    """Returns all mutants of one file, in the order of their places as far as operators permit."""
    mutants = Operators(Source(name, text), context).run()
    identities = Counter(mutant.id for mutant in mutants)
    twice = [identity for identity, count in identities.items() if count > 1]
    if twice:
        raise SourceError(f"{name}: two functions of one name: {twice[0]}")
    return mutants


def main(arguments):
    parser = argparse.ArgumentParser(description="Prints the mutants of C files, one a line.")
    parser.add_argument("--count", action="store_true", help="print only the numbers, by operator")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    counts = Counter()
    for path in options.files:
        text = path.read_text()
        for mutant in mutants_of(path.name, text, read_context(path.parent)):
            counts[mutant.operator] += 1
            if not options.count:
                print(f"{mutant.id}  line {mutant.line}  {mutant.diff(text)}")
    if options.count:
        for operator, count in counts.most_common():
            print(f"{count:5} {operator}: {OPERATORS[operator]}")
        print(f"{sum(counts.values()):5} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
