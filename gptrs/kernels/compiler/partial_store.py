"""Stores of the first elements of a vector, where the level has no mask registers.

    for size in 4, 2, 1:    # 7 of 8 lanes: 4, 2, 1
        if count has that bit: store so many elements, and go on behind them

AVX2's masked store is 4 operations on Intel's cores and 18 to 42 on AMD's Zen 2 and 3 (uops.info:
``VMASKMOVPS m256``), SSE and NEON have none and LLVM tests each lane. The count is mostly the same
one again, so that the branches are predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.isa import Isa

I32, I64 = ir.IntType(32), ir.IntType(64)


def has_mask_registers(isa: Isa) -> bool:
    """Whether a masked store is one operation."""
    return isa.vector_bits >= 512


def store_first(f: Any, values: Sequence[Any], pointers: Sequence[Any], count: Any) -> None:
    """Store the elements of each vector before ``count``, less than all, at its pointer.

    ``f`` is a `gptrs.kernels.compiler.ir_builder.Function`; the number of lanes is a power of two.
    """
    element, size = values[0].type.element, values[0].type.count // 2
    while size:
        parts = [(_part(f, v, 0, size), _part(f, v, size, size)) for v in values]
        wanted = f.icmp_signed("!=", f.and_(count, ir.Constant(I64, size)), ir.Constant(I64, 0))
        with f.if_then(wanted):
            stored = f.and_(count, ir.Constant(I64, -2 * size))  # in larger pieces
            for (low, _), pointer in zip(parts, pointers, strict=True):
                f.write(low, f.at(pointer, stored, element))
        values = [f.select(wanted, high, low) for low, high in parts]
        size //= 2


def _part(f: Any, value: Any, first: int, size: int) -> Any:
    """So many elements of a vector; one is a scalar."""
    if size == 1:
        return f.extract_element(value, ir.Constant(I32, first))
    places = ir.Constant(ir.VectorType(I32, size), list(range(first, first + size)))
    return f.shuffle_vector(value, value, places)
