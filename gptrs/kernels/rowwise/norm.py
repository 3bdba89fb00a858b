"""layer_norm, rms_norm and softmax over the last axis, row by row, in f32.

    for row:                                    # extent
        layer_norm: mean = Σ x / n              # four vectors of sums, in registers
        both norms: variance = Σ (x − mean)² / n
                    store (x − mean) / √(variance + eps) · weight + bias
        softmax:    top = max x; store e = exp(x − top), total = Σ e; divide by total

    x, result: rows of `columns` contiguous elements, `x_row` and `result_row` apart

A row is read once per sum and once for the result.

Order rule: a sum over a row runs in four vectors, element i in lane i mod lanes of the vector
i / lanes mod 4; in the end the vectors are added as a tree, then the lanes. The order depends on
nothing but the row's length, so neither do the bits.

Error bounds that the tests check against float64, in units of 2⁻²⁴ (half the distance of floats at
1), n being the length of a row:

| kernel | bound of the error |
|---|---|
| layer_norm | (8 + √n / 4) · \\|weight\\| · (\\|y\\| + max \\|x\\| / σ) + \\|bias\\| |
| rms_norm | (8 + √n / 4) · \\|result\\| |
| softmax | (8 + √n / 4 + 2·\\|x − max x\\|) · result, and 2⁻¹⁴⁹ |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I32, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.vector_math import exp

_POINTERS = ("x", "result", "weight", "bias")
NORM_ARGUMENTS = (*_POINTERS, "columns", "x_row", "result_row")
"""The argument block of `layer_norm_kernel` and `rms_norm_kernel`, in order.

