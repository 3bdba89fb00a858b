"""Rotary positions in f32: each pair (a, b) of elements of a row turned by an angle.

    for row (outer, head, token):                       # extent
        for vector of pairs i:                          # in registers: a, b, cos, sin
            a, b = x[i], x[pairs + i]                   # interleaved: x[2i], x[2i + 1], by shuffles
            result[i]         = a·cos[i] − b·sin[i]
            result[pairs + i] = b·cos[i] + a·sin[i]

    x [outer, heads, tokens, 2 · pairs], any strides but that of the last axis, which is 1
    cos, sin  the same, one element a pair or one an element; strides of 0 where they broadcast

A product is rounded, and its sum with the other one once where the CPU can, so that bits depend on
nothing but the five numbers. Source: Su et al., arXiv:2104.09864.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa

_POINTERS = ("x", "result", "cos", "sin")
_STRIDES = tuple(
    f"{name}_{axis}" for name in ("x", "cos", "sin") for axis in ("outer", "head", "token")
)
ROTARY_ARGUMENTS = (*_POINTERS, "pairs", "heads", "tokens", *_STRIDES)
"""The argument block of `rotary_kernel`, in order. Strides count elements; the result is contiguous
and may be x itself where x is. The extent is outer · heads · tokens."""


class Pairs(NamedTuple):
    """Parameters of the kernel's code."""

    interleaved: bool = False
    """Elements 2i and 2i + 1 are a pair, instead of i and pairs + i."""
    cos_each: bool = False
    """Whether cos has an entry for each element, instead of one a pair; ``sin_each`` of sin."""
    sin_each: bool = False


def rotary_kernel(isa: Isa, pairs: Pairs) -> KernelText:
    """Rows turned by tables. Arguments: `ROTARY_ARGUMENTS`; extent: rows."""
    name = "_".join(["rotary", *(n for n, given in pairs._asdict().items() if given)])
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, ROTARY_ARGUMENTS[len(_POINTERS) :])
    with f.loop(first, last) as row:
        rest, token = f.udiv(row.index, w["tokens"]), f.urem(row.index, w["tokens"])
        outer, head = f.udiv(rest, w["heads"]), f.urem(rest, w["heads"])

        def place(name: str, at: tuple[Any, ...] = (outer, head, token)) -> Any:
            axes = zip(at, ("outer", "head", "token"), strict=True)
            moves = [f.mul(index, w[f"{name}_{axis}"]) for index, axis in axes]
            return f.at(w[name], f.add(f.add(moves[0], moves[1]), moves[2]))

        width = f.add(w["pairs"], w["pairs"])
        result = f.at(w["result"], f.mul(row.index, width))
        _turn(f, pairs, w["pairs"], (place("x"), place("cos"), place("sin")), result)
    f.ret_void()
    return KernelText(str(module), name)


def _turn(
    f: Function, pairs: Pairs, count: Any, sources: tuple[Any, Any, Any], result: Any
) -> None:
    """One row of ``count`` pairs."""
    lanes, (x, cos, sin) = f.isa.lanes, sources
    with f.loop(i64(0), count, i64(lanes)) as loop:
        left = f.sub(count, loop.index)
        ends = _Ends(f, pairs.interleaved, count, loop.index, left)
        a, b = ends.read(x)
        c, s = (
            ends.read(table) if each else (ends.read_one(table),) * 2
            for table, each in ((cos, pairs.cos_each), (sin, pairs.sin_each))
        )
        first = f.multiply_add(a, c[0], f.fneg(f.fmul(b, s[0])))
        second = f.multiply_add(b, c[1], f.fmul(a, s[1]))
        ends.write(first, second, result)


class _Ends:
    """Access to the two elements of a vector of pairs, the first of which is number ``index``."""

    def __init__(self, f: Function, interleaved: bool, count: Any, index: Any, left: Any) -> None:
        self.f, self.interleaved, self.index = f, interleaved, index
        lanes = f.isa.lanes
        double = f.add(index, index)
        self.places = (
            (double, f.add(double, i64(lanes))) if interleaved else (index, f.add(count, index))
        )
        self.pairs = f.mask(left)
        self.masks = (self.pairs, self.pairs)
        if interleaved:
            elements = f.add(left, left)
            self.masks = (f.mask(elements), f.mask(f.sub(elements, i64(lanes))))

    def read_one(self, table: Any) -> Any:
        """An entry for each pair."""
        return self.f.read(self.f.at(table, self.index), mask=self.pairs)

    def read(self, row: Any) -> tuple[Any, Any]:
        """The first and the second elements."""
        f, n = self.f, self.f.isa.lanes
        low, high = (
            f.read(f.at(row, place), mask=mask)
            for place, mask in zip(self.places, self.masks, strict=True)
        )
        if not self.interleaved:
            return low, high
        evens, odds = ([2 * i + k for i in range(n)] for k in (0, 1))
        return _picked(f, low, high, evens), _picked(f, low, high, odds)

    def write(self, first: Any, second: Any, row: Any) -> None:
        """Put the elements back."""
        f, n = self.f, self.f.isa.lanes
        if self.interleaved:
            halves = ([i // 2 + n * (i % 2) for i in range(k, k + n)] for k in (0, n))
            first, second = [_picked(f, first, second, numbers) for numbers in halves]
        for value, place, mask in zip((first, second), self.places, self.masks, strict=True):
            f.write(value, f.at(row, place), mask)


def _picked(f: Function, low: Any, high: Any, numbers: list[int]) -> Any:
    """The lanes with these numbers, of two vectors one after the other."""
    return f.shuffle_vector(low, high, ir.Constant(ir.VectorType(I32, len(numbers)), numbers))
