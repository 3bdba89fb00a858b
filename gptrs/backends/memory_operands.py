"""Use-def chains of a program, and the memory operand behind each value.

A kernel that takes strides can read through ops that only move elements. `Graph.source` follows
such a chain of ops from an operand back to the stored value, with the strided view of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from gptrs.backends.views import View
from gptrs.ir.dims import DimLike, Shape, product, same, same_shape
from gptrs.ir.kinds import OpKind
from gptrs.ir.program import Fails, Instruction, Program, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Source:
    """A memory operand of a kernel: ``view`` of the stored ``value``."""

    value: Value
    view: View
    through: tuple[Instruction, ...] = ()
    """The ops between ``value`` and the operand, first to last."""


class Graph:
    """The definition and the uses of each value."""

    def __init__(self, program: Program) -> None:
        self.maker: dict[Value, Instruction] = {}
        self._readers: dict[Value, list[Instruction]] = {}
        self._results = frozenset(program.results)
        self._seen: dict[Value, list[_Seen]] = {}
        self.taken: set[Instruction] = set()  # instructions that calls have replaced already
        for instruction in program.body:
            self.maker.update(dict.fromkeys(instruction.results, instruction))
            for value in dict.fromkeys(instruction.values()):
                self._readers.setdefault(value, []).append(instruction)

    def only_reader(self, value: Value) -> Instruction | None:
        """The single use of ``value``; None if it is a result, has more uses, or the use belongs to
        a call already."""
        readers = self._readers.get(value, [])
        if len(readers) != 1 or value in self._results or readers[0] in self.taken:
            return None
        return readers[0]

    def readers(self, value: Value) -> list[Instruction]:
        """The uses of ``value``; none if it is a result, which others may use."""
        return [] if value in self._results else self._readers.get(value, [])

    def is_read(self, value: Value) -> bool:
        """Whether a value has uses or is a result."""
        return value in self._results or value in self._readers

    def source(self, value: Value, accepts: Callable[[View], bool]) -> Source | None:
        """The farthest value behind ``value`` that a kernel with this access pattern can read
        instead of it."""
        found: Source | None = None
        for source in self._behind(value):
            if source.through and source.through[0] in self.taken:
                break
            if source.view is not None and accepts(source.view):
                found = Source(source.value, source.view, source.through)
        return found

    def _behind(self, value: Value) -> list[_Seen]:
        """``value`` and the values that it is moved from, nearest first."""
        seen = self._seen.get(value)
        if seen is None:
            seen = self._seen[value] = [_Seen(value, View.contiguous(value.type.shape), ())]
            maker = self.maker.get(value)
            while maker is not None and maker.op.kind is OpKind.VIEW and maker.fails is Fails.NEVER:
                (behind,) = maker.values()
                through = (maker, *seen[-1].through)
                seen.append(_Seen(behind, _through(behind, through), through))
                maker = self.maker.get(behind)
        return seen


class _Seen(NamedTuple):
    """A value behind an operand, with the view through the ops between; None where no strides
    express it."""

    value: Value
    view: View | None
    through: tuple[Instruction, ...]


def _through(value: Value, chain: Iterable[Instruction]) -> View | None:
    """The view of ``value`` after a chain of moving ops."""
    view: View | None = View.contiguous(value.type.shape)
    for instruction in chain:
        view = view and view.moved_by(instruction.op, instruction.attrs)
    return view


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory: ``rows`` with a leading stride of ``stride`` elements, each row
    contiguous."""

    offset: DimLike
    rows: DimLike
    stride: DimLike


def rows_of(view: View, inner: int = 1) -> Matrix | None:
    """``view`` as a matrix whose rows run over its last ``inner`` axes; None if the strides do not
    fit."""
    return _rows_of(view.shape, view.strides, view.offset, inner)


@lru_cache(4096)  # layers read alike
def _rows_of(shape: Shape, strides: Shape, offset: DimLike, inner: int) -> Matrix | None:
    count = len(shape) - inner
    axes = list(zip(shape, strides, strict=True))
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
    return Matrix(offset, product(shape[:count]), stride)


def has_whole_rows(view: View) -> bool:
    """Whether the elements of the last axis are contiguous."""
    return same(view.shape[-1], 1) or same(view.strides[-1], 1)


def starts_contiguous(view: View) -> bool:
    """Whether a view is contiguous from the first element of its array."""
    return same(view.offset, 0) and same_shape(view.strides, View.contiguous(view.shape).strides)


@dataclass
class Members:
    """The instructions that a call replaces, in the order in which they were found."""

    found: dict[Instruction, None] = field(default_factory=dict[Instruction, None])

    def add(self, *instructions: Instruction | None) -> None:
        self.found.update(dict.fromkeys(i for i in instructions if i is not None))

    def read(self, source: Source | None) -> Source | None:
        """Add the moving ops between a source and its use."""
        if source is not None:
            self.add(*source.through)
        return source

    def read_strided(self, graph: Graph, value: Value) -> Source:
        """The farthest value behind the operand of a kernel that reads any strides."""
        source = self.read(graph.source(value, lambda view: True))
        assert source is not None  # the value itself at least
        return source
