"""Scalar code of `gptrs.ir.ops.bitcast`: see `gptrs.backends.faer.scalars`.

An element that is loaded or stored keeps its bits in memory, those of a NaN too: the expression
writer passes them on where it knows them.
"""

from __future__ import annotations

from gptrs.backends.faer.element_types import convert, loaded, stored
from gptrs.backends.faer.scalar_text import Scalars
from gptrs.ir.types import DType


def bits_of(dtype: DType, x: str) -> str:
    """The bits of a value in arithmetic on ``dtype``, an integer; ``x`` is a name."""
    if not dtype.is_float:
        return f"uint8({x})" if dtype.is_bool else x
    match dtype.name:
        case "f64":
            return f"double_bits({x})"
        case "f32":
            return f"float_bits({x})"
        case "bf16":
            return f"({stored(dtype, x)})"
        case _:
            return stored(dtype, x)


def of_bits(dtype: DType, bits: str) -> str:
    """The value in arithmetic on ``dtype`` whose bits are an integer."""
    if dtype.is_bool or dtype.is_complex:
        return bits
    if not dtype.is_float:
        return convert(dtype, bits)
    match dtype.name:
        case "f64":
            return f"bits_double(int64({bits}))"
        case "f32":
            return f"bits_float(int32({bits}))"
        case _:
            return loaded(dtype, in_memory(dtype, bits))


def in_memory(dtype: DType, bits: str) -> str:
    """The bits of a narrow float as its array has them."""
    return f"uint{dtype.bits}({bits})"


def bitcast(s: Scalars) -> str:
    """The value of the same bits in another dtype."""
    x, source, target = s.operands[0], s.dtype, s.result
    return x if source is target or source.is_complex else of_bits(target, bits_of(source, x))
