"""Numba intrinsics: the names that a kernel's source may use besides Python's. Imported on a cache
miss only.

| name | meaning |
|---|---|
| ``math`` | the functions of the module of that name |
| ``float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64`` | conversions |
| ``complex64 complex128`` | conversions |
| ``words(address)`` | a pointer to int64: arguments, sizes, indices |
| ``floats(address)`` ``doubles(address)`` | a pointer to float32, float64 |
| ``int8s int16s int32s uint8s uint16s uint32s uint64s`` | a pointer to integers of that width |
| ``complex64s(address)`` ``complex128s(address)`` | a pointer to complex numbers |
| ``float_bits(x)`` ``bits_float(i)`` | a float32 as int32 of the same bits, and back |
| ``half_float(i)`` ``float_half(x)`` | float16, as uint16 of its bits, to float32 and back |
| ``float_of_e4m3(i)`` ``e4m3_of_float(x)``, ``e5m2`` | the same for fp8, as uint8 of its bits |
| ``odd_float(x)`` | float64 to float32, so that it can be rounded again |
| ``floor_quotient`` ``floor_remainder`` | of integers of at most 32 bits, without branches |
| ``integer_power(x, n)`` ``unsigned_power(x, n)`` | modulo 2⁶⁴ |
| ``greatest_divisor(x, y)`` | of two uint64 |
| ``complex_exp(z)`` and the like | on complex128: `gptrs.kernels.compiler.number_functions` |
| ``floor(x)`` ``ceil(x)`` ``trunc(x)`` ``nearest(x)`` | to a whole number, halves to even |
| ``maximum(x, y)`` ``minimum(x, y)`` | of two floats of one type: NaN wins, −0 is less than +0 |
| ``exp32 log32 tanh32 erf32 sin32 cos32`` | on float32; loops over them are vectorised |
| ``pow32(x, y)`` ``remainder32`` ``floor_divide32``, ``64`` | powers, divisions as NumPy's |
| ``exp64 log64 tanh64 erf64 sin64 cos64`` | the same on float64 |
| ``local_floats(n)`` and so on for each pointer | a pointer to so many elements on the stack |
| ``shifted(pointer, n)`` | the pointer to its element ``n`` |
| ``differs(x, y)`` | whether the bits of two numbers of one type do |
| ``report_failure(status, code)`` ``failed(status)`` | that the kernel fails; whether one has |
| ``interrupted(status)`` | whether a signal's handler raised: the kernel is to return |
| ``sum_of product_of maximum_of minimum_of`` | of ``(array, count)``; overwrites 32 more |
| ``sum_of_array`` and the like | of ``(array, first, count)``, which is only read |
| ``join_sums join_products`` | of ``(lanes, used)``: the first row becomes that of all used |
| ``product(a, b, c, sizes...)`` | a small matrix product: `gptrs.kernels.gemm.inline_product` |
| ``sort_block(keys, count, vector_bits)`` | the first keys, at most 16 vectors, ascending |
| ``partition(keys, spare, count, pivot, vector_bits)`` | the lesser ones first; their number |
| ``first_greatest(line, count, vector_bits)`` ``first_least`` | a position; NaN wins |
| ``running_sum_lines(x, x_column, result, result_column, count, vector_bits)`` | of floats |
| ``running_sum_line(x, result, count, vector_bits, truths)`` | of integers; ``product`` … |
| ``greatest_of(numbers)`` ``least_of(numbers)`` | of a tuple of floats, as ``maximum`` |
| ``first_equal(numbers, best, other)`` | the place of the first that equals ``best`` or is NaN |
| ``row_by_row()`` | no vectors of several iterations of the loop around it |
| ``compare_exchange(address, expected, new)`` | atomic, on int64; what was there before |

A pointer is indexed with elements: ``floats(a)[i]``. In place of an address, ``floats`` and the
like take an array in C order.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# pyright: reportMissingTypeArgument=false, reportPrivateUsage=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype

from gptrs.kernels.compiler.line_intrinsics import LINES
from gptrs.kernels.compiler.number_functions import FUNCTIONS
from gptrs.kernels.compiler.row_intrinsics import ROWS
from gptrs.kernels.driver.step_table import CODE, INTERRUPTED, POLL, emit_failure
from gptrs.kernels.gemm.inline_product import ProductSizes, inline_product
from gptrs.kernels.rowwise import reduce
from gptrs.kernels.scalar_functions import NAMES as SCALAR_FUNCTIONS
from gptrs.kernels.scalar_functions import operands, scalar_function


def _pointer_to(element: Any) -> Any:
    pointer_type = types.CPointer(element)

    def from_address(typing_context, address):
        def code(context, builder, signature, arguments):
            pointer = context.get_data_type(element).as_pointer()
            return builder.inttoptr(arguments[0], pointer)

        def code_of_array(context, builder, signature, arguments):
            pointer = context.get_data_type(element).as_pointer()
            data = context.make_array(address)(context, builder, arguments[0]).data
            return builder.bitcast(data, pointer)

        if not isinstance(address, types.Array):
            return pointer_type(types.intp), code
        if address.layout != "C" or as_dtype(address.dtype).itemsize != as_dtype(element).itemsize:
            raise TypingError(f"expected an array in C order whose elements are as {element}")
        return pointer_type(address), code_of_array

    return intrinsic(from_address)


def _function_of_math(name: str) -> Any:
    def of(typing_context, x):
        def code(context, builder, signature, arguments):
            return builder.call(scalar_function(builder.module, name), arguments)

        kind = types.float32 if name.endswith("32") else types.float64
        return kind(*[kind] * operands(name)), code

    def of_two(typing_context, x, y):
        return of(typing_context, x)

    return intrinsic(of if operands(name) == 1 else of_two)


MATH = {name: _function_of_math(name) for name in SCALAR_FUNCTIONS}


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


def _to_whole(name: str) -> Any:
    def of(typing_context, x):
        def code(context, builder, signature, arguments):
            kind = arguments[0].type
            function_type = ir.FunctionType(kind, (kind,))
            function = builder.module.declare_intrinsic(f"llvm.{name}", (kind,), function_type)
            return builder.call(function, arguments)

        return x(x), code

    return intrinsic(of)


floor, ceil, trunc, nearest = map(_to_whole, ("floor", "ceil", "trunc", "nearbyint"))


def _reduction(name: str) -> Any:
    def of(typing_context, scratch, count):
        element = scratch.dtype

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            function = reduce.reduction(builder.module, name, kind, filled=True)
            return builder.call(function, arguments)

        return element(scratch, types.int64), code

    return intrinsic(of)


def _reduction_of_array(name: str) -> Any:
    def of(typing_context, array, first, count):
        element = array.dtype

        def code(context, builder, signature, arguments):
            pointer, index, count = arguments
            kind = context.get_data_type(element)
            function = reduce.reduction(builder.module, name, kind, filled=False)
            return builder.call(function, [builder.gep(pointer, [index]), count])

        return element(array, types.int64, types.int64), code

    return intrinsic(of)


def _join(name: str) -> Any:
    def of(typing_context, lanes, used):
        element = lanes.dtype

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            builder.call(reduce.join_lanes(builder.module, name, kind), arguments)
            return context.get_dummy_value()

        return types.void(lanes, types.int64), code

    return intrinsic(of)


sum_of, product_of = _reduction("sum"), _reduction("product")
maximum_of, minimum_of = _reduction("maximum"), _reduction("minimum")
sum_of_array, product_of_array = _reduction_of_array("sum"), _reduction_of_array("product")
maximum_of_array = _reduction_of_array("maximum")
minimum_of_array = _reduction_of_array("minimum")
join_sums, join_products = _join("sum"), _join("product")


@intrinsic(prefer_literal=True)
def product(typing_context, a, b, c, rows, depth, columns, a_row, a_depth, b_row, vector_bits):
    """C = A·B of known sizes (`gptrs.kernels.gemm.inline_product`)."""
    given = (rows, depth, columns, a_row, a_depth, b_row, vector_bits)
    if not all(isinstance(size, types.IntegerLiteral) for size in given):
        raise TypingError("expected constant sizes")
    sizes = ProductSizes(*[size.literal_value for size in given])

    def code(context, builder, signature, arguments):
        kind = context.get_data_type(a.dtype)
        builder.call(inline_product(builder.module, kind, sizes), arguments[:3])
        return context.get_dummy_value()

    return types.void(a, b, c, *given), code


@intrinsic
def compare_exchange(typing_context, address, expected, new):
    def code(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], arguments[1].type.as_pointer())
        pair = builder.cmpxchg(pointer, arguments[1], arguments[2], "seq_cst")
        return builder.extract_value(pair, 0)

    return types.int64(types.intp, types.int64, types.int64), code


def _local_of(element: Any) -> Any:
    def on_stack(typing_context, count):
        if not isinstance(count, types.IntegerLiteral):
            raise TypingError("expected a constant number of elements")

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            with builder.goto_entry_block():  # so that a loop takes no more at each turn
                made = builder.alloca(ir.ArrayType(kind, max(count.literal_value, 1)))
                made.align = 64
            return builder.bitcast(made, kind.as_pointer())

        return types.CPointer(element)(count), code

    return intrinsic(prefer_literal=True)(on_stack)


@intrinsic
def shifted(typing_context, pointer, count):
    return pointer(pointer, types.intp), lambda c, builder, s, a: builder.gep(a[0], [a[1]])


@intrinsic
def differs(typing_context, x, y):
    """Whether the bits of two numbers of one type differ."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(8 * as_dtype(x).itemsize)
        return builder.icmp_unsigned("!=", *[builder.bitcast(a, word) for a in arguments])

    return types.boolean(x, x), code


