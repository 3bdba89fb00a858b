"""Compression of packed weights (format: `gptrs.kernels.weight_compression.format`).

A codebook is chosen from a sample of the weight's head bytes (sign and most of the exponent). Each
block of rows is packed as it is read, then encoded; weights whose head byte is not in the codebook
are listed as exceptions. A weight with too many exceptions stays uncompressed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np

from gptrs import settings
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.forms import Panels
from gptrs.backends.faer.weight_packing import RowBlock, StoredWeight, run
from gptrs.block_memory import empty
from gptrs.ir.types import Array
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.weight_elements import weight_bytes
from gptrs.kernels.weight_compression.encoder import compress_kernel
from gptrs.kernels.weight_compression.format import (
    END,
    ENTRY_BYTES,
    HEADER_BYTES,
    TABLE,
    Layout,
    block_bytes,
    block_rows,
)

_SAMPLE = 2**14  # weights that are sampled to choose a codebook
_RARE = 512
"""At most one weight in so many may be an exception: more take more time than compression saves."""


class _Exceptions(NamedTuple):
    panels: Array
    places: Array
    values: Array  # f32, as their bits


def compresses(form: Panels, isa: Isa) -> bool:
    """Whether weights of this form are compressed (if it pays): by form, CPU and setting."""
    return form.compressed and bool(isa.lookup) and settings.compressed_weights()


def compressed_bytes(form: Panels, isa: Isa) -> int:
    """The size of a compressed weight with the largest allowed number of exceptions."""
    layout = Layout.of(isa, form.weights, form.depth, form.columns)
    return layout.lists + ENTRY_BYTES * (panel_count(isa, form.columns) + _max_exceptions(form))


def _max_exceptions(form: Panels) -> int:
    return form.depth * form.columns // _RARE


def compress_weight(stored: StoredWeight, take: Callable[[int], Array]) -> Array | None:
    """A compressed weight in memory from ``take``; None where compression does not pay."""
    form, isa, row_blocks = stored.form, stored.isa, stored.row_blocks()
    first = next(row_blocks)
    table = _codebook(stored, first.rows)
    if table is None:
        return None
    layout = Layout.of(isa, form.weights, form.depth, form.columns)
    found: list[_Exceptions] = []
    result, count = take(compressed_bytes(form, isa)), 0
    kind = np.dtype(np.uint32 if form.weights == "f32" else np.uint16)
    plain = empty((first.panels * first.depth * isa.tile_columns,), kind)
    for block in chain([first], row_blocks):
        found.append(_encode(stored, block, table, plain, result[layout.panels :]))
        count += len(found[-1].places)
        if count > _max_exceptions(form):
            return None
    lists = _exception_lists(found, panel_count(isa, form.columns))
    result[:TABLE].view(np.int64)[:] = 1, layout.panels
    result[TABLE : 2 * TABLE] = table
    begins = result[HEADER_BYTES : layout.panels].view(np.int64)
    ends = np.flatnonzero(lists[:, 0] == END)
    begins[0], begins[1 : len(ends)] = 0, ends[:-1] + 1
    begins *= ENTRY_BYTES
    begins += layout.lists
    result[layout.lists :][: lists.nbytes] = lists.view(np.uint8).reshape(-1)
    return result


def _head_bytes(weights: Array) -> Array:
    """The most significant byte of each number, in an array of the same shape."""
    size = weights.dtype.itemsize
    return weights.view(np.uint8)[..., size - 1 :: size]


def _codebook(stored: StoredWeight, rows: Array) -> Array | None:
    """The codebook: the most frequent head bytes; None if others are too frequent in a sample of
    ``rows``."""
    width = stored.isa.tile_columns
    heads = _head_bytes(rows[:: -(-rows.size // _SAMPLE)]).reshape(-1)
    seen = np.bincount(heads, minlength=256)
    # The columns that the last panel has too many are zeros.
    columns = stored.form.columns
    seen[0] += seen.sum() * (panel_count(stored.isa, columns) * width - columns) // columns
    table = np.argsort(-seen, kind="stable")[:TABLE]
    others = seen.sum() - seen[table].sum()
    return table.astype(np.uint8) if others * _RARE <= seen.sum() else None


def _encode(
    stored: StoredWeight, block: RowBlock, table: Array, memory: Array, panels: Array
) -> _Exceptions:
    """Encode a block to its place in ``panels``. Returns its exceptions.

    ``memory`` is scratch memory for its uncompressed panels.
    """
    form, isa = stored.form, stored.isa
    width, rows = isa.tile_columns, block_rows(isa)
    size = block_bytes(isa, form.weights)
    shape = block.panels, block.depth // rows, rows * width
    plain = memory[: math.prod(shape)].reshape(shape)
    stored.pack(block, plain.ctypes.data, block.depth)
    flags = np.empty(plain.shape[:2], np.bool_)
    step = form.depth // rows * size
    begin = panels.ctypes.data + block.panel * step + block.depth_start // rows * size
    words = [plain.ctypes.data, begin, flags.ctypes.data, table.ctypes.data, block.depth, step]
    run(kernel(compress_kernel, isa, form.weights), words, block.panels)
    panel, index = np.divmod(np.flatnonzero(flags), flags.shape[1])
    some = plain[panel, index]
    is_in_codebook = np.zeros(256, np.bool_)
    is_in_codebook[table] = True
    number, place = np.nonzero(~is_in_codebook[_head_bytes(some)])
    values = some[number, place].astype(np.uint32) << (32 - 8 * weight_bytes(form.weights))
    place += block.depth_start * width + index[number] * rows * width
    return _Exceptions(panel[number] + block.panel, place, values)


def _exception_lists(found: list[_Exceptions], panels: int) -> Array:
    """The exception lists of all panels, concatenated: [entry, (place, value)]."""
    panel, place, value = (np.concatenate(part) for part in zip(*found, strict=True))
    ends = np.full(panels, END, np.uint32)
    panel = np.concatenate([panel, np.arange(panels)])
    place, value = np.concatenate([place, ends]), np.concatenate([value, ends])
    order = np.lexsort((place, panel))
    return np.stack([place[order], value[order]], axis=1).astype(np.uint32)
