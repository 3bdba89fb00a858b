"""Copies of permuted arrays: fused loops that compute nothing.

`copy_of` finds them among regions. `bind` adds a step of `gptrs.kernels.rowwise.transpose` where
source and result are contiguous along different axes, and of `block_copy` where along the same.
Where rows of the result are very short and those of the source are not, `interleave` takes these in
turn, or `block_copy` puts the elements of each at places apart; very short rows of the source are
deinterleaved. Other sizes at which a tile or a vector does not fit keep the region's own loop.
"""

from __future__ import annotations

from math import prod

from gptrs.backends.faer.calls.base import Binder, kernel
from gptrs.backends.faer.calls.blocks import element_bytes, long_run
from gptrs.backends.regions import Region
from gptrs.backends.views import Load, View
from gptrs.ir.dims import same
from gptrs.ir.program import Value
from gptrs.kernels.rowwise.block_copy import ElementBytes, copy_kernel
from gptrs.kernels.rowwise.interleave import (
    MOST_PARTS,
    deinterleave_kernel,
    interleave_kernel,
    interleaved_lanes,
)
from gptrs.kernels.rowwise.transpose import PANEL, tile_side, transpose_kernel
from gptrs.lazy_dataclass import dataclass

_ELEMENT_NS = 0.5
_INTERLEAVED_NS = 0.2
_PIECE, _PIECES = 4096, 64  # elements of a piece of a long row, and the most pieces
_SHORT = 4  # elements of a row that are written at places apart, each from a row of the source
_CACHED = 8192  # bytes of such a row: so many elements apart stay in the first cache


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy from ``source``, contiguous along the axis ``inner``, to ``result``, contiguous along
    its last one."""

    source: Value
    result: Value
    read: View
    written: View
    inner: int

    @property
    def size(self) -> ElementBytes:
        """Bytes of an element."""
        return element_bytes(self.result)

    def bind(self, b: Binder) -> bool:
        """Add the step to ``b``; False where no kernel fits the sizes."""
        if self._in_turn(b):
            return True
        shape, last = [b.size(n) for n in self.read.shape], len(self.read.shape) - 1
        side = tile_side(b.isa, self.size)
        short = shape[last] <= _SHORT and side <= shape[self.inner] <= _CACHED // self.size
        short = short and self.inner != last
        if min(shape[self.inner], shape[last]) < side and not short:
            return False
        read, written = ([b.size(s) for s in v.strides] for v in (self.read, self.written))
        ends = b.address(self.source, self.read.offset), b.address(self.result, self.written.offset)
        row = last - 1 if self.inner == last else self.inner
        outer = [axis for axis in range(last) if axis != row]
        axes = [word for axis in outer for word in (shape[axis], read[axis], written[axis])]
        extent = prod(shape[axis] for axis in outer)
        long = long_run(prod(shape), self.size)
        if short:  # each row of the source to places apart in the result
            words = [shape[row], 1, written[row], shape[last], read[last], 1, long]
            code, extent = kernel(copy_kernel, b.isa, self.size), extent * shape[last]
        elif self.inner == last:
            words = [shape[last], 1, 1, shape[row], read[row], written[row], long]
            code, extent = kernel(copy_kernel, b.isa, self.size), extent * shape[row]
        else:
            words = [shape[row], shape[last], read[last], written[row]]
            code, extent = (
                kernel(transpose_kernel, b.isa, self.size),
                extent * -(-shape[row] // PANEL),
            )
        b.step(code, [*ends, *words, len(outer), *axes], extent, prod(shape) * _ELEMENT_NS)
        return True

    def _in_turn(self, b: Binder) -> bool:
        """Add a step that interleaves the rows of the source, if those of the result are as short
        and follow each other, or deinterleaves short rows of the source that do."""
        shape, last = [b.size(n) for n in self.read.shape], len(self.read.shape) - 1
        read, written = ([b.size(s) for s in v.strides] for v in (self.read, self.written))
        if self.inner == last or self.size > 8:
            return False

        def fits(across: int, along: int, whole: list[int]) -> bool:
            parts, least = shape[across], interleaved_lanes(b.isa, self.size)
            return 2 <= parts <= MOST_PARTS and whole[along] == parts and shape[along] >= least

        if fits(last, self.inner, written):
            builder = interleave_kernel
            parts, count, apart = shape[last], shape[self.inner], read[last]
        elif fits(self.inner, last, read):
            builder = deinterleave_kernel
            parts, count, apart = shape[self.inner], shape[last], written[self.inner]
        else:
            return False
        ends = b.address(self.source, self.read.offset), b.address(self.result, self.written.offset)
        outer = [axis for axis in range(last) if axis != self.inner]
        extent = prod(shape[axis] for axis in outer)
        pieces = range(min(count // _PIECE, _PIECES), 1, -1)
        split = next((n for n in pieces if count % n == 0), 1) if extent < _PIECES else 1
        if split > 1 or not outer:
            count //= split
            steps = [count, count * parts]
            rows = [split, *(steps if builder is interleave_kernel else reversed(steps))]
        else:
            row = outer.pop(max(range(len(outer)), key=lambda n: shape[outer[n]]))
            rows = [shape[row], read[row], written[row]]
        axes = [word for axis in outer for word in (shape[axis], read[axis], written[axis])]
        words = [*ends, count, apart, *rows, len(outer), *axes]
        code = kernel(builder, b.isa, self.size, parts)
        b.step(code, words, extent * split, prod(shape) * _INTERLEAVED_NS)
        return True


def copy_of(region: Region) -> Copy | None:
    """What the region copies, if it is a copy of elements that are contiguous along some axis."""
    part = region.expression
    if not isinstance(part, Load) or part.dtype is not region.result.type.dtype:
        return None
    read, written = part.view, region.output
    if len(read.shape) < 2 or not same(written.strides[-1], 1) or part.dtype.bits < 8:
        return None
    contiguous = [axis for axis, stride in enumerate(read.strides) if same(stride, 1)]
    return Copy(part.value, region.result, read, written, contiguous[-1]) if contiguous else None
