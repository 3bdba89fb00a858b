"""Blocks of an array as parts of its planes, which one step puts together (`plane_copy`).

concat((x, y), axis=1)       planes are rows, parts a row of x and one of y
the border of 64 images      planes are images, parts the image and its borders
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from gptrs.backends.faer.calls.axes import Axis, merged
from gptrs.backends.faer.calls.base import Address, Binder, Word, kernel
from gptrs.backends.faer.calls.blocks import ROW_NS, element_bytes, long_run
from gptrs.backends.machine import MACHINE
from gptrs.ir.dims import product
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import ElementBytes
from gptrs.kernels.rowwise.plane_copy import copy_planes_kernel
from gptrs.lazy_dataclass import dataclass

_MANY = 64
"""The least planes: of fewer ones threads share the rows of each block."""
_PART_NS, _STEP_NS = 5.0, 1500.0
"""The start of a part of a plane, and the time for which threads wait for each other at a step."""
_LONG_PART = 128
"""The mean bytes of a part from which on its start is not felt."""


def compile_planes(isa: Isa, value: Value, blocks: int) -> None:
    """Compile the kernel, if ``value`` may have many planes of so many ``blocks``."""
    planes = product(value.type.shape[:-1])
    if blocks > 1 and (not isinstance(planes, int) or planes >= _MANY):
        kernel(copy_planes_kernel, isa, element_bytes(value))


class Piece(NamedTuple):
    """A block that is copied: its first element in the source and in the result, and its axes."""

    source: Address
    place: int
    axes: Sequence[Axis]


@dataclass(frozen=True)
class _Part:
    """A part of each plane: the distance of its planes in the source, its rows and their elements,
    which are contiguous in the result."""

    plane: int
    rows: Axis
    row: Axis


def put_together(
    b: Binder, result: Address, shape: Sequence[int], size: ElementBytes, blocks: Sequence[Piece]
) -> bool:
    """Add one step that writes an array of ``shape`` and elements of ``size`` bytes plane by plane,
    if each of the ``blocks`` has a part of each plane and it is faster than a step for each block.
    Whether it is."""
    blocks = [block for block in blocks if all(axis.extent for axis in block.axes)]
    if len(blocks) < 2:
        return False
    for axes in range(len(shape) - 1, 0, -1):
        planes = prod(shape[:axes])
        if planes < _MANY:
            return False
        parts = [_part(shape, block.axes, axes) for block in blocks]
        found = [part for part in parts if part is not None]
        if len(found) == len(blocks):
            break
    else:
        return False
    plane = prod(shape[axes:])
    starts = planes * len(blocks) * _PART_NS / b.threads
    steps = (len(blocks) - 1) * _STEP_NS if b.threads > 1 else 0.0
    if plane * size < _LONG_PART * len(blocks) and starts > steps:
        return False
    words: list[Word] = [result, plane, long_run(planes * plane, size), len(blocks)]
    for block, part in zip(blocks, found, strict=True):
        words += [block.source, part.plane, part.rows.source, part.row.source]
        words += [block.place, part.rows.result, part.rows.extent, part.row.extent]
    moved = planes * plane * size
    rows = planes * sum(part.rows.extent for part in found)
    time = rows * ROW_NS + MACHINE.traffic(moved, moved)
    b.step(kernel(copy_planes_kernel, b.isa, size), words, planes, time)
    return True


def _part(shape: Sequence[int], axes: Sequence[Axis], outer: int) -> _Part | None:
    """The part that a block has of each plane, if the first ``outer`` axes are those of planes."""
    whole = all(axis.extent == n for axis, n in zip(axes[:outer], shape, strict=False))
    around, inside = (
        [Axis(*axis) for axis in merged(some)] for some in (axes[:outer], axes[outer:])
    )
    if not inside or inside[-1].result != 1:
        inside.append(Axis(1, 1, 1))
    if not whole or len(around) > 1 or len(inside) > 2:
        return None
    *rows, row = inside
    plane = around[0].source if around else 0
    return _Part(plane, rows[0] if rows else Axis(1, 0, 0), row)
