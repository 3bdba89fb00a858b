"""Who computes and who reads each value of a program, and where a kernel finds an operand.

A kernel that takes strides can read through ops that only move elements. `Graph.source` looks up
such a chain of ops for the stored value behind an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from gptrs.backends.views import MOVING, View
from gptrs.ir.dims import DimLike, product, same, same_shape
from gptrs.ir.program import Fails, Instruction, Program, Value


@dataclass(frozen=True)
class Source:
    """An operand of a kernel: the elements of ``value`` that ``view`` shows."""

    value: Value
    view: View
    through: tuple[Instruction, ...] = ()
    """The ops between ``value`` and the operand, first to last."""


class Graph:
    """The readers and the writer of each value."""

    def __init__(self, program: Program) -> None:
        self.maker: dict[Value, Instruction] = {}
        self._readers: dict[Value, list[Instruction]] = {}
        self._results = frozenset(program.results)
        self._seen: dict[Value, list[_Seen]] = {}
        self.taken: set[Instruction] = set()  # what calls stand for already
        for instruction in program.body:
            self.maker.update(dict.fromkeys(instruction.results, instruction))
            for value in dict.fromkeys(instruction.values()):
                self._readers.setdefault(value, []).append(instruction)

    def only_reader(self, value: Value) -> Instruction | None:
        """The one instruction that reads ``value``; None if it is a result, has more readers, or
        the reader belongs to a call."""
        readers = self._readers.get(value, [])
        if len(readers) != 1 or value in self._results or readers[0] in self.taken:
            return None
        return readers[0]

    def source(self, value: Value, accepts: Callable[[View], bool]) -> Source | None:
        """The farthest value behind ``value`` that a kernel can read in its place."""
        found: Source | None = None
        for source in self._behind(value):
            if source.through and source.through[0] in self.taken:
                break
            if source.view is not None and accepts(source.view):
                found = Source(source.value, source.view, source.through)
        return found

    def _behind(self, value: Value) -> list[_Seen]:
        """``value`` and those behind it, from near to far."""
        seen = self._seen.get(value)
        if seen is None:
            seen = self._seen[value] = [_Seen(value, View.contiguous(value.type.shape), ())]
            maker = self.maker.get(value)
            while maker is not None and maker.op.name in MOVING and maker.fails is Fails.NEVER:
                (behind,) = maker.values()
                through = (maker, *seen[-1].through)
                seen.append(_Seen(behind, _through(behind, through), through))
                maker = self.maker.get(behind)
        return seen


class _Seen(NamedTuple):
    """A value behind an operand, and what is seen of it through some ops; None for no view."""

    value: Value
    view: View | None
    through: tuple[Instruction, ...]


def _through(value: Value, chain: Iterable[Instruction]) -> View | None:
    """What is seen of ``value`` after ops that move elements."""
    view: View | None = View.contiguous(value.type.shape)
    for instruction in chain:
        view = view and view.moved_by(instruction.op.name, instruction.attrs)
    return view


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory: ``rows`` at a distance of ``stride`` elements, each without gaps."""

    offset: DimLike
    rows: DimLike
    stride: DimLike


def rows_of(view: View, inner: int = 1) -> Matrix | None:
    """``view`` as a matrix whose rows run over its last ``inner`` axes; None if it is none."""
    count = len(view.shape) - inner
    axes = list(zip(view.shape, view.strides, strict=True))
    outer = [(n, s) for n, s in axes[:count] if not same(n, 1)]
    row = [(n, s) for n, s in axes[count:] if not same(n, 1)]
    if any(not same(s, n * t) for (_, s), (n, t) in pairwise(outer)):
        return None
    length: DimLike = 1
    for extent, stride in reversed(row):
        if not same(stride, length):
            return None
        length = length * extent
    stride = outer[-1][1] if outer else length
    return Matrix(view.offset, product(view.shape[:count]), stride)


def starts_contiguous(view: View) -> bool:
    """Whether a view shows the first elements of an array in order."""
    return same(view.offset, 0) and same_shape(view.strides, View.contiguous(view.shape).strides)


@dataclass
class Members:
    """The instructions that a kernel stands for, in the order in which they were found."""

    found: dict[Instruction, None] = field(default_factory=dict[Instruction, None])

    def add(self, *instructions: Instruction | None) -> None:
        self.found.update(dict.fromkeys(i for i in instructions if i is not None))

    def read(self, source: Source | None) -> Source | None:
        """Add what lies between a source and its reader."""
        if source is not None:
            self.add(*source.through)
        return source
