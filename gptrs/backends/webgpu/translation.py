"""Translation of kernels from the C that `gptrs.backends.c_family` writes to WGSL.

WGSL has neither conversions that are not written, nor ``?:``, nor integers of other than 32 bits,
so the text is parsed and its types are followed. The C is that of kernels: declarations,
assignments, ``for``, ``if``, expressions, calls of the vocabulary, arrays; no pointers.

    const isize i1 = item % 5;              let i1: i32 = (item % 5i);
    x0[i1] > 0 ? x0[i1] : 0                 select(0.0f, x0[i1], (x0[i1] > 0.0f))
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gptrs.backends.webgpu.terms import (
    WORDS,
    Term,
    arithmetic,
    chosen,
    common,
    comparison,
    converted,
    number_term,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0x[0-9a-f]+u?|\d+\.?\d*(?:e[+-]?\d+)?[uflUL]*)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<symbol>\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=!<>]=|[-+*/%&|^=!<>~?:;,(){}\[\]]))"
)
_BINARY = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="))
_ARITHMETIC = (("<<", ">>"), ("+", "-"), ("*", "/", "%"))
_LEVELS = (*_BINARY, *_ARITHMETIC)
"""Binary operators, those that bind least first."""
_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])

_RESULTS = {
    "f32_bits": "u32",
    "bf16_of_f32": "u16",
    "f16_of_f32": "u16",
    **dict.fromkeys(("least", "greatest", "floor_quotient"), "isize"),
    **dict.fromkeys(("si4", "ui4", "si4_of_f32", "ui4_of_f32"), "i8"),
    **dict.fromkeys(("f32_signbit", "f32_is_nan", "f32_is_finite", "f32_is_inf"), "u8"),
    **dict.fromkeys(("e4m3_of_f32", "e5m2_of_f32"), "u8"),
}
"""By function: the type of its result where its name does not begin with it."""
_OPERANDS = {
    "f32_of_bits": ("u32",),
    "si4": ("u32",),
    "ui4": ("u32",),
    **dict.fromkeys(("f32_of_bf16", "f32_of_f16"), ("u16",)),
    **dict.fromkeys(("f32_of_e4m3", "f32_of_e5m2"), ("u8",)),
}
"""By function: the types of its operands where they are not that of its result."""
_RESERVED = frozenset(["common", "from", "get", "of", "self", "set", "shared", "target", "where"])
"""Words that WGSL reserves and that a kernel may have for a variable."""


def translated(
    lines: Iterable[str], names: dict[str, str], divided: frozenset[str] = frozenset()
) -> list[str]:
    """The statements ``lines`` in WGSL.

    ``names`` has the types of the variables that they begin with, of arrays the types of their
    elements. Elements of arrays that are ``divided`` are read and written by functions.
    """
    return _Translator("\n".join(lines), names, divided).block()


class _Translator:
    def __init__(self, text: str, names: dict[str, str], divided: frozenset[str]) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._names = dict(names)
        self._divided = divided

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._next
        if expected and token != expected:
            where = " ".join(self._tokens[max(self._at - 8, 0) : self._at + 4])
            raise SyntaxError(f"{expected!r} expected, found {token!r} in {where!r}")
        self._at += 1
        return token

    def _has(self, token: str) -> bool:
        found = self._next == token
        self._at += found
        return found

    def block(self) -> list[str]:
        """Statements up to the end or to a brace."""
        lines: list[str] = []
        while self._next not in ("", "}"):
            lines += self._statement()
        return lines

    def _statement(self) -> list[str]:
        token = self._next
        if token == "{":
            return ["{", *_indented(self._body()), "}"]
        if token == "if":
            self._take()
            self._take("(")
            condition = converted(self.expression(), "bool").text
            self._take(")")
            return [f"if ({condition}) {{", *_indented(self._body()), "}"]
        if token == "for":
            return self._loop()
        if token == "const" or token in WORDS:
            lines = self._declaration()
        elif token == "return":
            lines = [f"{self._take()};"]
        else:
            lines = [f"{self._assignment()};"]
        self._take(";")
        return lines

    def _body(self) -> list[str]:
        outer = dict(self._names)
        if self._has("{"):
            lines = self.block()
            self._take("}")
        else:
            lines = self._statement()
        self._names = outer
        return lines

    def _loop(self) -> list[str]:
        """A loop; its variables are declared in a block around it."""
        outer = dict(self._names)
        self._take("for")
        self._take("(")
        first: list[str] = []
        if self._next in WORDS:
            first = self._declaration()
        elif self._next != ";":
            first = [f"{self._assignment()};"]
        self._take(";")
        condition = converted(self.expression(), "bool").text
        self._take(";")
        step = self._assignment()
        self._take(")")
        loop = [f"for (; {condition}; {step}) {{", *_indented(self._body()), "}"]
        self._names = outer
        return ["{", *_indented([*first, *loop]), "}"] if first else loop

    def _declaration(self) -> list[str]:
        word = "let" if self._has("const") else "var"
        kind = self._take()
        lines: list[str] = []
        while True:
            name = self._take()
            if self._has("["):
                size = self._take()
                self._take("]")
                value = ""
                if self._has("="):
                    for token in ("{", "0", "}"):
                        self._take(token)
                    # Written out: in a loop, implementations may leave out the zeros of WGSL.
                    value = f" = array<{WORDS[kind]}, {size}>()"
                self._names[name] = kind
                lines.append(f"var {_name(name)}: array<{WORDS[kind]}, {size}>{value};")
            else:
                value = ""
                if self._has("="):
                    term = converted(self.expression(), kind)
                    value = f" = {term.text}"
                    if (term.number or 0) < 0:  # as an index that is known, it would be an error
                        word = "var"
                self._names[name] = kind
                lines.append(f"{word} {_name(name)}: {WORDS[kind]}{value};")
            if not self._has(","):
                return lines

    def _assignment(self) -> str:
        if self._has("*"):
            self._take("failed")
            self._take("=")
            self._take("1")
            return "atomicStore(&status[status_at], 1u)"
        if self._next in self._divided:
            return self._put()
        target = self._postfix()
        if target.kind == "void":
            return target.text
        symbol = self._take()
        if symbol in ("++", "--"):
            return f"{target.text} {symbol[0]}= {number_term(1, target.kind).text}"
        value = self.expression()
        if symbol != "=":
            value = arithmetic(symbol[:-1], target, value)
        return f"{target.text} = {converted(value, target.kind).text}"

    def _put(self) -> str:
        """An assignment to an element of a divided array."""
        name = self._take()
        self._take("[")
        index = converted(self.expression(), "isize").text
        self._take("]")
        self._take("=")
        value = converted(self.expression(), self._names[name]).text
        return f"{name}_put({index}, {value})"

    def expression(self, level: int = -1) -> Term:
        """An expression of operators that bind at least as much as those of a level."""
        if level < 0:
            condition = self.expression(0)
            if not self._has("?"):
                return condition
            x = self.expression()
            self._take(":")
            return chosen(condition, x, self.expression())
        if level == len(_LEVELS):
            return self._unary()
        found = self.expression(level + 1)
        while self._next in _LEVELS[level]:
            found = _binary(self._take(), found, self.expression(level + 1))
        return found

    def _unary(self) -> Term:
        if self._has("!"):
            return Term(f"!{converted(self._unary(), 'bool').text}", "bool")
        if self._has("~"):
            x = self._unary()
            x = converted(x, common(x, x))
            return Term(f"(~{x.text})", x.kind)
        if self._has("-"):
            x = self._unary()
            if x.number is not None:
                return number_term(-x.number, x.kind)
            kind = common(x, x)
            return Term(f"(-{converted(x, kind).text})", kind)
        if self._next == "(" and self._tokens[self._at + 1] in WORDS:
            self._take()
            kind = self._take()
            self._take(")")
            return converted(self._unary(), kind)
        return self._postfix()

    def _postfix(self) -> Term:
        token = self._take()
        if token == "(":
            found = self.expression()
            self._take(")")
            return found
        if token[0].isdigit():
            return _number(token)
        if self._next == "(":
            return self._call(token)
        if token in ("F32_INFINITY", "F32_NAN"):
            return Term(f"{token.lower()}()", "f32")
        kind = self._names[token]
        if self._has("["):
            index = converted(self.expression(), "isize").text
            self._take("]")
            if token in self._divided:
                return Term(f"{token}_at({index})", kind)
            return Term(f"{_name(token)}[{index}]", kind)
        return Term(_name(token), kind)

    def _call(self, name: str) -> Term:
        self._take("(")
        given: list[Term] = []
        while not self._has(")"):
            given.append(self.expression())
            self._has(",")
        if name == "BARRIER":
            return Term("workgroupBarrier()", "void")
        kind = _RESULTS.get(name) or name.partition("_")[0]
        wanted = _operands(name, kind, len(given))
        texts = (converted(x, of).text for x, of in zip(given, wanted, strict=True))
        return Term(f"{name}({', '.join(texts)})", kind)


def _operands(name: str, kind: str, count: int) -> tuple[str, ...]:
    if found := _OPERANDS.get(name):
        return found
    if name.endswith("_of_f32") or name.startswith("f32_"):
        return ("f32",) * count
    if name.endswith("_pow"):
        return (kind, "isize")
    return (kind,) * count


def _binary(symbol: str, x: Term, y: Term) -> Term:
    if symbol in ("||", "&&"):
        left, right = converted(x, "bool").text, converted(y, "bool").text
        return Term(f"({left} {symbol} {right})", "bool")
    if symbol in _COMPARISONS:
        return comparison(symbol, x, y)
    return arithmetic(symbol, x, y)


def _number(token: str) -> Term:
    if token.startswith("0x"):
        return number_term(int(token.rstrip("u"), 16), "u32")
    digits = token.rstrip("uflUL")
    if "f" in token or "." in digits or "e" in digits:
        return Term(f"{digits}f", "f32")
    suffix = token[len(digits) :].lower()
    kind = {"": "int", "u": "u32", "l": "i64", "ul": "u64"}[suffix]
    return number_term(int(digits), kind)


def _name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SyntaxError(f"no token of a kernel begins at {text[at : at + 20]!r}")
        tokens.append(found[0].strip())
        at = found.end()
    return tokens