@intrinsic
def interrupted(typing_context, status):
    """Poll for signals, if this thread does (`gptrs.kernels.driver.polling`)."""

    def code(context, builder, signature, arguments):
        word, bit = ir.IntType(64), ir.IntType(1)
        words = builder.inttoptr(arguments[0], word.as_pointer())
        poll = builder.load(builder.gep(words, [ir.Constant(word, POLL)]))
        result = cgutils.alloca_once_value(builder, ir.Constant(bit, 0))
        with builder.if_then(builder.icmp_unsigned("!=", poll, ir.Constant(word, 0))):
            function = ir.FunctionType(word, [word.as_pointer()]).as_pointer()
            raised = builder.call(builder.inttoptr(poll, function), [words])
            raised = builder.icmp_unsigned("!=", raised, ir.Constant(word, 0))
            builder.store(raised, result)
            with builder.if_then(raised, likely=False):
                ended = ir.Constant(word, INTERRUPTED)
                emit_failure(builder, arguments[0], ended, ir.Constant(word, 0))
        return builder.load(result)

    return types.boolean(types.int64), code


@intrinsic
def failed(typing_context, status):
    """Whether a kernel of the plan has stored a code in the status."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        words = builder.inttoptr(arguments[0], word.as_pointer())
        stored = builder.load(builder.gep(words, [ir.Constant(word, CODE)]))
        return builder.icmp_unsigned("!=", stored, ir.Constant(word, 0))

    return types.boolean(types.int64), code


@intrinsic
def report_failure(typing_context, status, code_of_failure):
    """Store the code in the status, if there is one."""

    def code(context, builder, signature, arguments):
        status, number = arguments
        zero = ir.Constant(ir.IntType(64), 0)
        with builder.if_then(builder.icmp_unsigned("!=", status, zero)):
            emit_failure(builder, status, number, zero)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


words, floats, doubles = map(_pointer_to, (types.intp, types.float32, types.float64))
int8s, int16s, int32s = map(_pointer_to, (types.int8, types.int16, types.int32))
uint8s, uint16s = map(_pointer_to, (types.uint8, types.uint16))
uint32s, uint64s = map(_pointer_to, (types.uint32, types.uint64))
complex64s, complex128s = map(_pointer_to, (types.complex64, types.complex128))

_SCALARS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_POINTERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
_COMPLEX = ("complex64", "complex128")
ELEMENTS: dict[str, Any] = {
    **{f"{name}s": getattr(types, name) for name in (*_POINTERS, *_COMPLEX)},
    "words": types.intp,
    "floats": types.float32,
    "doubles": types.float64,
}

LOCALS: dict[str, Any] = {f"local_{name}": _local_of(e) for name, e in ELEMENTS.items()}
# A kernel's source as a module imports them.
globals().update(LOCALS | FUNCTIONS | MATH | LINES | ROWS)

NAMES: dict[str, Any] = {
    "math": math,
    **LOCALS,
    "shifted": shifted,
    "differs": differs,
    "interrupted": interrupted,
    **{name: getattr(np, name) for name in (*_SCALARS, *_COMPLEX, "float32", "float64")},
    **{name: globals()[name] for name in ELEMENTS},
    **FUNCTIONS,
    "failed": failed,
    "report_failure": report_failure,
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "nearest": nearest,
    "maximum": maximum,
    "minimum": minimum,
    **MATH,
    "sum_of": sum_of,
    "product_of": product_of,
    "maximum_of": maximum_of,
    "minimum_of": minimum_of,
    "sum_of_array": sum_of_array,
    "product_of_array": product_of_array,
    "maximum_of_array": maximum_of_array,
    "minimum_of_array": minimum_of_array,
    "join_sums": join_sums,
    "join_products": join_products,
    "product": product,
    **LINES,
    **ROWS,
    "compare_exchange": compare_exchange,
}
