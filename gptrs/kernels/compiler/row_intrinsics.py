"""Numba intrinsics for loops over short rows (`gptrs.backends.faer.short_row_writer`).

`gptrs.kernels.compiler.intrinsics` lists them. Imported on a cache miss only.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# pyright: reportMissingTypeArgument=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gptrs.kernels.rowwise.reduce import extreme_of, first_equal_of


@intrinsic
def row_by_row(typing_context):
    """Nothing, at any place: code that LLVM cannot see into, so that it makes no vectors of several
    iterations of the loop around it. Within one it does as before."""

    def code(context, builder, signature, arguments):
        nothing = ir.FunctionType(ir.VoidType(), ())
        builder.asm(nothing, "", "", (), side_effect=True)
        return context.get_dummy_value()

    return types.void(), code


def _extreme_of(name: str) -> Any:
    """The maximum or minimum of a tuple of floats (`gptrs.kernels.rowwise.reduce`)."""

    def of(typing_context, numbers):
        count = len(numbers)

        def code(context, builder, signature, arguments):
            element = context.get_data_type(numbers.dtype)
            function = extreme_of(builder.module, name, element, count)
            each = [builder.extract_value(arguments[0], k) for k in range(count)]
            return builder.call(function, each)

        return numbers.dtype(numbers), code

    return intrinsic(of)


@intrinsic
def first_equal(typing_context, numbers, best, other):
    """The place of the first float of a tuple that equals another or is NaN
    (`gptrs.kernels.rowwise.reduce`)."""
    count = len(numbers)

    def code(context, builder, signature, arguments):
        element = context.get_data_type(numbers.dtype)
        function = first_equal_of(builder.module, element, count)
        each = [builder.extract_value(arguments[0], k) for k in range(count)]
        return builder.call(function, [*each, *arguments[1:]])

    return types.int32(numbers, numbers.dtype, types.int32), code


ROWS: dict[str, Any] = {
    "row_by_row": row_by_row,
    "greatest_of": _extreme_of("maximum"),
    "least_of": _extreme_of("minimum"),
    "first_equal": first_equal,
}
