"""Operands of kernels: stored values behind views, and axes that are traversed as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gptrs.backends.c_family.index_text import position, split
from gptrs.backends.c_family.kernel import KernelBuilder
from gptrs.backends.memory_operands import Graph
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.program import Value
from gptrs.ir.types import DType
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Operand:
    """An array that a kernel reads by strides."""

    value: Value
    view: View

    @classmethod
    def of(cls, graph: Graph, value: Value) -> Operand:
        """The farthest value behind an operand, with the view of it."""
        source = graph.source(value, lambda view: True)
        assert source is not None  # the value itself at least
        return cls(source.value, source.view)

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    def offset(self, builder: KernelBuilder) -> str:
        """The text of the offset; empty for 0."""
        return "" if same(self.view.offset, 0) else builder.number(self.view.offset)

    def element(self, builder: KernelBuilder, indices: Sequence[str]) -> str:
        """The element at these indices, as it is in memory."""
        builder.uses(self.view.strides)
        at = position(indices, self.view.strides, self.offset(builder))
        return f"{builder.read(self.value)}[{at}]"


@dataclass(frozen=True)
class Axes:
    """Axes of a loop, and the strides of operands along them."""

    extents: Shape
    strides: tuple[Shape, ...]
    """By operand."""

    @property
    def size(self) -> DimLike:
        return product(self.extents)

    def merged(self) -> Axes:
        """The same loop with adjacent axes as one where all operands are evenly spaced, and without
        axes of extent 1."""
        kept = [a for a, n in enumerate(self.extents) if not same(n, 1)]
        groups: list[list[int]] = [[a] for a in kept[:1]]
        for outer, inner in pairwise(kept):
            pairs = ([(self.extents[a], s[a]) for a in (outer, inner)] for s in self.strides)
            if all(map(evenly_spaced, pairs)):
                groups[-1].append(inner)
            else:
                groups.append([inner])
        extents = tuple(product(tuple(self.extents[a] for a in group)) for group in groups)
        strides = tuple(tuple(s[group[-1]] for group in groups) for s in self.strides)
        return Axes(extents, strides)

    def is_unit(self, operand: int) -> bool:
        """Whether it is one axis, along which an operand is contiguous."""
        return len(self.extents) == 1 and same(self.strides[operand][0], 1)

    def place(
        self, builder: KernelBuilder, whole: str, prefix: str
    ) -> tuple[list[str], tuple[str, ...]]:
        """Lines that split a position in the loop, and each operand's part of an index."""
        builder.uses(self.extents)
        lines, indices = split(whole, self.extents, prefix)
        for strides in self.strides:
            builder.uses(strides)
        return lines, tuple(position(indices, strides) for strides in self.strides)


def flat(shape: Shape, index: str, builder: KernelBuilder) -> tuple[list[str], tuple[str, ...]]:
    """Lines that split the position of an element in a row-major array, and its indices."""
    builder.uses(shape)
    return split(index, shape, "i")


def terms(*parts: str) -> str:
    """A sum of parts of an index."""
    return " + ".join(part for part in parts if part and part != "0") or "0"
