"""Packed forms of weights: panels of matrices (perhaps compressed), transformed taps of Winograd.

`form_of` is called while a run loads its parameters; the parameter cache keeps the result.
"""

from __future__ import annotations

import numpy as np

from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.forms import Form, WinogradPanels
from gptrs.backends.faer.calls.packing import panel_bytes
from gptrs.backends.faer.slabs import Slabs
from gptrs.backends.faer.weight_compression import compress_weight, compressed_bytes, compresses
from gptrs.backends.faer.weight_packing import StoredWeight, run
from gptrs.backends.parameter_cache import ParameterCache
from gptrs.backends.weight_residency import Lease
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.winograd import planes, winograd_filter_kernel
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.weight_elements import weight_bytes
from gptrs.kernels.weight_compression.format import HEADER_BYTES

_slabs = Slabs()


def pack(weight: Array | Parameter, form: Form, isa: Isa, *, keep: bool = True) -> Array:
    """A weight as bytes in panels. Of a parameter, no more rows are loaded at once than needed.

    ``keep`` is False for the weight of a single run, whose memory the next one is to get again: for
    that neither compression nor a large page, which the system clears first, pays.
    """
    if isinstance(form, WinogradPanels):
        array = weight if isinstance(weight, np.ndarray) else weight.numpy()
        return _transformed(np.ascontiguousarray(array), form, isa)
    stored = StoredWeight(weight, form, isa)
    if keep and compresses(form, isa):
        compressed = compress_weight(stored, _slabs.allocate)
        if compressed is not None:
            return compressed
    header = HEADER_BYTES if form.compressed else 0
    allocate = _slabs.allocate if keep else _allocate
    packed = allocate(header + panel_bytes(isa, form.weights, form.depth, form.columns))
    if form.compressed:
        packed[: 2 * 8].view(np.int64)[:] = 0, header
    row = isa.tile_columns * weight_bytes(form.weights)
    for block in stored.row_blocks():
        place = header + (block.panel * form.depth + block.depth_start) * row
        stored.pack(block, packed.ctypes.data + place, form.depth)
    return packed


def _allocate(size: int) -> Array:
    """Uninitialised bytes, aligned to a cache line."""
    block = np.empty(size + 63, np.uint8)
    first = -block.ctypes.data % 64
    return block[first : first + size]


def _transformed(taps: Array, form: WinogradPanels, isa: Isa) -> Array:
    packed = _slabs.allocate(form_bytes(form, isa))
    words = [taps.ctypes.data, packed.ctypes.data, form.channels, form.outputs]
    run(kernel(winograd_filter_kernel, isa, form.tile), words, panel_count(isa, form.outputs))
    return packed


def form_of(
    cache: ParameterCache, lease: Lease, parameter: Parameter, form: Form | None, isa: Isa
) -> Array:
    """A parameter in the given form (None: as it is stored), made when it is first needed.

    The elements that a form was made of are released, if they can be loaded again.
    """
    if form is None:
        if not parameter.can_reload:  # there is nothing to give back
            return parameter.numpy()
        return cache.get(lease, parameter, None, parameter.bytes, parameter.numpy)

    def make() -> Array:
        packed = pack(parameter, form, isa)
        parameter.release()
        return packed

    return cache.get(lease, parameter, (form, isa.name), form_bytes(form, isa), make)


def form_bytes(form: Form, isa: Isa) -> int:
    """The bytes of a weight in panels, of which the last is padded to full width.

    A weight that compression does not pay for takes more.
    """
    if isinstance(form, WinogradPanels):
        columns = panel_count(isa, form.outputs) * isa.tile_columns
        return 4 * planes(form.tile) * form.channels * columns
    if compresses(form, isa):
        return compressed_bytes(form, isa)
    return panel_bytes(isa, form.weights, form.depth, form.columns)
