"""Packed forms of weights, made once for each parameter and dropped with it."""

from __future__ import annotations

import weakref
from threading import RLock

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
    packed, shape, width = _room(form, isa), (form.columns, form.depth), isa.tile_columns
    if isinstance(weight, np.ndarray):
        _pack_rows(weight, form, isa, packed.ctypes.data)
    elif form.transposed or weight.shape != shape:  # a panel has elements of all rows
        _pack_rows(weight.numpy(), form, isa, packed.ctypes.data)
    else:
        row = max(1, form.depth * weight.dtype.numpy.itemsize)
        some = max(1, _READ_BYTES // (row * width)) * width
        for first in range(0, form.columns, some):
            address = packed.ctypes.data + first * row
            _pack_rows(weight.rows(first, first + some), form, isa, address)
    return packed


def _room(form: Panels, isa: Isa) -> Array:
    size = panel_bytes(isa, form.weights, form.depth, form.columns)
    held = np.empty(size + _LINE, np.uint8)
    return held[-held.ctypes.data % _LINE :][:size]


def _pack_rows(array: Array, form: Panels, isa: Isa, address: int) -> None:
    """Write panels to ``address``: of all columns, or of as many as ``array`` has rows."""
    columns = form.columns if form.transposed else array.size // max(1, form.depth)
    shape = (form.depth, columns) if form.transposed else (columns, form.depth)
    matrix = np.ascontiguousarray(array).reshape(shape)
    words = np.array([matrix.ctypes.data, address, *shape, shape[1], isa.tile_columns], np.int64)
    threads, extent = thread_count(), panel_count(isa, columns)
    chunks = max(1, min(extent, threads * PIECES if threads > 1 else 1))
    kernel = packing_kernel(isa, form.transposed, form.weights)
    step = Step(kernel.address, words.ctypes.data, extent, chunks)
    current_driver().run(StepTable([step]), Status(), threads=threads)


class PackedParameters:
    """The panels of parameters by identity. Their sources are released once they are packed."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._packed: dict[tuple[int, Panels, str], tuple[weakref.ref[Parameter], Array]] = {}

    def get(self, parameter: Parameter, form: Panels, isa: Isa) -> Array:
        """The panels of ``parameter``, packed when they are first asked for."""
        key = id(parameter), form, isa.name
        with self._lock:
            found = self._packed.get(key)
            if found is not None and found[0]() is parameter:
                return found[1]
            packed = pack(parameter, form, isa)
            parameter.release()

            def drop(_: object) -> None:
                self._packed.pop(key, None)

            self._packed[key] = weakref.ref(parameter, drop), packed
            return packed