``columns`` is the length of a row, ``x_row`` and ``result_row`` are the distances of rows in
elements. The extent is the number of rows. The result may be x itself; it overlaps no other
operand. Unused pointers may be anything.
"""

SOFTMAX_ARGUMENTS = ("x", "result", "columns", "x_row", "result_row")
"""The argument block of `softmax_kernel`, as `NORM_ARGUMENTS`."""

_SUMS = 4

Term = Callable[[Any, Any], Any]
"""The vector to add up, of (index, mask); the mask is None where all lanes are in the row."""


def across(f: Function, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """A scalar: the lanes of ``vector`` combined as a tree, halves first."""
    lanes = vector.type.count
    while lanes > 1:
        lanes //= 2
        none = ir.Constant(vector.type, ir.Undefined)
        kind = ir.VectorType(I32, lanes)
        low = f.shuffle_vector(vector, none, ir.Constant(kind, list(range(lanes))))
        high = f.shuffle_vector(vector, none, ir.Constant(kind, list(range(lanes, 2 * lanes))))
        vector = combine(low, high)
    return f.extract_element(vector, i64(0))


def greater(f: Function, a: Any, b: Any) -> Any:
    """The greater of two floats or vectors of them, where a NaN in ``a`` is passed over."""
    return f.select(f.fcmp_ordered(">", a, b), a, b)


def _fold(
    f: Function, columns: Any, start: float, combine: Callable[[Any, Any], Any], term: Term
) -> Any:
    """A scalar: ``term`` of all vectors of a row combined, from ``start``; missing lanes are
    ``start`` too."""
    lanes = f.isa.lanes
    begin = ir.Constant(f.vector, [start] * lanes)
    step = i64(_SUMS * lanes)
    full = f.sub(columns, f.urem(columns, step))
    with f.loop(i64(0), full, step, [begin] * _SUMS) as loop:
        for i in range(_SUMS):
            value = term(f.add(loop.index, i64(i * lanes)), None)
            loop.values[i] = combine(value, loop.values[i])
    sums = loop.values
    for i in range(_SUMS):
        index = f.add(full, i64(i * lanes))
        before = f.block
        with f.if_then(f.icmp_signed("<", index, columns)):
            mask = f.mask(f.sub(columns, index))
            more = combine(f.select(mask, term(index, mask), begin), sums[i])
            inside = f.block
        both = f.phi(f.vector)
        both.add_incoming(sums[i], before)
        both.add_incoming(more, inside)
        sums[i] = both
    pairs = [combine(sums[0], sums[1]), combine(sums[2], sums[3])]
    return across(f, combine(*pairs), combine)


def _map(f: Function, columns: Any, body: Callable[[Any, Any], None]) -> None:
    """Write ``body`` of (index, mask) for all vectors of a row."""
    lanes = i64(f.isa.lanes)
    full = f.sub(columns, f.urem(columns, lanes))
    with f.loop(i64(0), full, lanes) as loop:
        body(loop.index, None)
    with f.if_then(f.icmp_signed("<", full, columns)):
        body(full, f.mask(f.sub(columns, full)))


def _norm_kernel(
    isa: Isa, name: str, *, centred: bool, weight: bool, bias: bool, eps: float
) -> KernelText:
    label = "_".join([name, *(["weight"] if weight else []), *(["bias"] if bias else [])])
    module = ir.Module(f"{label} {eps} {isa.name}")
    f = Function.kernel(module, isa, label)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, NORM_ARGUMENTS[len(_POINTERS) :])
    columns = w["columns"]
    count = f.sitofp(columns, F32)
    with f.loop(first, last) as row:
        x = f.at(w["x"], f.mul(row.index, w["x_row"]))
        result = f.at(w["result"], f.mul(row.index, w["result_row"]))

        def read(index: Any, mask: Any, x: Any = x) -> Any:
            return f.read(f.at(x, index), mask=mask)

        value = read
        if centred:
            mean = f.splat(f.fdiv(_fold(f, columns, 0.0, f.fadd, read), count))

            def value(index: Any, mask: Any) -> Any:
                return f.fsub(read(index, mask), mean)

        def square(index: Any, mask: Any, value: Term = value) -> Any:
            centre = value(index, mask)
            return f.fmul(centre, centre)

        variance = f.fdiv(_fold(f, columns, 0.0, f.fadd, square), count)
        root = _root(f, f.fadd(variance, ir.Constant(F32, eps)))
        factor = f.splat(f.fdiv(ir.Constant(F32, 1.0), root))

        def store(index: Any, mask: Any, value: Term = value, result: Any = result) -> None:
            y = f.fmul(value(index, mask), factor)
            if weight:
                y = f.fmul(y, f.read(f.at(w["weight"], index), mask=mask))
            if bias:
                y = f.fadd(y, f.read(f.at(w["bias"], index), mask=mask))
            f.write(y, f.at(result, index), mask)

        _map(f, columns, store)
    f.ret_void()
    return KernelText(str(module), label)


def _root(f: Function, x: Any) -> Any:
    """√x of a scalar: an instruction, rounded right."""
    name = "llvm.sqrt.f32"
    found = f.module.globals.get(name)
    root = found or ir.Function(f.module, ir.FunctionType(F32, [F32]), name)
    return f.call(root, [x])


def layer_norm_kernel(
    isa: Isa, *, weight: bool = True, bias: bool = True, eps: float = 1e-5
) -> KernelText:
    """(x − mean x) / √(var x + eps) · weight + bias of rows.

    Arguments: `NORM_ARGUMENTS`; extent: rows.
    """
    return _norm_kernel(isa, "layer_norm", centred=True, weight=weight, bias=bias, eps=eps)


def rms_norm_kernel(isa: Isa, *, weight: bool = True, eps: float = 1e-5) -> KernelText:
    """x / √(mean x² + eps) · weight of rows (arXiv:1910.07467).

    Arguments: `NORM_ARGUMENTS`; extent: rows. Squares must not overflow: a row with \\|x\\| beyond
    1.8e19 gives 0 or NaN, as its definition in f32 does.
    """
    return _norm_kernel(isa, "rms_norm", centred=False, weight=weight, bias=False, eps=eps)


def softmax_kernel(isa: Isa) -> KernelText:
    """exp(x − max x) / Σ exp(x − max x) of rows. Arguments: `SOFTMAX_ARGUMENTS`; extent: rows.

    A row with NaN or +∞ in it, or of −∞ alone, is NaN.
    """
    name = "softmax"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, SOFTMAX_ARGUMENTS[:2], SOFTMAX_ARGUMENTS[2:])
    columns = w["columns"]

    with f.loop(first, last) as row:
        x = f.at(w["x"], f.mul(row.index, w["x_row"]))
        result = f.at(w["result"], f.mul(row.index, w["result_row"]))

        def read(index: Any, mask: Any, x: Any = x) -> Any:
            return f.read(f.at(x, index), mask=mask)

        # NaN is passed over; it comes back as exp(NaN − max).
        top = _fold(f, columns, -math.inf, lambda a, b: greater(f, a, b), read)
        top = f.splat(top)

        def weigh(index: Any, mask: Any, read: Term = read, result: Any = result) -> Any:
            weight = exp(f, f.fsub(read(index, mask), top))
            f.write(weight, f.at(result, index), mask)
            return weight

        total = f.splat(_fold(f, columns, 0.0, f.fadd, weigh))

        def divide(index: Any, mask: Any, result: Any = result) -> None:
            place = f.at(result, index)
            f.write(f.fdiv(f.read(place, mask=mask), total), place, mask)

        _map(f, columns, divide)
    f.ret_void()
    return KernelText(str(module), name)
