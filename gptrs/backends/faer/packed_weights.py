"""Packed forms of weights: panels of matrices (perhaps compressed), transformed taps of Winograd.

`form_of` is called while a run loads its parameters; the parameter cache keeps the result.
"""

from __future__ import annotations

import numpy as np

from gptrs.backends.faer.calls.base import Form, WinogradPanels, kernel
from gptrs.backends.faer.calls.product import panel_bytes
from gptrs.backends.faer.slabs import Slabs
from gptrs.backends.faer.weight_compression import coded, coded_bytes, codes
from gptrs.backends.faer.weight_packing import Stored, run
from gptrs.backends.parameter_cache import ParameterCache
from gptrs.backends.weight_residency import Lease
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.winograd import planes, winograd_taps_kernel
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.weight_elements import weight_bytes
from gptrs.kernels.weight_compression.format import HEADER_BYTES

_slabs = Slabs()


def pack(weight: Array | Parameter, form: Form, isa: Isa, *, code: bool = True) -> Array:
    """A weight as bytes in panels. Of a parameter, no more rows are loaded at once than needed.

    ``code`` is False for a weight that is read once, where compression does not pay.
    """
    if isinstance(form, WinogradPanels):
        array = weight if isinstance(weight, np.ndarray) else weight.numpy()
        return _transformed(np.ascontiguousarray(array), form, isa)
    stored = Stored(weight, form, isa)
    if code and codes(form, isa) and (found := coded(stored, _slabs.take)) is not None:
        return found
    header = HEADER_BYTES if form.coded else 0
    packed = _slabs.take(header + panel_bytes(isa, form.weights, form.depth, form.columns))
    if form.coded:
        packed[: 2 * 8].view(np.int64)[:] = 0, header
    row = isa.tile_columns * weight_bytes(form.weights)
    for piece in stored.pieces():
        place = header + (piece.panel * form.depth + piece.place) * row
        stored.pack(piece, packed.ctypes.data + place, form.depth)
    return packed


def _transformed(taps: Array, form: WinogradPanels, isa: Isa) -> Array:
    packed = _slabs.take(form_bytes(form, isa))
    words = [taps.ctypes.data, packed.ctypes.data, form.channels, form.outputs]
    run(kernel(winograd_taps_kernel, isa, form.tile), words, panel_count(isa, form.outputs))
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
    if codes(form, isa):
        return coded_bytes(form, isa)
    return panel_bytes(isa, form.weights, form.depth, form.columns)
