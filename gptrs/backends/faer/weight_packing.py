"""Packing of weights into panels, a block of rows at a time.

A weight that is loaded from a file is read, packed and dropped in blocks of `READ_BYTES`, so that
packing needs little memory beside the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gptrs.backends.faer.calls.base import PIECES
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.calls.packing import packing_kernel
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable
from gptrs.kernels.driver.threads import thread_count
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.weight_elements import weight_bytes
from gptrs.kernels.weight_compression.format import DEPTH_STEP

READ_BYTES = 2**20  # bytes of a weight at a time: the block stays in L2, in a reused buffer


class RowBlock(NamedTuple):
    """A block of rows of a weight as it is stored, and its position in the panels."""

    rows: Array
    panels: int
    depth: int
    """The number of panels that the rows are in, and the depth that they cover: in each direction
    all of it, or as much as the block has."""
    panel: int
    depth_start: int
    """The position of the block: the first panel, and the first row of the depth."""


class StoredWeight:
    """A weight as a matrix. Of a parameter, no more rows are loaded at once than needed."""

    def __init__(self, weight: Array | Parameter, form: Panels, isa: Isa) -> None:
        self.form, self.isa = form, isa
        self.shape = (form.depth, form.columns) if form.transposed else (form.columns, form.depth)
        self._weight: Array | Parameter = weight
        self._is_stack = False  # of matrices, whose rows are those of one
        if isinstance(weight, Parameter) and weight.ndim > 2 and not form.transposed:
            self._is_stack = weight.shape[-1] == form.depth
        if isinstance(weight, np.ndarray) or not (self._is_stack or weight.shape == self.shape):
            array = weight if isinstance(weight, np.ndarray) else weight.numpy()
            self._weight = array.reshape(self.shape)

    def rows(self, first: int, last: int) -> Array:
        """The rows [first:last], clipped to the matrix."""
        weight = self._weight
        if isinstance(weight, np.ndarray):
            some = weight[first:last]
        else:
            some = (weight.matrix_rows if self._is_stack else weight.rows)(first, last)
        return np.ascontiguousarray(some)

    def row_blocks(self) -> Iterator[RowBlock]:
        """All rows in blocks of about `READ_BYTES`."""
        count, length = self.shape
        step = DEPTH_STEP if self.form.transposed else self.isa.tile_columns
        some = max(1, READ_BYTES // max(1, weight_bytes(self.form.weights) * length))
        some = -(-some // step) * step
        for first in range(0, count, some):
            rows = self.rows(first, first + some)
            if self.form.transposed:
                yield RowBlock(rows, panel_count(self.isa, length), len(rows), 0, first)
            else:
                panels = panel_count(self.isa, len(rows))
                yield RowBlock(rows, panels, length, first // self.isa.tile_columns, 0)

    def pack(self, block: RowBlock, address: int, height: int) -> None:
        """Pack a block into panels of ``height`` rows, its first weight at ``address``."""
        count, ld = block.rows.shape
        last = height if self.form.transposed else self.isa.tile_columns
        words = [block.rows.ctypes.data, address, count, ld, ld, last]
        code = packing_kernel(self.isa, self.form.transposed, self.form.weights)
        run(code, words, block.panels)


def run(code: Kernel, words: Sequence[int], extent: int) -> None:
    """Run a kernel as a single step."""
    block, threads = np.array(words, np.int64), thread_count()
    chunks = max(1, min(extent, threads * PIECES if threads > 1 else 1))
    step = Step(code.address, block.ctypes.data, extent, chunks)
    current_driver().run(StepTable([step]), Status(), threads=threads)
