# SPDX-License-Identifier: MIT
"""Reads the C of this tree's core: tokens, functions, statements, expressions, each with its
place in the text. It covers the small part of C that kmes/*.c uses. Anything else is an error
that names the line, never a guess. Knows no mutation."""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\.)*')
      | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<punct>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|
                  [-+*/%&|^~!<>=?:;,.(){}\[\]\#])
    """,
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"[ \t]*#(?:[^\n\\/]|\\\n|\\.|/\*.*?\*/|//[^\n]*|/)*", re.DOTALL)
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<head>\(?)")

TYPE_WORDS = frozenset(
    "void char short int long unsigned signed bool const static inline struct enum union size_t "
    "__u8 __u16 __u32 __u64 __s8 __s16 __s32 __s64 __UINTPTR_TYPE__".split()
)
TAGGED = frozenset(("struct", "enum", "union"))
ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
LEVEL_OF = {operator: level for level, row in enumerate(LEVELS) for operator in row}


class SourceError(Exception):
    """Text outside of the C that this module knows."""


@dataclass(frozen=True)
class Token:
    kind: str  # name, number, string, char, punct
    text: str
    start: int
    end: int


@dataclass
class Node:
    """An expression, or a statement; `first` and `last` are its outermost tokens."""

    kind: str
    first: int
    last: int
    children: list = field(default_factory=list)
    op: int = -1  # the token of the operator
    parts: dict = field(default_factory=dict)  # of statements: condition, then, body, ...

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Function:
    name: str
    body: Node
    returns: str  # the words before the name


@dataclass
class Macro:
    """An object-like #define: its name, and the tokens of its body."""

    name: str
    tokens: list


def tokens_of(text, start=0, end=None):
    """Returns the tokens of text[start:end], without comments. The caller removes directives."""
    end = len(text) if end is None else end
    found = []
    while start < end:
        match = TOKEN.match(text, start, end)
        if not match:
            line = text.count("\n", 0, start) + 1
            raise SourceError(f"line {line}: no C token at {text[start:start + 20]!r}")
        if match.lastgroup not in ("space", "comment"):
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
        start = match.end()
    return found


class Source:
    """One file: its tokens, macros, functions and the initialised objects outside of functions."""

    def __init__(self, name, text):
        self.name = name
        self.text = text
        self.tokens = []
        self.macros = []
        self.functions = []
        self.objects = []  # (name, initialiser)
        self._lex()
        self._outermost()

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def error(self, at, what):
        at = min(at, len(self.tokens) - 1)
        line = self.line(self.tokens[at].start) if self.tokens else 1
        shown = " ".join(token.text for token in self.tokens[at : at + 6])
        raise SourceError(f"{self.name}:{line}: {what} at '{shown}'")

    def text_of(self, node):
        return self.text[self.tokens[node.first].start : self.tokens[node.last].end]

    def words(self, first, last):
        return [token.text for token in self.tokens[first : last + 1]]

    # -- outside of functions --------------------------------------------------------------------

    def _lex(self):
        """A `#` at the beginning of a line begins a directive; everything else is tokens. Comments
        are removed first, so a `#` in one does not count."""
        start, at_line_start = 0, True
        while start < len(self.text):
            directive = DIRECTIVE.match(self.text, start) if at_line_start else None
            if directive:
                self._directive(start, directive.end())
                start = directive.end()
                continue
            match = TOKEN.match(self.text, start)
            if not match:
                raise SourceError(
                    f"{self.name}:{self.line(start)}: no C token at {self.text[start:start + 20]!r}"
                )
            if match.lastgroup in ("space", "comment"):
                at_line_start = "\n" in match.group() or (
                    at_line_start and match.lastgroup == "space"
                )
            else:
                self.tokens.append(
                    Token(match.lastgroup, match.group(), match.start(), match.end())
                )
                at_line_start = False
            start = match.end()

    def _directive(self, start, end):
        match = DEFINE.match(self.text, start, end)
        if not match or match.group("head"):
            return
        body = self.text[match.end() : end].replace("\\\n", " \n")
        tokens = [
            Token(t.kind, t.text, t.start + match.end(), t.end + match.end())
            for t in tokens_of(body)
        ]
        self.macros.append(Macro(match.group("name"), tokens))

    def _outermost(self):
        at = 0
        while at < len(self.tokens):
            at = self._external(at)

    def _external(self, at):
        """Parses one declaration or function. Returns the index of the next token."""
        begin, name_at = at, None
        while at < len(self.tokens):
            text = self.tokens[at].text
            if text == "(":
                if name_at is None and self.tokens[at - 1].kind == "name":
                    name_at = at - 1
                at = self.match(at) + 1
                if at < len(self.tokens) and self.tokens[at].text == "{" and name_at is not None:
                    return self._function(begin, name_at, at)
            elif text == "{":
                at = self.match(at) + 1
            elif text == "=":
                initialiser, after = self.initialiser(at + 1)
                self.objects.append((self._object_name(begin, at), initialiser))
                at = after
            elif text == ";":
                return at + 1
            else:
                at += 1
        # Names that stand alone end with the file, such as macros that open and close extern "C".
        return at

    def _object_name(self, begin, equals):
        at = equals - 1
        while self.tokens[at].text == "]":
            while self.tokens[at].text != "[":
                at -= 1
            at -= 1
        return self.tokens[at].text if at >= begin else "-"

    def _function(self, begin, name_at, at):
        body, after = self.statement(at)
        returns = " ".join(self.words(begin, name_at - 1))
        self.functions.append(Function(self.tokens[name_at].text, body, returns))
        return after

    def match(self, at):
        """Returns the bracket that closes the one at `at`."""
        pairs = {"(": ")", "{": "}", "[": "]"}
        stack = []
        for index in range(at, len(self.tokens)):
            token = self.tokens[index]
            if token.kind != "punct":
                continue
            if token.text in pairs:
                stack.append(pairs[token.text])
            elif stack and token.text in pairs.values():
                if token.text != stack.pop():
                    self.error(index, "a bracket that closes another kind")
                if not stack:
                    return index
        return self.error(at, "a bracket that is never closed")

    # -- statements ------------------------------------------------------------------------------

    def is_at(self, at, *texts):
        return at < len(self.tokens) and self.tokens[at].text in texts

    def expect(self, at, text):
        if not self.is_at(at, text):
            self.error(at, f"'{text}' expected")
        return at + 1

    def statement(self, at):
        """Returns (node, index of the next token)."""
        token = self.tokens[at]
        keyword = token.text if token.kind in ("name", "punct") else ""
        parse = {
            "{": self._block,
            "if": self._if,
            "while": self._while,
            "do": self._do,
            "for": self._for,
            "switch": self._while,
            "return": self._return,
            "case": self._label,
            "default": self._label,
        }.get(keyword)
        if parse:
            return parse(at)
        if keyword in ("break", "continue", "goto"):
            end = at
            while not self.is_at(end, ";"):
                end += 1
            return Node("jump", at, end), end + 1
        if keyword == ";":
            return Node("empty", at, at), at + 1
        if self.is_declaration(at):
            return self._declaration(at)
        value, end = self.expression(at)
        after = self.expect(end, ";")
        return Node("expression", at, end, [value], parts={"value": value}), after

    def _block(self, at):
        begin, children = at, []
        at += 1
        while not self.is_at(at, "}"):
            if at >= len(self.tokens):
                self.error(begin, "a block that is never closed")
            child, at = self.statement(at)
            children.append(child)
        return Node("block", begin, at, children), at + 1

    def _condition(self, at):
        value, end = self.expression(self.expect(at, "("))
        return value, self.expect(end, ")")

    def _if(self, at):
        begin = at
        condition, at = self._condition(at + 1)
        then, at = self.statement(at)
        node = Node("if", begin, then.last, [condition, then])
        node.parts = {"condition": condition, "then": then}
        if self.is_at(at, "else"):
            other, at = self.statement(at + 1)
            node.parts["else"] = other
            node.children.append(other)
            node.last = other.last
        return node, at

    def _while(self, at):
        condition, after = self._condition(at + 1)
        body, after = self.statement(after)
        node = Node(self.tokens[at].text, at, body.last, [condition, body])
        node.parts = {"condition": condition, "body": body}
        if node.kind == "switch":  # a value, not a condition
            node.parts = {"value": condition, "body": body}
        return node, after

    def _do(self, at):
        body, after = self.statement(at + 1)
        condition, after = self._condition(self.expect(after, "while"))
        node = Node("do", at, after, [body, condition])
        node.parts = {"condition": condition, "body": body}
        return node, self.expect(after, ";")

    def _for(self, at):
        begin, children, parts = at, [], {}
        at = self.expect(at + 1, "(")
        if self.is_at(at, ";"):
            at += 1
        elif self.is_declaration(at):
            parts["init"], at = self._declaration(at)
        else:
            parts["init"], at = self.expression(at)
            at = self.expect(at, ";")
        if not self.is_at(at, ";"):
            parts["condition"], at = self.expression(at)
        at = self.expect(at, ";")
        if not self.is_at(at, ")"):
            parts["step"], at = self.expression(at)
        parts["body"], at = self.statement(self.expect(at, ")"))
        children.extend(parts.values())
        return Node("for", begin, parts["body"].last, children, parts=parts), at

    def _return(self, at):
        if self.is_at(at + 1, ";"):
            return Node("return", at, at + 1), at + 2
        value, end = self.expression(at + 1)
        return Node("return", at, end, [value], parts={"value": value}), self.expect(end, ";")

    def _label(self, at):
        if self.is_at(at, "default"):
            return Node("label", at, at + 1), self.expect(at + 1, ":")
        value, end = self.ternary(at + 1)
        return Node("label", at, end, [], parts={"value": value}), self.expect(end, ":")

    def is_declaration(self, at):
        if self.tokens[at].kind != "name":
            return False
        if self.tokens[at].text in TYPE_WORDS:
            return True
        at += 1
        while self.is_at(at, "*"):
            at += 1
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            return False
        return self.is_at(at + 1, "=", ";", ",", "[")

    def _declaration(self, at):
        """Children: array sizes and initialisers. parts: names -> (initialiser, is a pointer)."""
        begin, children, declared = at, [], {}
        while self.tokens[at].text in TYPE_WORDS:
            at += 2 if self.tokens[at].text in TAGGED else 1
        if at == begin:
            at += 1  # a type that was named by a typedef
        while True:
            is_pointer = False
            while self.is_at(at, "*", "const"):
                is_pointer = is_pointer or self.is_at(at, "*")
                at += 1
            name, at = self.tokens[at].text, at + 1
            while self.is_at(at, "["):
                if not self.is_at(at + 1, "]"):
                    size, _ = self.expression(at + 1)
                    children.append(size)
                at = self.match(at) + 1
            value = None
            if self.is_at(at, "="):
                value, at = self.initialiser(at + 1)
                children.append(value)
            declared[name] = (value, is_pointer)
            if not self.is_at(at, ","):
                break
            at += 1
        node = Node("declaration", begin, at, children, parts={"declared": declared})
        return node, self.expect(at, ";")

    def initialiser(self, at):
        if not self.is_at(at, "{"):
            return self.assignment(at)
        begin, children = at, []
        at += 1
        while not self.is_at(at, "}"):
            if self.is_at(at, "."):  # .member =
                at = self.expect(at + 2, "=")
            value, at = self.initialiser(at)
            children.append(value)
            if not self.is_at(at, ","):
                break
            at += 1
        return Node("list", begin, at, children), self.expect(at, "}")

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, at):
        left, at = self.assignment(at)
        while self.is_at(at, ","):
            right, after = self.assignment(at + 1)
            left, at = Node("comma", left.first, right.last, [left, right], at), after
        return left, at

    def assignment(self, at):
        left, at = self.ternary(at)
        if at < len(self.tokens) and self.tokens[at].text in ASSIGNMENTS:
            right, after = self.assignment(at + 1)
            return Node("assign", left.first, right.last, [left, right], at), after
        return left, at

    def ternary(self, at):
        condition, at = self.binary(at, 0)
        if not self.is_at(at, "?"):
            return condition, at
        question = at
        yes, at = self.expression(at + 1)
        no, after = self.ternary(self.expect(at, ":"))
        node = Node("ternary", condition.first, no.last, [condition, yes, no], question)
        node.parts = {"condition": condition}
        return node, after

    def binary(self, at, level):
        if level == len(LEVELS):
            return self.unary(at)
        left, at = self.binary(at, level + 1)
        while at < len(self.tokens) and self.tokens[at].kind == "punct":
            if self.tokens[at].text not in LEVELS[level]:
                break
            right, after = self.binary(at + 1, level + 1)
            left, at = Node("binary", left.first, right.last, [left, right], at), after
        return left, at

    def is_type(self, at):
        """Whether the parentheses that open at `at` contain a type."""
        return self.is_at(at, "(") and self.tokens[at + 1].text in TYPE_WORDS

    def unary(self, at):
        token = self.tokens[at]
        if token.text == "sizeof":
            if self.is_type(at + 1):
                end = self.match(at + 1)
                return Node("sizeof", at, end), end + 1
            value, after = self.unary(at + 1)
            return Node("sizeof", at, value.last, [], parts={"value": value}), after
        if self.is_type(at):
            end = self.match(at)
            if not self.is_at(end + 1, "{"):
                value, after = self.unary(end + 1)
                node = Node("cast", at, value.last, [value])
                node.parts = {"type": self.words(at + 1, end - 1)}
                return node, after
        if token.text in ("!", "~", "-", "+", "*", "&", "++", "--"):
            value, after = self.unary(at + 1)
            return Node("unary", at, value.last, [value], at), after
        return self.postfix(at)

    def postfix(self, at):
        node, at = self.primary(at)
        while at < len(self.tokens):
            if self.is_at(at, "("):
                node, at = self._call(node, at)
            elif self.is_at(at, "["):
                index, end = self.expression(at + 1)
                after = self.expect(end, "]")
                node, at = Node("index", node.first, end, [node, index], at), after
            elif self.is_at(at, ".", "->"):
                node = Node("member", node.first, at + 1, [node], at)
                at += 2
            elif self.is_at(at, "++", "--"):
                node, at = Node("postfix", node.first, at, [node], at), at + 1
            else:
                break
        return node, at

    def _call(self, function, at):
        arguments, end = [], self.match(at)
        after = at + 1
        while after < end:
            argument, after = self.assignment(after)
            arguments.append(argument)
            if after < end:
                after = self.expect(after, ",")
        node = Node("call", function.first, end, [function] + arguments)
        node.parts = {"function": function, "arguments": arguments}
        return node, end + 1

    def _is_one_text(self, at):
        """True if this token and the next one are parts of a text: "a" "b", or NAME "b"."""
        kinds = [token.kind for token in self.tokens[at : at + 2]]
        return "string" in kinds and len(kinds) == 2 and set(kinds) <= {"string", "name"}

    def primary(self, at):
        if at >= len(self.tokens):
            self.error(at, "an expression expected")
        token = self.tokens[at]
        if token.text == "(":
            value, end = self.expression(at + 1)
            return Node("paren", at, end, [value]), self.expect(end, ")")
        if token.kind == "punct":
            self.error(at, "an expression expected")
        end = at
        while self._is_one_text(end):
            end += 1
        if token.kind == "string" or end > at:
            return Node("string", at, end), end + 1
        return Node(token.kind, at, at), at + 1
