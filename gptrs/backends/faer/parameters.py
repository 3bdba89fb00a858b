"""Packed forms of weights, made once for each parameter and dropped with it."""

from __future__ import annotations

import weakref
from threading import Lock

import numpy as np

from gptrs.backends.faer.calls.base import PIECES, Panels
from gptrs.backends.faer.calls.product import packing_kernel, panel_bytes
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.driver import Status, Step, StepTable, current_driver
from gptrs.kernels.isa import Isa
from gptrs.kernels.packing import panel_count
from gptrs.kernels.threads import thread_count

_LINE = 64
_READ_BYTES = 4 * 2**20  # of a weight at a time, in memory that serves again


def pack(weight: Array | Parameter, form: Panels, isa: Isa) -> Array:
    """A weight as bytes in panels. Of a parameter, no more is loaded than has to be at once."""
    packed, shape, width = _room(form, isa), _as_stored(form), isa.tile_columns
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


def _room(form: Panels, isa: Isa) -> Array:
    size = panel_bytes(isa, form.weights, form.depth, form.columns)
    held = np.empty(size + _LINE, np.uint8)
    return held[-held.ctypes.data % _LINE :][:size]


def _pack_rows(matrix: Array, form: Panels, isa: Isa, address: int) -> None:
    """Write rows of a weight as it is stored to their place in the panels, at ``address``."""
    matrix = np.ascontiguousarray(matrix)
    rows, ld = matrix.shape
    last = form.depth if form.transposed else isa.tile_columns
    words = np.array([matrix.ctypes.data, address, rows, ld, ld, last], np.int64)
    threads = thread_count()
    extent = panel_count(isa, form.columns if form.transposed else rows)
    chunks = max(1, min(extent, threads * PIECES if threads > 1 else 1))
    kernel = packing_kernel(isa, form.transposed, form.weights)
    step = Step(kernel.address, words.ctypes.data, extent, chunks)
    current_driver().run(StepTable([step]), Status(), threads=threads)


class _Packed:
    """The panels of one parameter, when there are any yet."""

    def __init__(self, parameter: weakref.ref[Parameter]) -> None:
        self.parameter = parameter
        self.lock = Lock()
        self.panels: Array | None = None


class PackedParameters:
    """The panels of parameters by identity. Their sources are released once they are packed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._packed: dict[tuple[int, Panels, str], _Packed] = {}

    def get(self, parameter: Parameter, form: Panels, isa: Isa) -> Array:
        """The panels of ``parameter``, packed when they are first asked for; threads may pack
        several parameters at the same time."""
        key = id(parameter), form, isa.name

        def drop(_: object) -> None:
            self._packed.pop(key, None)

        with self._lock:
            entry = self._packed.get(key)
            if entry is None or entry.parameter() is not parameter:
                entry = self._packed[key] = _Packed(weakref.ref(parameter, drop))
        with entry.lock:
            if entry.panels is None:
                entry.panels = pack(parameter, form, isa)
                parameter.release()
            return entry.panels
