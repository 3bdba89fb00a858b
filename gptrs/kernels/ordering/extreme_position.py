"""The position of the first greatest or least element of a contiguous line, as LLVM IR.

    for group of up to 4 vectors in line:
        m = extreme of the vectors, lane by lane
        if m > best: best, places = m, number of the group          # in each lane
    first = the least place of the lanes whose best is the extreme of all
    return the position of the first element of that group that equals it

Elements are compared as they are, floats too: zeros of both signs are equal, and NaN wins. A lane
holds the number of the first group where it was as extreme. The last group begins in the one before
it; groups of a line shorter than 4 vectors are single ones, and elements where it is shorter than a
vector. Lanes have as many bits as elements: after `_GROUPS` groups, numbers begin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I32, I64, POINTER, Builder, i64
from gptrs.lazy_dataclass import dataclass

_VECTORS = 4
"""Vectors of a group, of at most 64 lanes: a bit for each."""
_GROUPS = 127


def extreme_position(
    module: Any, element: Any, vector_bits: int, *, signed: bool, least: bool
) -> Any:
    """The LLVM function ``i64 position(ptr line, i64 count)``, of at least one element; integers
    are ``signed`` or not. It is written at the first request."""
    word = ("least" if least else "greatest") + ("" if signed else "_unsigned")
    symbol = f"position_of_{word}{vector_bits}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(I64, [POINTER, I64]), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("noinline")
    f = Builder(made.append_basic_block("entry"))
    search = _Search(f, element, vector_bits, signed, least)
    line, count = made.args
    for vectors in dict.fromkeys((min(_VECTORS, 64 // search.lanes), 1)):
        with f.if_then(f.icmp_signed(">=", count, i64(vectors * search.lanes))):
            f.ret(search.in_groups(line, count, vectors))
    f.ret(search.one_by_one(line, count))
    return made


@dataclass(frozen=True)
class _Search:
    f: Builder
    element: Any
    vector_bits: int
    signed: bool
    least: bool

    @property
    def bits(self) -> int:
        """Of an element."""
        if self.is_float:
            return 32 if isinstance(self.element, ir.FloatType) else 64
        return self.element.width

    @property
    def lanes(self) -> int:
        return self.vector_bits // self.bits

    @property
    def is_float(self) -> bool:
        return not isinstance(self.element, ir.IntType)

    def in_groups(self, line: Any, count: Any, vectors: int) -> Any:
        """The position in a line of at least one group of so many vectors."""
        f, group = self.f, i64(vectors * self.lanes)
        part = i64(_GROUPS * vectors * self.lanes)
        start = [self._read(line, i64(0), self.element), i64(0)]
        with f.loop(i64(0), count, part, start) as loop:
            best, where = loop.values
            end = _least(f, f.add(loop.index, part), count)
            last = f.sub(end, group)
            totals, places, unordered = self._lanes_of_part(line, loop.index, end, vectors)
            if self.is_float:
                with f.if_then(self._any(unordered), likely=False):
                    f.ret(self._first_nan(line, loop.index, end))
            m = self._halved(totals, self._extreme)
            none = ir.Constant(places.type, [_GROUPS] * self.lanes)
            first = self._halved(f.select(self._equals(totals, m), places, none), self._lesser)
            first = f.zext(first, I64) if self.bits < 64 else first
            begin = _least(f, f.add(loop.index, f.mul(first, group)), last)
            beyond = self._beyond(m, best)
            loop.values = [f.select(beyond, m, best), f.select(beyond, begin, where)]
        best, where = loop.values
        mask, bits = i64(0), ir.IntType(self.lanes)
        for x in reversed(self._vectors(line, where, vectors)):
            mask = f.shl(mask, i64(self.lanes)) if self.lanes < 64 else mask
            found = f.bitcast(self._equals(x, best), bits)
            mask = f.or_(mask, f.zext(found, I64) if self.lanes < 64 else found)
        count_zeros = f.intrinsic("cttz.i64", I64, I64, I1)
        return f.add(where, f.call(count_zeros, [mask, ir.Constant(I1, 1)]))

    def _lanes_of_part(self, line: Any, begin: Any, end: Any, vectors: int) -> tuple[Any, Any, Any]:
        """In each lane: the extreme element from ``begin`` to ``end``, the number of the first
        group where it is, and −1 if one there or beside it is NaN."""
        f, group = self.f, i64(vectors * self.lanes)
        words = ir.VectorType(ir.IntType(self.bits), self.lanes)
        zeros, ones = (ir.Constant(words, [n] * self.lanes) for n in (0, 1))
        first = f.splat(self._read(line, begin, self.element), self.lanes)
        last = f.sub(end, group)
        with f.loop(begin, end, group, [first, zeros, zeros, zeros]) as loop:
            best, places, number, unordered = loop.values
            xs = self._vectors(line, _least(f, loop.index, last), vectors)
            if self.is_float:
                for x, y in zip(xs[::2], xs[1::2] or xs, strict=True):
                    lanes = f.sext(f.fcmp_unordered("uno", x, y), words)
                    unordered = f.or_(unordered, lanes)
            m = self._joined(xs)
            beyond = self._beyond(m, best)
            best, places = f.select(beyond, m, best), f.select(beyond, number, places)
            loop.values = [best, places, f.add(number, ones), unordered]
        best, places, _, unordered = loop.values
        return best, places, unordered

    def one_by_one(self, line: Any, count: Any) -> Any:
        """The position in a line of any length."""
        f = self.f
        start = [self._read(line, i64(0), self.element), i64(0)]
        with f.loop(i64(0), count, None, start) as loop:
            best, where = loop.values
            x = self._read(line, loop.index, self.element)
            if self.is_float:
                with f.if_then(f.fcmp_unordered("uno", x, x), likely=False):
                    f.ret(loop.index)
            beyond = self._beyond(x, best)
            loop.values = [f.select(beyond, x, best), f.select(beyond, loop.index, where)]
        return loop.values[1]

    def _first_nan(self, line: Any, begin: Any, end: Any) -> Any:
        f = self.f
        with f.loop(begin, end) as loop:
            x = self._read(line, loop.index, self.element)
            with f.if_then(f.fcmp_unordered("uno", x, x)):
                f.ret(loop.index)
        return begin

    def _vectors(self, line: Any, begin: Any, number: int) -> list[Any]:
        f, vector = self.f, ir.VectorType(self.element, self.lanes)
        places = (f.add(begin, i64(n * self.lanes)) for n in range(number))
        return [self._read(line, place, vector) for place in places]

    def _read(self, line: Any, index: Any, kind: Any) -> Any:
        return self.f.load(self.f.at(line, index, self.element), align=self.bits // 8, typ=kind)

    def _joined(self, xs: Sequence[Any]) -> Any:
        """The extreme of some vectors, lane by lane."""
        xs = list(xs)
        while len(xs) > 1:
            xs = [self._extreme(x, y) for x, y in zip(xs[::2], xs[1::2], strict=True)]
        return xs[0]

    def _halved(self, x: Any, join: Any) -> Any:
        """The lanes of ``x`` joined to one."""
        width = self.lanes
        while width > 1:
            width //= 2
            kind = ir.VectorType(I32, width)
            halves = [ir.Constant(kind, [*range(i, i + width)]) for i in (0, width)]
            x = join(*(self.f.shuffle_vector(x, x, half) for half in halves))
        return self.f.extract_element(x, i64(0))

    def _any(self, lanes: Any) -> Any:
        """Whether any lane of a vector of integers is −1, the others being 0."""
        f, bits = self.f, ir.IntType(self.lanes)
        negative = f.icmp_signed("<", lanes, ir.Constant(lanes.type, None))
        return f.icmp_unsigned("!=", f.bitcast(negative, bits), ir.Constant(bits, 0))

    def _beyond(self, x: Any, y: Any) -> Any:
        sign = "<" if self.least else ">"
        if self.is_float:
            return self.f.fcmp_ordered(sign, x, y)
        return (self.f.icmp_signed if self.signed else self.f.icmp_unsigned)(sign, x, y)

    def _extreme(self, x: Any, y: Any) -> Any:
        """The greater or lesser; of floats ``y`` if any is NaN, one instruction of x86."""
        return self.f.select(self._beyond(x, y), x, y)

    def _lesser(self, x: Any, y: Any) -> Any:
        return _least(self.f, x, y)

    def _equals(self, x: Any, best: Any) -> Any:
        """In which lanes ``x`` equals a number."""
        best = self.f.splat(best, self.lanes)
        if self.is_float:
            return self.f.fcmp_ordered("==", x, best)
        return self.f.icmp_signed("==", x, best)


def _least(f: Builder, a: Any, b: Any) -> Any:
    return f.select(f.icmp_signed("<", a, b), a, b)
