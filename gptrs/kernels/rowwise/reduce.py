"""Reductions (sum, product, maximum, minimum) of a short array in a fixed order.

    lanes[32] = neutral element                 # registers
    for 32 elements of the array, at most 512, filled up with neutral elements:
        lanes = join(lanes, elements)
    for width in 16, 8, 4, 2, 1:
        lanes = join(lower half, upper half)

A sum in one chain waits for each addition; a sum that LLVM may reorder depends on the vector level
and on LLVM's cost model. So element i of `PART` or fewer goes to lane i mod `LANES`, and then the
upper half of the lanes joins the lower one, until one is left: the order depends on the length
alone. The functions are written into the LLVM module of a generated loop, which fills the scratch
array (`sum_of` and the like in `gptrs.kernels.compiler.numba_lowering`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, I64, POINTER, Builder, i64

PART, LANES = 512, 32


def _sum(f: Builder, total: Any, x: Any) -> Any:
    return f.fadd(total, x)


def _product(f: Builder, total: Any, x: Any) -> Any:
    return f.fmul(total, x)


REDUCTIONS: dict[str, tuple[float, Callable[[Builder, Any, Any], Any]]] = {
    "sum": (0.0, _sum),
    "product": (1.0, _product),
    "maximum": (-math.inf, Builder.maximum),
    "minimum": (math.inf, Builder.minimum),
}
"""By name: the neutral element, and the operation that joins two lanes."""


def scratch(element: Any) -> Any:
    """The type of the memory that a reduction reads, and fills up to whole lanes."""
    return ir.ArrayType(element, PART + LANES)


def reduction(module: Any, name: str, element: Any) -> Any:
    """The LLVM function ``element reduction(ptr scratch, i64 count)`` of that name in ``module``.

    It is written at the first request. Its text is the same for all vector levels.
    """
    symbol = f"{name}.{element}"  # no kernel is called so
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(element, [POINTER, I64]), symbol)
    made.linkage = "internal"
    f = Builder(made.append_basic_block("entry"))
    array, count = made.args
    neutral, join = REDUCTIONS[name]
    lanes = ir.VectorType(element, LANES)
    nothing = ir.Constant(lanes, [neutral] * LANES)
    align = 4 if isinstance(element, ir.FloatType) else 8
    f.store(nothing, f.at(array, count, element), align=align)
    with f.loop(i64(0), count, i64(LANES), [nothing]) as loop:
        x = f.load(f.at(array, loop.index, element), align=align, typ=lanes)
        loop.values[0] = join(f, loop.values[0], x)
    total, width = loop.values[0], LANES // 2
    while width:
        halves = [
            ir.Constant(ir.VectorType(I32, width), [*range(i, i + width)]) for i in (0, width)
        ]
        lower, upper = (f.shuffle_vector(total, total, half) for half in halves)
        total, width = join(f, lower, upper), width // 2
    f.ret(f.extract_element(total, ir.Constant(I32, 0)))
    return made
