"""Python source of a kernel to LLVM IR, with Numba; imported on a cache miss only.

A kernel's source is a Python function, ``name(x: floats, n: int64, first, last)``: the arrays that
its loop reads and writes, other words, and the range of the loop. The parameters before ``first``
are the words of the argument block in order, of the types that they are annotated with; the kernel
is a function ``void(intp arguments, intp first, intp last)`` that loads them and calls it. A
function ``name(arguments, first, last)`` without annotations is a kernel as it is. Functions of
numbers that it calls may stand before it, and ``@njit`` above each. They may use Python's
arithmetic, ``range``, ``min``, ``max``, ``abs``, ``math``, NumPy's scalar types and the names of
`gptrs.kernels.compiler.intrinsics`. A pointer ``out``, ``out1`` … is to memory that no other points
to.

Integer arithmetic gives 64 bits for operands of any width, and a float64 where uint64 meets a
signed integer; a constant such as ``2.0`` is float64 and makes float32 arithmetic wider unless
converted.
Code that may raise is refused, and that includes ``assert``, a ``range`` whose step is not a
constant, and powers with an integer exponent that is not (a float exponent never raises). Division
by zero does not raise: its result is an infinity, a NaN, or the integer 0.

`lower` returns the module before Numba's own optimisation; `gptrs.kernels.compiler.codegen`
optimises it for the target.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportMissingTypeArgument=false, reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from numba import cfunc, njit, types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.interleaving import interleaved
from gptrs.kernels.compiler.intrinsics import ELEMENTS, NAMES

# By the identity of the annotation.
_TYPES: dict[int, Any] = {
    id(NAMES["int64"]): types.int64,
    id(NAMES["float64"]): types.float64,
    **{id(NAMES[name]): types.CPointer(kind) for name, kind in ELEMENTS.items()},
}
_LLVM = {types.int64: "i64", types.float64: "double"}

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,  # each operation rounds once, as in NumPy
    "boundscheck": False,
}


def _function(source: str, name: str) -> FunctionType:
    namespace: dict[str, Any] = {**NAMES, "njit": njit}
    try:
        exec(compile(source, f"<kernel {name}>", "exec", dont_inherit=True), namespace)
    except Exception as error:
        raise KernelError(f"the source cannot be read: {error}") from error
    found = namespace.get(name)
    function = getattr(found, "py_func", found)
    if not isinstance(function, FunctionType) or function.__code__.co_argcount < 3:
        raise KernelError(f"the source defines no function {name}(arguments, first, last)")
    for other in [*namespace.values()]:
        if isinstance(other, FunctionType) and other is not function:
            namespace[other.__name__] = njit(**_OPTIONS, **_pipeline())(other)
    return function


def _pipeline() -> dict[str, Any]:
    """Our compilation pipeline as an option of Numba; none where Numba has other classes."""
    try:
        from gptrs.kernels.compiler.named_lowering import NamedCompiler  # not of a public interface
    except (AttributeError, ImportError, TypeError):
        return {}
    return {"pipeline_class": NamedCompiler}


def _parameters(function: FunctionType) -> dict[str, Any]:
    """The types of the parameters before ``first``; none where those are the kernel's own."""
    code, kinds = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount - 2]
    if names == ("arguments",) and not kinds:
        return {}
    found = {name: _TYPES.get(id(kinds.get(name))) for name in names}
    if not all(found.values()):
        raise KernelError(
            f"{function.__name__} says no type of {[n for n in names if not found[n]]}"
        )
    return found


def lower(source: str, name: str) -> tuple[Any, str]:
    """The LLVM module of a kernel's source, and the name of its entry.

    Raises `KernelError` when Numba cannot compile the source.
    """
    function = _function(source, name)
    parameters = _parameters(function)
    signature = types.void(*(parameters.values() or [types.intp]), types.intp, types.intp)
    with global_compiler_lock:
        try:
            try:
                module, entry = _early_module(function, signature)
            except (AttributeError, ImportError, TypeError):  # it builds on what is not public
                module, entry = _final_module(function, signature)
        except Exception as error:  # Numba's own errors, and whatever a defect of it raises
            raise KernelError(f"Numba cannot compile this: {error}\n{source}") from error
        entry = _rename(module, entry, name)
        return module, _add_entry(module, entry, parameters) if parameters else entry


_ENTRY = "kernel.entry"  # like no function that a kernel may call
_COUNTER = re.compile(r"B\d+v\d+")
# No address of an element wraps around, and no part of its sum does, as arrays are smaller than the
# space below and above them. LLVM has to know that to read strided elements in whole vectors.
_POINTER = re.compile(r"getelementptr (?!inbounds|nusw|nuw)")


def _rename(module: Any, entry: str, name: str) -> str:
    """Take the counter of this process's compilations out of names, so that equal sources give
    equal code and equal text, and call the function of kernel ``name`` like it. The new name of
    ``entry``."""
    own, new = entry.removeprefix("cfunc."), entry
    for value in (*module.functions, *module.global_variables):
        old = value.name
        if value.is_declaration or not _COUNTER.search(old):
            continue
        value.name = f"loop.{name}" if old == own else _COUNTER.sub("", old)
        for argument in value.arguments if value.is_function else ():
            argument.name = argument.name.removeprefix("arg.")
        new = value.name if old == entry else new
    return new


def _add_entry(module: Any, loop: str, parameters: Mapping[str, Any]) -> str:
    """Add the kernel that loads the words of its argument block and calls ``loop``; its name.

    Its own names begin with a dot, as no parameter's can.
    """
    result = str(module.get_function(loop).global_value_type).partition(" (")[0]
    kinds = [_LLVM.get(kind, "ptr") for kind in parameters.values()]
    loads = [
        f'  %"{name}.word" = getelementptr i64, ptr %.block, i64 {place}\n'
        f'  %"{name}" = load {kind}, ptr %"{name}.word", align 8'
        for place, (name, kind) in enumerate(zip(parameters, kinds, strict=True))
    ]
    given = [f'{kind} %"{name}"' for name, kind in zip(parameters, kinds, strict=True)]
    text = [
        f'declare {result} @"{loop}"({", ".join(kinds)}, i64, i64)',
        f"define void @{_ENTRY}(i64 %.arguments, i64 %.first, i64 %.last) {{",
        "  %.block = inttoptr i64 %.arguments to ptr",
        *loads,
        f'  call {result} @"{loop}"({", ".join(given)}, i64 %.first, i64 %.last)',
        "  ret void",
        "}",
    ]
    module.link_in(llvm.parse_assembly("\n".join(text)))
    return _ENTRY


def _early_module(function: FunctionType, signature: Any) -> tuple[Any, str]:
    """The module before Numba vectorises it for the CPU, and the width, of its own choice.

    Vectors are chosen by our own run of the optimiser, for the target that is asked for, and
    Numba generates no machine code that nobody calls.
    """
    options: dict[str, Any] = {"options": dict(_OPTIONS), **_pipeline()}
    given = signature.args, signature.return_type
    compiled: Any = CFunc(function, given, locals={}, **options)
    result = compiled._compile_uncached()
    result.library.finalize()
    text = _POINTER.sub("getelementptr nusw ", result.library.get_llvm_str())
    return llvm.parse_assembly(interleaved(text)), result.fndesc.llvm_cfunc_wrapper_name


def _final_module(function: FunctionType, signature: Any) -> tuple[Any, str]:
    """The module as Numba itself would run it: as right, perhaps not as fast."""
    compiled: Any = cfunc(signature, **_OPTIONS)(function)
    return llvm.parse_assembly(compiled.inspect_llvm()), compiled.native_name
