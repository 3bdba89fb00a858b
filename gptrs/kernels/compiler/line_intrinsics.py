"""Numba intrinsics for kernels along lines: sorting, positions of extremes, cumulative operations.
Imported on a cache miss only.

`gptrs.kernels.compiler.intrinsics` lists them. Each calls an LLVM function that a module of
`gptrs.kernels.ordering` writes, for elements of the types of the pointers that it is given.
``vector_bits``, a constant, is the width of vectors.
"""

# Numba and llvmlite have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# pyright: reportMissingTypeArgument=false

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from gptrs.kernels.ordering import partition as partitions
from gptrs.kernels.ordering import running, sorting_network
from gptrs.kernels.ordering.extreme_position import extreme_position


def _constant(given):
    if not isinstance(given, types.IntegerLiteral):
        raise TypingError("expected a constant")
    return given.literal_value


@intrinsic(prefer_literal=True)
def sort_block(typing_context, keys, count, vector_bits):
    """Sort signed integers in registers (`gptrs.kernels.ordering.sorting_network`)."""
    width = _constant(vector_bits)

    def code(context, builder, signature, arguments):
        kind = context.get_data_type(keys.dtype)
        function = sorting_network.sort_block(builder.module, kind, width)
        builder.call(function, arguments[:2])
        return context.get_dummy_value()

    return types.void(keys, types.int64, vector_bits), code


@intrinsic(prefer_literal=True)
def partition(typing_context, keys, spare, count, pivot, vector_bits):
    """Divide signed integers (`gptrs.kernels.ordering.partition`)."""
    element, width = keys.dtype, _constant(vector_bits)

    def code(context, builder, signature, arguments):
        kind = context.get_data_type(element)
        function = partitions.partition(builder.module, kind, width)
        return builder.call(function, arguments[:4])

    return types.int64(keys, spare, types.int64, element, vector_bits), code


def _first_extreme(least: bool) -> Any:
    """The position of the first greatest or least element (`..ordering.extreme_position`)."""

    def of(typing_context, line, count, vector_bits):
        element, width = line.dtype, _constant(vector_bits)
        signed = getattr(element, "signed", True)

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(element)
            function = extreme_position(builder.module, kind, width, signed=signed, least=least)
            return builder.call(function, arguments[:2])

        return types.int64(line, types.int64, vector_bits), code

    return intrinsic(prefer_literal=True)(of)


first_greatest, first_least = _first_extreme(False), _first_extreme(True)


def _running_lines(operation: running.Operation) -> Any:
    """Lines of floats in order, one in each lane (`gptrs.kernels.ordering.running`)."""

    def of(typing_context, x, x_column, result, result_column, count, vector_bits):
        width = _constant(vector_bits)

        def code(context, builder, signature, arguments):
            kind = context.get_data_type(x.dtype)
            function = running.running_lines(builder.module, operation, kind, width)
            builder.call(function, arguments[:5])
            return context.get_dummy_value()

        return types.void(x, types.int64, x, types.int64, types.int64, vector_bits), code

    return intrinsic(prefer_literal=True)(of)


def _running_line(operation: running.Operation) -> Any:
    """A line of integers (`gptrs.kernels.ordering.running`)."""

    def of(typing_context, x, result, count, vector_bits, truths):
        width = _constant(vector_bits)
        source, number = (
            running.Integer(pointer.dtype.bitwidth, pointer.dtype.signed) for pointer in (x, result)
        )
        source = replace(source, truth=bool(_constant(truths)))

        def code(context, builder, signature, arguments):
            function = running.running_line(builder.module, operation, source, number, width)
            builder.call(function, arguments[:3])
            return context.get_dummy_value()

        return types.void(x, result, types.int64, vector_bits, truths), code

    return intrinsic(prefer_literal=True)(of)


LINES: dict[str, Any] = {
    "sort_block": sort_block,
    "partition": partition,
    "first_greatest": first_greatest,
    "first_least": first_least,
    **{f"running_{name}_lines": _running_lines(name) for name in running.OPERATIONS},
    **{f"running_{name}_line": _running_line(name) for name in running.OPERATIONS},
}
