"""The compiled inner loops of NumPy's generalised universal functions.

A ufunc holds, for each combination of dtypes, a C function

    void loop(char **arrays, npy_intp *dimensions, npy_intp *steps, void *data)

    dimensions:  | batch | extent of each core dimension |
    steps:       | bytes to the next matrix, per array | strides of the core axes, array by array |

that runs without the GIL and takes any strides. `numpy.linalg` has such loops over LAPACK, its fft
module over pocketfft. A loop of LAPACK that fails fills its results with NaN and raises the
floating-point flag "invalid", which it leaves as it was otherwise.
Source: numpy/ufuncobject.h (`PyUFuncObject`, part of NumPy's C interface), numpy/linalg
(umath_linalg).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from gptrs.locks import late_import

_FIRST = object.__basicsize__
"""Where the fields of a ufunc begin, behind the head of each Python object."""


class _Fields(ctypes.Structure):
    """The fields of a `PyUFuncObject` up to the number of its loops."""

    _fields_ = [
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    ]


class InnerLoop(NamedTuple):
    """The addresses of a loop and of its data, and the core dimensions of each array by name."""

    address: int
    data: int
    signature: tuple[tuple[str, ...], ...]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the core dimensions, in the order of their extents."""
        return tuple(dict.fromkeys(name for names in self.signature for name in names))


@cache
def inner_loop(module: str, name: str, types: str) -> InnerLoop | None:
    """The loop of the ufunc ``name`` of a module for ``types`` (characters of dtypes, inputs before
    ``->``); None where this NumPy has none."""
    try:
        ufunc: Any = getattr(late_import(module), name)
        number = ufunc.types.index(types)
    except (ImportError, AttributeError, ValueError):
        return None
    fields = _Fields.from_address(id(ufunc) + _FIRST)
    if (fields.nin, fields.nout, fields.ntypes) != (ufunc.nin, ufunc.nout, ufunc.ntypes):
        return None  # not the layout that is described above
    address = fields.functions[number]
    if not address:
        return None
    data = fields.data[number] if fields.data else None
    return InnerLoop(address, data or 0, _parsed(ufunc.signature))


def _parsed(signature: str) -> tuple[tuple[str, ...], ...]:
    """``(m,n),()->(p)`` as names by array."""
    groups = signature.replace(" ", "").replace("->", ",")[1:-1].split("),(")
    return tuple(tuple(filter(None, group.split(","))) for group in groups)


@cache
def flag_functions() -> tuple[int, int]:
    """The addresses of C's ``feclearexcept`` and ``fetestexcept``."""
    library = ctypes.CDLL(None)
    pair = library.feclearexcept, library.fetestexcept
    return tuple(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in pair)  # pyright: ignore[reportReturnType]
