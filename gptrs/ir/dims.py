"""Symbolic dimensions: an integer, or a polynomial with integer coefficients in named symbols.

A symbol stands for an extent of at least 1 that is known when the program is called. Two dims are
equal when their normal forms are equal. A comparison without a certain answer (``S == 4``,
``S < T``) is a `DimError` that names the symbols: the program would be right for some sizes only.
Floor division is exact or opaque (`Quotient`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from keyword import iskeyword
from typing import TypeAlias, Union

from gptrs.errors import DimError, ParseError
from gptrs.lazy_dataclass import dataclass

DimLike: TypeAlias = Union[int, "Dim"]
Shape: TypeAlias = tuple[DimLike, ...]
_MOST_TERMS = 256  # a text from anywhere may hold powers that would not end


@dataclass(frozen=True, slots=True)
class Quotient:
    """``numerator // denominator`` that does not simplify: an atom of the polynomial."""

    numerator: tuple[Term, ...]
    denominator: tuple[Term, ...]

    def __str__(self) -> str:
        return f"(({_text(self.numerator)})//({_text(self.denominator)}))"


Atom: TypeAlias = str | Quotient
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]  # (atom, power), sorted by the atom's text
Term: TypeAlias = tuple[Monomial, int]  # monomial, coefficient


class Dim:
    """A symbolic dimension. Arithmetic gives an int again when the symbols cancel."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __add__(self, other: DimLike) -> DimLike:
        if not _is_dim(other):
            return NotImplemented
        if isinstance(other, int) and other == 0:
            return self
        total = dict(self.terms)
        for monomial, coefficient in _terms(other):
            total[monomial] = total.get(monomial, 0) + coefficient
        return _normal(total)

    __radd__ = __add__

    def __mul__(self, other: DimLike) -> DimLike:
        if not _is_dim(other):
            return NotImplemented
        if isinstance(other, int) and 0 < other < 1 << 32:  # as most are: the order stays
            if other == 1:
                return self
            scaled = tuple([(monomial, c * other) for monomial, c in self.terms])
            if all(abs(c) >> 64 == 0 for _, c in scaled):
                return Dim(scaled)
        return _times(self.terms, _terms(other))

    __rmul__ = __mul__

    def __neg__(self) -> DimLike:
        return self * -1

    def __sub__(self, other: DimLike) -> DimLike:
        return self + -other if _is_dim(other) else NotImplemented

    def __rsub__(self, other: DimLike) -> DimLike:
        return -self + other if _is_dim(other) else NotImplemented

    def __floordiv__(self, other: DimLike) -> DimLike:
        return _floor_divide(self, other) if _is_dim(other) else NotImplemented

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return _floor_divide(other, self) if _is_dim(other) else NotImplemented

    def __mod__(self, other: DimLike) -> DimLike:
        return self - self // other * other if _is_dim(other) else NotImplemented

    def __rmod__(self, other: DimLike) -> DimLike:
        return other - other // self * self if _is_dim(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Dim):
            return NotImplemented
        if same(self, other):
            return True
        difference = self - other
        if isinstance(difference, int):
            return difference == 0
        least, most = _bounds(difference)
        if least > 0 or most < 0:
            return False
        raise _undecided(f"{self} == {other}", difference)

    def __lt__(self, other: DimLike) -> bool:
        least, most = _bounds(self - other)
        if most < 0:
            return True
        if least >= 0:
            return False
        raise _undecided(f"{self} < {other}", self - other)

    def __le__(self, other: DimLike) -> bool:
        return not self > other

    def __gt__(self, other: DimLike) -> bool:
        least, most = _bounds(self - other)
        if least > 0:
            return True
        if most <= 0:
            return False
        raise _undecided(f"{self} > {other}", self - other)

    def __ge__(self, other: DimLike) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise _undecided(f"int({self})", self)

    __int__ = __index__

    def __str__(self) -> str:
        return _text(self.terms)

    __repr__ = __str__

    def symbols(self) -> set[str]:
        """The names of the symbols that occur."""
        return set(_symbols(self.terms))

    def at(self, sizes: Mapping[str, int]) -> int:
        """The value when each symbol has the given size."""
        return _value(self.terms, sizes)


def dim(name: str) -> Dim:
    """The symbolic dimension called ``name``, an ASCII identifier."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or iskeyword(name):
        raise DimError(
            f"{name!r} cannot name a dimension", fix="use a Python identifier such as 'S'"
        )
    return Dim(((((name, 1),), 1),))


