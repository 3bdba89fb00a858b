"""Typed expressions of WGSL, and the conversions that C leaves out.

Integers up to 32 bits are ``i32`` or ``u32`` here, and those of 64 bits are two words, the lower
one first. Positions (`isize`) have 32 bits. A comparison is a ``bool``, a number in C.
"""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass

WORDS = {
    **dict.fromkeys(("isize", "int", "i8", "i16", "i32"), "i32"),
    **dict.fromkeys(("u8", "u16", "u32"), "u32"),
    **dict.fromkeys(("i64", "u64"), "vec2<u32>"),
    "f32": "f32",
    "bool": "bool",
}
"""By type of the C family: its type in WGSL."""

_BITS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16}
_OF_64 = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "remainder"}
_RANKS = ("f32", "u64", "i64", "u32")
"""The types that an operand converts the other one to, the strongest first."""
_NO_ITEMS = "u32(min(extent, 0i))"
_ZEROS = {
    "0.0f": f"bitcast<f32>({_NO_ITEMS})",
    "(-0.0f)": f"bitcast<f32>(0x80000000u | {_NO_ITEMS})",
}
"""Divisors that a driver must not know: Mesa's leaves out what depends on the quotient."""


@dataclass(frozen=True)
class Term:
    """An expression, in parentheses where it needs them, with its type."""

    text: str
    kind: str
    number: int | None = None
    """The value of an integer that is written out, which takes the type of what it is beside."""


def number_term(value: int, kind: str = "int") -> Term:
    return Term(_written(value, kind), kind, value)


def _written(value: int, kind: str) -> str:
    """An integer as a constant of a type."""
    match WORDS[kind]:
        case "f32":
            return f"{value}.0f"
        case "u32":
            return f"{value % 2**32}u"
        case "bool":
            return "true" if value else "false"
        case "i32":
            wrapped = (value + 2**31) % 2**32 - 2**31
            text = f"{wrapped}i" if wrapped > -(2**31) else "(-2147483647i - 1i)"
            return f"({text})" if wrapped < 0 else text
        case _:
            low, high = value % 2**32, (value >> 32) % 2**32
            return f"vec2<u32>({low}u, {high}u)"


def converted(term: Term, kind: str) -> Term:
    """``term`` as the C family converts it to ``kind``."""
    source = term.kind
    if source == kind:
        return term
    if term.number is not None:
        value = term.number
        if kind in _BITS:
            bits = _BITS[kind]
            value %= 2**bits
            value -= 2**bits if kind[0] == "i" and value >= 2 ** (bits - 1) else 0
        return Term(_written(value, kind), kind, value)
    return Term(_converted(term.text, source, kind), kind)


def _converted(text: str, source: str, kind: str) -> str:
    word, to = WORDS[source], WORDS[kind]
    if to == "bool":
        return (
            f"({text} != {_written(0, source)})"
            if word != "vec2<u32>"
            else f"any({text} != vec2<u32>())"
        )
    if to == "vec2<u32>":
        return _as_pair(text, word)
    if word == "vec2<u32>":
        if kind == "isize":
            return f"isize_of_{source}({text})"
        if kind == "f32":
            return f"f32_of_{source}({text})"
        text, word = f"{text}.x", "u32"
    if kind in _BITS and source != kind:
        if word == "bool":
            return f"{to}({text})"
        return f"extractBits({to}({text}), 0u, {_BITS[kind]}u)"
    return text if word == to else f"{to}({text})"


def _as_pair(text: str, word: str) -> str:
    match word:
        case "vec2<u32>":
            return text
        case "i32":
            return f"pair_of_i32({text})"
        case _:
            return f"vec2<u32>(u32({text}), 0u)"


def common(x: Term, y: Term) -> str:
    """The type that C computes in for two operands."""
    kinds = {t.kind for t in (x, y) if t.number is None or t.kind != "int"}
    for kind in _RANKS:
        if kind in kinds:
            return kind
    return "isize" if "isize" in kinds else "int"


def together(x: Term, y: Term) -> str:
    """The type in which two operands are compared or chosen from: their own where it is one."""
    kinds = {t.kind for t in (x, y) if t.number is None}
    return kinds.pop() if len(kinds) == 1 else common(x, y)


def arithmetic(symbol: str, x: Term, y: Term) -> Term:
    """``x + y`` and the like; truth values and small integers are ``int``."""
    kind = common(x, y)
    if x.number is not None and y.number is not None and symbol in "+-*":
        value = {"+": x.number + y.number, "-": x.number - y.number, "*": x.number * y.number}
        return number_term(value[symbol], kind)
    left, right = converted(x, kind).text, converted(y, kind).text
    if symbol == "/" and right in _ZEROS:
        right = _ZEROS[right]
    if WORDS[kind] == "vec2<u32>" and symbol in _OF_64:
        return Term(f"{kind}_{_OF_64[symbol]}({left}, {right})", kind)
    return Term(f"({left} {symbol} {right})", kind)


def comparison(symbol: str, x: Term, y: Term) -> Term:
    """``x < y`` and the like."""
    kind = together(x, y)
    left, right = converted(x, kind).text, converted(y, kind).text
    if kind == "f32" and symbol == "!=":  # true for NaN, whatever a driver does with it
        return Term(f"!({left} == {right})", "bool")
    if WORDS[kind] != "vec2<u32>":
        return Term(f"({left} {symbol} {right})", "bool")
    match symbol:
        case "==":
            return Term(f"all({left} == {right})", "bool")
        case "!=":
            return Term(f"any({left} != {right})", "bool")
        case "<":
            return Term(f"{kind}_less({left}, {right})", "bool")
        case ">":
            return Term(f"{kind}_less({right}, {left})", "bool")
        case "<=":
            return Term(f"!{kind}_less({right}, {left})", "bool")
        case _:
            return Term(f"!{kind}_less({left}, {right})", "bool")


def chosen(condition: Term, x: Term, y: Term) -> Term:
    """``condition ? x : y``. WGSL computes both."""
    kind = together(x, y)
    left, right = converted(x, kind).text, converted(y, kind).text
    return Term(f"select({right}, {left}, {converted(condition, 'bool').text})", kind)
