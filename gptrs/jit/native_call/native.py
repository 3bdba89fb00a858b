"""The native function as Python calls it, made on first use.

`native_call(records, args, kwargs)` gives the result of the call, or ``NotImplemented`` when no
record matches. It is a function of C with its own machine code: a call through `ctypes` would take
as long as all that it does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile import compile_functions
from gptrs.kernels.native_call.emit import C_API
from gptrs.kernels.native_call.launch import build_call_ir
from gptrs.kernels.native_call.layout import supported

_FASTCALL = 0x0080  # METH_FASTCALL: an array of the arguments and their number
NativeCall = Callable[[list[Any], tuple[Any, ...], dict[str, Any]], Any]


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def no_native_call(_: list[Any], __: tuple[Any, ...], ___: dict[str, Any]) -> Any:
    """What stands for the function before there are records."""
    return NotImplemented


_definitions: list[_MethodDef] = []  # must outlive their functions


@cache
def native_call() -> NativeCall | None:
    """The function; None where it does not work."""
    if not supported():
        return None
    try:
        address = compile_functions(build_call_ir, ("call",), tuple(C_API))["call"]
    except KernelError:  # a process that does not export Python's functions
        return None
    definition = _MethodDef(b"native_call", address, _FASTCALL, None)
    _definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return make(ctypes.addressof(definition), NotImplemented, "gptrs")
