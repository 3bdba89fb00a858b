"""Packed forms of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptrs.backends.faer.calls.base import PIECES, Form, Panels, WinogradPanels, kernel
from gptrs.backends.faer.calls.product import packing_kernel, panel_bytes
from gptrs.backends.faer.slabs import Slabs
from gptrs.backends.leases import Lease
from gptrs.backends.parameter_cache import ParameterCache
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.compile import Kernel
from gptrs.kernels.driver import Status, Step, StepTable, current_driver
from gptrs.kernels.isa import Isa
from gptrs.kernels.packing import panel_count
from gptrs.kernels.threads import thread_count
from gptrs.kernels.winograd import planes, winograd_taps_kernel

_READ_BYTES = 4 * 2**20  # of a weight at a time, in memory that serves again
_slabs = Slabs()


def pack(weight: Array | Parameter, form: Form, isa: Isa) -> Array:
    """A weight as bytes in panels. Of a parameter, no more is loaded than has to be at once."""
    if isinstance(form, WinogradPanels):
        array = weight if isinstance(weight, np.ndarray) else weight.numpy()
        return _transformed(np.ascontiguousarray(array), form, isa)
    packed, shape, width = _slabs.take(form_bytes(form, isa)), _as_stored(form), isa.tile_columns
    address: int = packed.ctypes.data
    if isinstance(weight, np.ndarray) or weight.shape != shape:
        array = weight if isinstance(weight, np.ndarray) else weight.numpy()
        _pack_rows(array.reshape(shape), form, isa, address)
        return packed
    item = weight.dtype.numpy.itemsize
    some = max(1, _READ_BYTES // max(1, item * shape[1]))
    if form.transposed:
        step = item * width  # from a row to the next one within a panel
    else:
        step, some = item * shape[1], -(-some // width) * width
    for first in range(0, shape[0], some):
        _pack_rows(weight.rows(first, first + some), form, isa, address + first * step)
    return packed


def _as_stored(form: Panels) -> tuple[int, int]:
    return (form.depth, form.columns) if form.transposed else (form.columns, form.depth)


def _pack_rows(matrix: Array, form: Panels, isa: Isa, address: int) -> None:
    """Write rows of a weight as it is stored to their place in the panels, at ``address``."""
    matrix = np.ascontiguousarray(matrix)
    rows, ld = matrix.shape
    last = form.depth if form.transposed else isa.tile_columns
    extent = panel_count(isa, form.columns if form.transposed else rows)
    words = [matrix.ctypes.data, address, rows, ld, ld, last]
    _run(packing_kernel(isa, form.transposed, form.weights), words, extent)


def _transformed(taps: Array, form: WinogradPanels, isa: Isa) -> Array:
    packed = _slabs.take(form_bytes(form, isa))
    words = [taps.ctypes.data, packed.ctypes.data, form.channels, form.outputs]
    _run(kernel(winograd_taps_kernel, isa, form.tile), words, panel_count(isa, form.outputs))
    return packed


def _run(code: Kernel, words: Sequence[int], extent: int) -> None:
    """One step by itself."""
    block, threads = np.array(words, np.int64), thread_count()
    chunks = max(1, min(extent, threads * PIECES if threads > 1 else 1))
    step = Step(code.address, block.ctypes.data, extent, chunks)
    current_driver().run(StepTable([step]), Status(), threads=threads)


def form_of(
    cache: ParameterCache, lease: Lease, parameter: Parameter, form: Form | None, isa: Isa
) -> Array:
    """A parameter in the form asked for (None: as it is), made when it is first needed.

    The elements that a form was made of are released, if they can be read again.
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
    """The bytes of a weight in panels, the last of which may be wider than what is left."""
    if isinstance(form, WinogradPanels):
        columns = panel_count(isa, form.outputs) * isa.tile_columns
        return 4 * planes(form.tile) * form.channels * columns
    return panel_bytes(isa, form.weights, form.depth, form.columns)
