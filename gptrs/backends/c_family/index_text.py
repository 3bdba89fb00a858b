"""Extents, strides and positions as C expressions of 64-bit integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gptrs.ir.dims import Dim, DimLike, Quotient, Shape, Term, same


def dim_text(value: DimLike) -> str:
    """A dimension over symbols, which are variables of their names with the prefix ``n_``; sums and
    products are in parentheses."""
    if not isinstance(value, Dim):
        return f"{value}l" if abs(value) >= 2**31 else str(value)
    return _sum(value.terms)


def _sum(terms: Sequence[Term]) -> str:
    parts = [_product(term) for term in terms]
    text = " + ".join(parts).replace("+ -", "- ")
    return f"({text})" if " " in text or text.startswith("-") else text


def _product(term: Term) -> str:
    monomial, coefficient = term
    factors = [
        f"n_{atom}"
        if not isinstance(atom, Quotient)
        else f"floor_quotient({_sum(atom.numerator)}, {_sum(atom.denominator)})"
        for atom, power in monomial
        for _ in range(power)
    ]
    if coefficient != 1 or not factors:
        factors.insert(0, dim_text(coefficient))
    return " * ".join(factors)


def symbols_in(values: Iterable[DimLike]) -> tuple[str, ...]:
    """The symbols of dimensions, sorted."""
    return tuple(sorted({s for n in values if isinstance(n, Dim) for s in n.symbols()}))


def times(index: str, stride: DimLike) -> str:
    """An index times a stride."""
    return index if same(stride, 1) else f"{index} * {dim_text(stride)}"


def position(indices: Sequence[str], strides: Shape, *before: str) -> str:
    """Σ index · stride, after the terms ``before``."""
    terms = [term for term in before if term]
    for index, stride in zip(indices, strides, strict=True):
        if index != "0" and not same(stride, 0):
            terms.append(times(index, stride))
    return " + ".join(terms) or "0"


def split(whole: str, shape: Shape, prefix: str) -> tuple[list[str], tuple[str, ...]]:
    """Lines that split a row-major position into indices along the axes of ``shape``, and the names
    of these; an axis of extent 1 has the index 0."""
    axes = [a for a, n in enumerate(shape) if not same(n, 1)]
    names = ["0"] * len(shape)
    lines: list[str] = []
    rest = whole
    for axis in reversed(axes):
        names[axis] = f"{prefix}{axis}"
        if axis == axes[0]:
            lines.append(f"const isize {names[axis]} = {rest};")
            continue
        extent = dim_text(shape[axis])
        lines.append(f"const isize {names[axis]} = {rest} % {extent};")
        lines.append(f"const isize {prefix}{axis}_outer = {rest} / {extent};")
        rest = f"{prefix}{axis}_outer"
    return lines, tuple(names)
