"""Reductions (sum, product, maximum, minimum) of an array in a fixed order.

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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I32, I64, POINTER, Builder, i64

PART, LANES = 512, 32
TILE = 128
"""Adjacent rows that a loop with vectors across rows computes together."""
VECTOR = 16
"""Elements of a vector across rows: a cache line of f32."""


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


def reduction(module: Any, name: str, element: Any, *, filled: bool) -> Any:
    """The LLVM function ``element reduction(ptr array, i64 count)`` of that name in ``module``.

    It is written at the first request. With ``filled`` the array has room for `LANES` elements
    behind the last, which the function overwrites; without, nothing else is read or written. Its
    text is the same for all vector levels.
    """
    symbol = f"{name}{'' if filled else '_of_array'}.{element}"  # no kernel is called so
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(element, [POINTER, I64]), symbol)
    made.linkage = "linkonce_odr"
    f = Builder(made.append_basic_block("entry"))
    array, count = made.args
    neutral, join = REDUCTIONS[name]
    if name in _COMPARED:
        f.ret(_compared(f, name, array, count, element, filled=filled))
    else:
        (total,) = _lanes(f, array, count, element, [neutral], _step(f, join), filled=filled)
        f.ret(_halved(f, total, join))
    return made


def extreme_of(module: Any, name: str, element: Any, count: int) -> Any:
    """The LLVM function ``element extreme(element, …)``: the maximum or minimum of ``count``
    floats, in vectors and by comparisons as in `_compared`."""
    symbol = f"{name}_of_{count}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(element, [element] * count), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("alwaysinline")
    f = Builder(made.append_basic_block("entry"))
    _, exact = REDUCTIONS[name]
    width = 1 << (count - 1).bit_length() - 1
    first, last = (_vector(f, numbers) for numbers in (made.args[:width], made.args[-width:]))
    best = _halved(f, _better(f, first, last, name=name), partial(_better, name=name))
    unordered = f.fcmp_unordered("uno", first, last)
    unsure = f.or_(_any(f, unordered), f.fcmp_ordered("==", best, ir.Constant(element, 0.0)))
    before = f.block
    with f.if_then(unsure, likely=False):
        sure = _halved(f, exact(f, first, last), exact)
        inside = f.block
    chosen = f.phi(element)
    chosen.add_incoming(best, before)
    chosen.add_incoming(sure, inside)
    f.ret(chosen)
    return made


def first_equal_of(module: Any, element: Any, count: int) -> Any:
    """The LLVM function ``i32 first(element, …, element best, i32 other)``: the place of the first
    of ``count`` floats that equals ``best`` or is NaN, in vectors; ``other`` if there is none."""
    symbol = f"first_equal_of_{count}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    kinds = [element] * (count + 1)
    made = ir.Function(module, ir.FunctionType(I32, [*kinds, I32]), symbol)
    made.linkage = "linkonce_odr"
    made.attributes.add("alwaysinline")
    f = Builder(made.append_basic_block("entry"))
    *numbers, best, other = made.args
    width = 1 << (count - 1).bit_length() - 1
    mask: Any = ir.Constant(I64, 0)
    for begin in (0, count - width):
        x = _vector(f, numbers[begin : begin + width])
        equal = f.fcmp_ordered("==", x, f.splat(best, width))
        hits = f.bitcast(f.or_(equal, f.fcmp_unordered("uno", x, x)), ir.IntType(width))
        mask = f.or_(mask, f.shl(f.zext(hits, I64), i64(begin)))
    zeros = f.intrinsic("cttz.i64", I64, I64, I1)
    place = f.trunc(f.call(zeros, [mask, ir.Constant(I1, 0)]), I32)
    f.ret(f.select(f.icmp_unsigned("==", mask, i64(0)), other, place))
    return made


def _better(f: Builder, x: Any, y: Any, *, name: str) -> Any:
    """The greater or lesser of two, if neither is NaN and they are not zeros of two signs."""
    return f.select(f.fcmp_ordered(_COMPARED[name], x, y), x, y)


def _any(f: Builder, truths: Any) -> Any:
    bits = ir.IntType(truths.type.count)
    return f.icmp_unsigned("!=", f.bitcast(truths, bits), ir.Constant(bits, 0))


def _vector(f: Builder, numbers: Sequence[Any]) -> Any:
    found: Any = ir.Constant(ir.VectorType(numbers[0].type, len(numbers)), ir.Undefined)
    for k, number in enumerate(numbers):
        found = f.insert_element(found, number, ir.Constant(I32, k))
    return found


Step = Callable[[list[Any], Any], list[Any]]


def _step(f: Builder, join: Callable[[Builder, Any, Any], Any]) -> Step:
    def step(before: list[Any], x: Any) -> list[Any]:
        return [join(f, before[0], x)]

    return step


_COMPARED = {"maximum": ">", "minimum": "<"}


def _compared(f: Builder, name: str, array: Any, count: Any, element: Any, *, filled: bool) -> Any:
    """A maximum or minimum by comparisons, which neither see a NaN nor the sign of a zero: NaNs are
    found on the way, and where the result is a zero it is computed again with that operation."""
    neutral, exact = REDUCTIONS[name]

    def step(before: list[Any], x: Any) -> list[Any]:
        best, unordered = before
        return [_better(f, x, best, name=name), f.or_(unordered, f.fcmp_unordered("uno", x, x))]

    best, unordered = _lanes(f, array, count, element, [neutral, False], step, filled=filled)
    total = _halved(f, best, exact)
    result = f.select(_any(f, unordered), ir.Constant(element, math.nan), total)
    before = f.block
    with f.if_then(f.fcmp_ordered("==", result, ir.Constant(element, 0.0)), likely=False):
        (lanes,) = _lanes(f, array, count, element, [neutral], _step(f, exact), filled=filled)
        signed = _halved(f, lanes, exact)
        inside = f.block
    chosen = f.phi(element)
    chosen.add_incoming(result, before)
    chosen.add_incoming(signed, inside)
    return chosen


def _lanes(
    f: Builder,
    array: Any,
    count: Any,
    element: Any,
    start: Sequence[float | bool],
    step: Step,
    *,
    filled: bool,
) -> list[Any]:
    """The lanes of an array: ``step`` on the values before, and the next `LANES` elements."""
    kind = ir.VectorType(element, LANES)
    neutral = ir.Constant(kind, [start[0]] * LANES)
    truths = ir.VectorType(I1, LANES)
    carried = [ir.Constant(truths if isinstance(s, bool) else kind, [s] * LANES) for s in start]
    align = 4 if isinstance(element, ir.FloatType) else 8
    whole = f.and_(count, i64(-LANES))
    if filled:
        f.store(neutral, f.at(array, count, element), align=align)
        whole = count
    with f.loop(i64(0), whole, i64(LANES), carried) as loop:
        x = f.load(f.at(array, loop.index, element), align=align, typ=kind)
        loop.values[:] = step(loop.values, x)
    if filled:
        return loop.values
    before, values = f.block, loop.values
    rest = f.sub(count, whole)
    with f.if_then(f.icmp_signed(">", rest, i64(0))):
        places = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
        mask = f.icmp_signed("<", places, f.splat(f.trunc(rest, I32), LANES))
        load = f.intrinsic(
            f"masked.load.v{LANES}f{32 if align == 4 else 64}.p0",
            kind,
            POINTER,
            I32,
            mask.type,
            kind,
        )
        x = f.call(load, [f.at(array, whole, element), ir.Constant(I32, align), mask, neutral])
        more, inside = step(values, x), f.block
    phis = [f.phi(value.type) for value in values]
    for phi, value, other in zip(phis, values, more, strict=True):
        phi.add_incoming(value, before)
        phi.add_incoming(other, inside)
    return phis


def _halved(f: Builder, total: Any, join: Callable[[Builder, Any, Any], Any]) -> Any:
    """The lanes joined by halves."""
    width = total.type.count // 2
    while width:
        halves = [
            ir.Constant(ir.VectorType(I32, width), [*range(i, i + width)]) for i in (0, width)
        ]
        lower, upper = (f.shuffle_vector(total, total, half) for half in halves)
        total, width = join(f, lower, upper), width // 2
    return f.extract_element(total, ir.Constant(I32, 0))


def join_lanes(module: Any, name: str, element: Any) -> Any:
    """The LLVM function ``void join(ptr lanes, i64 used)``: the lanes of `TILE` rows, of which
    ``used`` are not neutral, joined by halves into the first."""
    symbol = f"join_{name}.{element}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64]), symbol)
    made.linkage = "linkonce_odr"
    f = Builder(made.append_basic_block("entry"))
    array, used = made.args
    _, join = REDUCTIONS[name]
    vector, align = ir.VectorType(element, VECTOR), 64
    width = LANES // 2
    while width:
        above = f.icmp_signed("<", used, i64(2 * width))
        with f.loop(i64(width), f.select(above, used, i64(2 * width))) as upper:
            here = f.at(array, f.mul(upper.index, i64(TILE)), element)
            there = f.at(array, f.mul(f.sub(upper.index, i64(width)), i64(TILE)), element)
            with f.loop(i64(0), i64(TILE), i64(VECTOR)) as loop:
                x, y = (f.at(row, loop.index, element) for row in (there, here))
                total, more = (f.load(at, align=align, typ=vector) for at in (x, y))
                f.store(join(f, total, more), x, align=align)
        width //= 2
    f.ret_void()
    return made