def same(a: DimLike, b: DimLike) -> bool:
    """Whether two dims have the same normal form (never an error, unlike ``==``)."""
    if isinstance(a, Dim):
        return isinstance(b, Dim) and a.terms == b.terms
    return not isinstance(b, Dim) and a == b


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes agree dim by dim in normal form."""
    return len(a) == len(b) and all(map(same, a, b))


def surely_greater(a: DimLike, b: DimLike) -> bool:
    """Whether ``a > b`` for every size of the symbols."""
    return _bounds(a - b)[0] > 0


def size_at(value: DimLike, sizes: Mapping[str, int]) -> int:
    """``value`` as an integer, with each symbol's size filled in."""
    return value.at(sizes) if isinstance(value, Dim) else value


def product(shape: Shape) -> DimLike:
    """The number of elements of ``shape``."""
    total: DimLike = 1
    for extent in shape:
        total = total * extent
    return total


def parse_dim(text: str) -> DimLike:
    """Read a dimension as it is printed: ``4``, ``?S``, ``?B*?S + 1``."""
    try:
        return dim_from_ast(ast.parse(text.replace("?", ""), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParseError(f"{text[:60]!r} is not a dimension") from None


def dim_from_ast(node: ast.expr) -> DimLike:
    """A dimension from a parsed expression of integers, names and ``+ - * //``."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return dim(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -dim_from_ast(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            return dim_arithmetic(operator, dim_from_ast(left), dim_from_ast(right))
        case _:
            raise ParseError(f"{ast.unparse(node)!r} is not a dimension")


def dim_arithmetic(operator: ast.operator, a: DimLike, b: DimLike) -> DimLike:
    """``a operator b`` for the operators that dims are printed with: ``+ - * // **``."""
    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.FloorDiv():
            return a // b
        case ast.Pow() if isinstance(a, Dim) and isinstance(b, int) and 0 < b < 16:
            return product((a,) * b)
        case _:
            raise ParseError(f"dimensions {a} and {b} cannot be combined like this")


def _is_dim(value: object) -> bool:
    return isinstance(value, int | Dim)


def _terms(value: DimLike) -> tuple[Term, ...]:
    if isinstance(value, Dim):
        return value.terms
    return (((), value),) if value else ()


def _order(term: Term) -> tuple[int, list[tuple[str, int]]]:
    """Monomial order: highest total power first, then the powers of the first symbol, of the
    second, ...

    The order is preserved when two terms are multiplied by a third, so that long division
    terminates.
    """
    monomial = term[0]
    return -sum(p for _, p in monomial), [(str(atom), -power) for atom, power in monomial]


def _normal(terms: Mapping[Monomial, int]) -> DimLike:
    kept = tuple(sorted(((m, c) for m, c in terms.items() if c), key=_order))
    if len(kept) > _MOST_TERMS:
        raise DimError(f"a dimension has {len(kept)} terms, expected at most {_MOST_TERMS}")
    if any(abs(c) >> 64 for _, c in kept):
        raise DimError("a number in a dimension does not fit 64 bits")
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    return Dim(kept)


@lru_cache(4096)  # a program has few different products of extents, each used very often
def _times(left: tuple[Term, ...], right: tuple[Term, ...]) -> DimLike:
    product: dict[Monomial, int] = {}
    for one, a in left:
        for other, b in right:
            monomial = _multiply(one, other)
            product[monomial] = product.get(monomial, 0) + a * b
    return _normal(product)


def _multiply(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _divide_term(term: Term, by: Term) -> Term | None:
    """``term / by`` where that is a monomial with an integer coefficient again."""
    powers = dict(term[0])
    for atom, power in by[0]:
        powers[atom] = powers.get(atom, 0) - power
    if any(power < 0 for power in powers.values()) or term[1] % by[1]:
        return None
    monomial = tuple((atom, power) for atom, power in powers.items() if power)
    return tuple(sorted(monomial, key=lambda item: str(item[0]))), term[1] // by[1]


def _floor_divide(numerator: DimLike, denominator: DimLike) -> DimLike:
    """Long division by the leading term. Terms that do not divide become an opaque `Quotient`; an
    integer rest over an integer is floored."""
    by = _terms(denominator)
    if not by:
        raise DimError(f"{numerator} // {denominator}: division by zero")
    exact: DimLike = 0
    stuck: DimLike = 0
    rest = numerator
    while terms := _terms(rest):
        head = Dim((terms[0],)) if terms[0][0] else terms[0][1]
        part = _divide_term(terms[0], by[0])
        if part is None:
            stuck, rest = stuck + head, rest - head
        else:
            quotient = _normal(dict((part,)))
            exact, rest = exact + quotient, rest - quotient * denominator
    if isinstance(stuck, int):
        if stuck == 0:
            return exact
        if isinstance(denominator, int):
            return exact + stuck // denominator
    return exact + Dim((((((Quotient(_terms(stuck), by), 1),), 1)),))


def _bounds(value: DimLike) -> tuple[float, float]:
    """A lower and an upper bound over all sizes; infinite where none is known."""
    least: float = 0
    most: float = 0
    for monomial, coefficient in _terms(value):
        low, high = _monomial_bounds(monomial)
        if coefficient < 0:
            low, high = high, low
        # Integers stay integers: only they are exact at any size.
        least, most = least + coefficient * low, most + coefficient * high
    return least, most


def _monomial_bounds(monomial: Monomial) -> tuple[float, float]:
    """Bounds of a product. A symbol is at least 1."""
    low: float = 1
    high: float = 1
    for atom, power in monomial:
        least, most = (1, math.inf) if isinstance(atom, str) else _quotient_bounds(atom)
        if least < 0:
            return -math.inf, math.inf
        low, high = low * least**power, math.inf if math.inf in (high, most) else high * most**power
    return low, high


def _quotient_bounds(quotient: Quotient) -> tuple[float, float]:
    """Bounds of a quotient. Division by a number of at least 1 moves a number towards 0."""
    if _bounds(Dim(quotient.denominator))[0] < 1:
        return -math.inf, math.inf
    least, most = _bounds(Dim(quotient.numerator))
    return min(least, 0), max(most, 0)


def _symbols(terms: tuple[Term, ...]) -> Iterator[str]:
    for monomial, _ in terms:
        for atom, _ in monomial:
            if isinstance(atom, str):
                yield atom
            else:
                yield from _symbols(atom.numerator)
                yield from _symbols(atom.denominator)


def _value(terms: tuple[Term, ...], sizes: Mapping[str, int]) -> int:
    total = 0
    for monomial, coefficient in terms:
        for atom, power in monomial:
            if isinstance(atom, str):
                base = sizes[atom]
            else:
                base = _value(atom.numerator, sizes) // _value(atom.denominator, sizes)
            coefficient *= base**power
        total += coefficient
    return total


def _text(terms: tuple[Term, ...]) -> str:
    words: list[str] = []
    for monomial, coefficient in terms:
        factors = [str(atom) if power == 1 else f"{atom}**{power}" for atom, power in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("- " if coefficient < 0 else "+ ") if words else ("-" if coefficient < 0 else "")
        words.append(sign + "*".join(factors))
    return " ".join(words)


def _undecided(question: str, value: DimLike) -> DimError:
    names = ", ".join(f"?{name}" for name in sorted(set(_symbols(_terms(value)))))
    return DimError(
        f"{question} cannot be decided while tracing: {names} can be any size of at least 1",
        fix=f"write it without asking, or take {names} out of `dynamic` to trace each size",
    )
