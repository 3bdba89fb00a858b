"""Python source of a kernel to LLVM IR, with Numba; imported on a cache miss only.

A kernel's source is one function of three integers, perhaps after functions of numbers that it
calls. It may use Python's arithmetic, ``range``, ``min``, ``max``, ``abs``, and these names:

| name | meaning |
|---|---|
| ``math`` | the functions of the module of that name |
| ``float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64`` | conversions |
| ``words(address)`` | a pointer to int64: arguments, sizes, indices |
| ``floats(address)`` ``doubles(address)`` | a pointer to float32, float64 |
| ``int8s int16s int32s uint8s uint16s uint32s uint64s`` | a pointer to integers of that width |
| ``float_bits(x)`` ``bits_float(i)`` | a float32 as int32 of the same bits, and back |
| ``half_float(i)`` ``float_half(x)`` | float16, as uint16 of its bits, to float32 and back |
| ``maximum(x, y)`` ``minimum(x, y)`` | of two floats of one type: NaN wins, −0 is less than +0 |
| ``exp32 log32 tanh32 erf32`` | on float32, without a call: loops over them are vectorised |
| ``scratch_floats()`` ``scratch_doubles()`` | a pointer to 512 elements on the stack |
| ``sum_of product_of maximum_of minimum_of`` | of ``(scratch, count)``; clobbers the rest of it |
| ``compare_exchange(address, expected, new)`` | atomic, on int64; returns the old value |

A pointer is indexed with elements: ``floats(a)[i]``. Integer arithmetic gives 64 bits for operands
of any width, and a float64 where uint64 meets a signed integer; a constant such as ``2.0`` is
float64 and makes float32 arithmetic wider unless converted.
Code that may raise is refused, and that includes ``assert``, a ``range`` whose step is not a
constant, and powers with an integer exponent that is not (a float exponent never raises). Division
by zero does not raise: its result is an infinity, a NaN, or the integer 0.

The only module that imports Numba besides the prange driver. `lower` returns the module before
Numba's own optimisation; `gptrs.kernels.compiler.codegen` optimises it for the target.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# pyright: reportMissingTypeArgument=false, reportPrivateUsage=false

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.rowwise import reduce
from gptrs.kernels.vector_math import scalar_function

_I16, _I32, _F16, _F32 = ir.IntType(16), ir.IntType(32), ir.HalfType(), ir.FloatType()


def _pointer_to(element: Any) -> Any:
    def from_address(typing_context, address):
        def code(context, builder, signature, arguments):
            pointer = context.get_data_type(element).as_pointer()
            return builder.inttoptr(arguments[0], pointer)

        return types.CPointer(element)(types.intp), code

    return intrinsic(from_address)


@intrinsic
def float_bits(typing_context, x):
    return types.int32(types.float32), lambda c, builder, s, a: builder.bitcast(a[0], _I32)


@intrinsic
def bits_float(typing_context, bits):
    return types.float32(types.int32), lambda c, builder, s, a: builder.bitcast(a[0], _F32)


@intrinsic
def half_float(typing_context, bits):
    def code(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], _F16), _F32)

    return types.float32(types.uint16), code


@intrinsic
def float_half(typing_context, x):
    def code(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], _F16), _I16)

    return types.uint16(types.float32), code


def _function_of_math(name: str) -> Any:
    def of(typing_context, x):
        def code(context, builder, signature, arguments):
            return builder.call(scalar_function(builder.module, name), arguments)

        return types.float32(types.float32), code

    return intrinsic(of)


exp32 = _function_of_math("exp")
log32 = _function_of_math("log")
tanh32 = _function_of_math("tanh")
erf32 = _function_of_math("erf")


def _extreme(name: str) -> Any:
    def of(typing_context, x, y):
        def code(context, builder, signature, arguments):
            kind = arguments[0].type
            function_type = ir.FunctionType(kind, (kind, kind))
            function = builder.module.declare_intrinsic(f"llvm.{name}", (kind,), function_type)
            return builder.call(function, arguments)

        return x(x, x), code

    return intrinsic(of)


maximum, minimum = _extreme("maximum"), _extreme("minimum")


def _scratch_of(element: Any) -> Any:
    def on_stack(typing_context):
        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            with builder.goto_entry_block():  # so that a loop takes no more at each turn
                made = builder.alloca(reduce.scratch(kind))
            return builder.bitcast(made, kind.as_pointer())

        return types.CPointer(element)(), code

    return intrinsic(on_stack)


def _reduction(name: str) -> Any:
    def of(typing_context, scratch, count):
        element = scratch.dtype

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            return builder.call(reduce.reduction(builder.module, name, kind), arguments)

        return element(scratch, types.int64), code

    return intrinsic(of)


scratch_floats, scratch_doubles = _scratch_of(types.float32), _scratch_of(types.float64)
sum_of, product_of = _reduction("sum"), _reduction("product")
maximum_of, minimum_of = _reduction("maximum"), _reduction("minimum")


@intrinsic
def compare_exchange(typing_context, address, expected, new):
    def code(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], arguments[1].type.as_pointer())
        pair = builder.cmpxchg(pointer, arguments[1], arguments[2], "seq_cst")
        return builder.extract_value(pair, 0)

    return types.int64(types.intp, types.int64, types.int64), code


_SCALARS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_POINTERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")

NAMES: dict[str, Any] = {
    "math": math,
    **{name: getattr(np, name) for name in (*_SCALARS, "float32", "float64")},
    **{name + "s": _pointer_to(getattr(types, name)) for name in _POINTERS},
    "words": _pointer_to(types.intp),
    "floats": _pointer_to(types.float32),
    "doubles": _pointer_to(types.float64),
    "float_bits": float_bits,
    "bits_float": bits_float,
    "half_float": half_float,
    "float_half": float_half,
    "maximum": maximum,
    "minimum": minimum,
    "exp32": exp32,
    "log32": log32,
    "tanh32": tanh32,
    "erf32": erf32,
    "scratch_floats": scratch_floats,
    "scratch_doubles": scratch_doubles,
    "sum_of": sum_of,
    "product_of": product_of,
    "maximum_of": maximum_of,
    "minimum_of": minimum_of,
    "compare_exchange": compare_exchange,
}

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,  # each operation rounds once, as in NumPy
    "boundscheck": False,
}


def _function(source: str, name: str) -> FunctionType:
    namespace: dict[str, Any] = dict(NAMES)
    try:
        exec(compile(source, f"<kernel {name}>", "exec"), namespace)
    except Exception as error:
        raise KernelError(f"the source cannot be read: {error}") from error
    function = namespace.get(name)
    if not isinstance(function, FunctionType) or function.__code__.co_argcount != 3:
        raise KernelError(f"the source defines no function {name}(arguments, first, last)")
    for other in [*namespace.values()]:
        if isinstance(other, FunctionType) and other is not function:
            namespace[other.__name__] = njit(**_OPTIONS)(other)
    return function


def lower(source: str, name: str) -> tuple[Any, str]:
    """The LLVM module of a kernel's source, and the name of its entry.

    Raises `KernelError` when Numba cannot compile the source.
    """
    function = _function(source, name)
    with global_compiler_lock:
        try:
            try:
                return _early_module(function)
            except (AttributeError, TypeError):  # what it builds on is not Numba's public interface
                return _final_module(function)
        except Exception as error:  # Numba's own errors, and whatever a defect of it raises
            raise KernelError(f"Numba cannot compile this: {error}\n{source}") from error


def _early_module(function: FunctionType) -> tuple[Any, str]:
    """The module before Numba vectorises it for the CPU, and the width, of its own choice.

    Vectors are chosen by our own run of the optimiser, for the target that is asked for, and
    Numba generates no machine code that nobody calls.
    """
    signature = ((types.intp, types.intp, types.intp), types.void)
    compiled: Any = CFunc(function, signature, locals={}, options=dict(_OPTIONS))
    result = compiled._compile_uncached()
    module = llvm.parse_assembly(result.library.get_llvm_str())
    for library in result.library._linking_libraries:
        missing = {f.name for f in module.functions if f.is_declaration}
        part = llvm.parse_assembly(library.get_llvm_str())
        if missing & {f.name for f in part.functions if not f.is_declaration}:
            module.link_in(part)
    return module, result.fndesc.llvm_cfunc_wrapper_name


def _final_module(function: FunctionType) -> tuple[Any, str]:
    """The module as Numba itself would run it: as right, perhaps not as fast."""
    compiled: Any = cfunc("void(intp,intp,intp)", **_OPTIONS)(function)
    return llvm.parse_assembly(compiled.inspect_llvm()), compiled.native_name
