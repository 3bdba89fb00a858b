"""A product of arguments: operands with any strides, and the grid of its batch.

Read by the steps of tiled products (`tiled_steps`) and of dot products (`dot_steps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product as cartesian
from math import prod
from typing import NamedTuple

from gptrs.backends.faer.calls.axes import merged
from gptrs.backends.faer.calls.base import Binder
from gptrs.backends.faer.calls.contraction import Contraction, Operand
from gptrs.ir.dims import DimLike, Shape
from gptrs.ir.program import Value
from gptrs.kernels.gemm.number_types import PLAIN, NumberTypes
from gptrs.lazy_dataclass import dataclass

GRID = 3
"""The axes of a batch that a step takes, after those that are evenly spaced have become one."""


@dataclass(frozen=True)
class Side:
    """A stored operand, with its strides in elements: from one row of A, or column of B, to the
    next, along the depth, and along the batch."""

    value: Value
    offset: DimLike
    outer: DimLike
    depth: DimLike
    batch: Shape


class Axis(NamedTuple):
    """An axis of a batch, with the steps of both operands along it."""

    extent: int
    a: int
    b: int


class Grid(NamedTuple):
    """The matrices of a step: `GRID` axes, the first elements of both operands, and the number of
    matrices before them."""

    axes: list[Axis]
    a: int
    b: int
    first: int

    @property
    def matrices(self) -> int:
        """The number of its matrices."""
        return prod(axis.extent for axis in self.axes)

    def words(self) -> dict[str, int]:
        """The extents of its last axes, as kernels take them."""
        return {"batch1": self.axes[1].extent, "batch2": self.axes[2].extent}


@dataclass(frozen=True)
class Arguments:
    """A product of arguments A·B, for each position of batch axes."""

    a: Side
    b: Side
    types: NumberTypes
    batch: Shape
    rows: DimLike
    depth: DimLike
    columns: DimLike

    def transposed(self) -> Arguments:
        """Bᵀ·Aᵀ."""
        return replace(self, a=self.b, b=self.a, rows=self.columns, columns=self.rows)


def _merged_axes(b: Binder, core: Arguments) -> list[Axis]:
    """The axes of a batch; those that both operands traverse evenly are one."""
    strides = ([*map(b.size, side.batch)] for side in (core.a, core.b))
    axes = zip(map(b.size, core.batch), *strides, strict=True)
    return [Axis(*axis) for axis in merged(axes)]


def grids(b: Binder, core: Arguments) -> Iterator[Grid]:
    """The matrices of a batch, a grid for each step; none without matrices."""
    axes = _merged_axes(b, core)
    surplus, axes = axes[:-GRID], [Axis(1, 0, 0)] * (GRID - len(axes)) + axes[-GRID:]
    inner = prod(axis.extent for axis in axes)
    if not inner:
        return
    for number, place in enumerate(cartesian(*(range(axis.extent) for axis in surplus))):
        first_a, first_b = b.size(core.a.offset), b.size(core.b.offset)
        for i, axis in zip(place, surplus, strict=True):
            first_a, first_b = first_a + i * axis.a, first_b + i * axis.b
        yield Grid(axes, first_a, first_b, number * inner)


def as_arguments(core: Contraction) -> Arguments:
    """A product of which neither operand is packed ahead."""

    def side(operand: Operand) -> Side:
        strides = operand.matrix.stride, 1
        outer, depth = reversed(strides) if operand.transposed else strides
        return Side(operand.value, operand.matrix.offset, outer, depth, operand.batch)

    sizes = core.batch, core.rows, core.depth, core.columns
    return Arguments(side(core.a), side(core.b), PLAIN, *sizes)
