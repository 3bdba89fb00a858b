"""Copies of permuted arrays: fused loops that compute nothing and read another axis in order than
they write.

`transposition_of` finds them among regions, `bind` adds a step of
`gptrs.kernels.rowwise.transpose` where both sides have a tile at the sizes of a call. Other sizes
keep the region's own loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

from gptrs.backends.faer.calls.base import Binder, kernel
from gptrs.backends.regions import Region
from gptrs.backends.views import Load, View
from gptrs.ir.dims import same
from gptrs.ir.program import Value
from gptrs.kernels.rowwise.block_copy import ElementBytes
from gptrs.kernels.rowwise.transpose import PANEL, tile_side, transpose_kernel

_ELEMENT_NS = 0.5


@dataclass(frozen=True, eq=False)
class Transposition:
    """A copy of ``source``, which is contiguous along the axis ``rows``, to ``result``, which is so
    along its last axis."""

    source: Value
    result: Value
    read: View
    written: View
    rows: int

    @property
    def size(self) -> ElementBytes:
        """Bytes of an element."""
        return cast("ElementBytes", self.result.type.dtype.numpy.itemsize)

    def bind(self, b: Binder) -> bool:
        """Add the step to ``b``; False where a side is shorter than a tile."""
        shape, columns = [b.size(n) for n in self.read.shape], len(self.read.shape) - 1
        side = tile_side(b.isa, self.size)
        if min(shape[self.rows], shape[columns]) < side:
            return False
        read, written = ([b.size(s) for s in v.strides] for v in (self.read, self.written))
        outer = [axis for axis in range(columns) if axis != self.rows]
        words = [
            b.address(self.source, self.read.offset),
            b.address(self.result, self.written.offset),
            *(shape[self.rows], shape[columns], read[columns], written[self.rows], len(outer)),
            *(word for axis in outer for word in (shape[axis], read[axis], written[axis])),
        ]
        extent = prod(shape[axis] for axis in outer) * -(-shape[self.rows] // PANEL)
        b.step(kernel(transpose_kernel, b.isa, self.size), words, extent, prod(shape) * _ELEMENT_NS)
        return True


def transposition_of(region: Region) -> Transposition | None:
    """What the region copies, if it is a copy that reads another axis in order than it writes."""
    part = region.expression
    if not isinstance(part, Load) or part.dtype is not region.result.type.dtype:
        return None
    read, written = part.view, region.output
    if len(read.shape) < 2 or not same(written.strides[-1], 1) or same(read.strides[-1], 1):
        return None
    in_order = [axis for axis, stride in enumerate(read.strides) if same(stride, 1)]
    if not in_order or part.dtype.bits < 8:
        return None
    return Transposition(part.value, region.result, read, written, in_order[0])
