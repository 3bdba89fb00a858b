"""Products of many short rows with a small matrix: points that are rotated, features of a few.

    a [rows, K], one row behind the other; K at most `most_depth`, N at most `MOST`, in the text

    for group of lanes rows:                    # extent
        x[k] = elements k of the rows           # shuffled from K loads, or rows transposed
        for n: y[n] = Σ x[k] · B[k, n]          # multiply-adds, depth ascending, from zero
        y[n] = act(y[n] + bias[n])
        c[rows, N] = y + residual               # y shuffled to N vectors

The order of sums is that of `gptrs.kernels.gemm.product`. The last group overlaps the one before.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I32, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import Product, is_given
from gptrs.kernels.vector_math import ACTIVATIONS

MOST = 8
"""The most columns."""
_SHUFFLED = 4  # elements of a row that fewer shuffles bring to their vectors than transpose rows
_AT_ONCE = 16  # groups of an item of the extent

_POINTERS = ("a", "b", "c", "bias", "residual")
_SIZES = ("rows", "b_depth", "b_column")
NARROW_ARGUMENTS = _POINTERS + _SIZES
"""The argument block, in order. ``b_depth`` and ``b_column`` are the distances of elements of B;
``bias`` and ``residual`` are 0 where there is none. Rows of C and of the residual follow each
other; C overlaps no operand."""


def narrow_rows(isa: Isa) -> int:
    """The rows of an item of the extent; the least that a product has."""
    return isa.lanes * _AT_ONCE


def most_depth(isa: Isa) -> int:
    """The most elements of a row."""
    return max(MOST, isa.lanes)


def narrow_product_kernel(isa: Isa, product: Product, depth: int, columns: int) -> KernelText:
    """C = act(A·B + bias) + residual, of so many elements of a row and columns. Arguments:
    `NARROW_ARGUMENTS`; extent: items of `narrow_rows` rows."""
    name = f"narrow{depth}x{columns}_{product.label}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w, lanes = f.argument_block(address, _POINTERS, _SIZES), isa.lanes
    weights = [
        [f.splat(f.read(f.at(w["b"], _place(f, w, k, n)), F32), lanes) for n in range(columns)]
        for k in range(depth)
    ]
    has_bias, has_residual = is_given(f, w["bias"]), is_given(f, w["residual"])
    # Something is read in any case: without a bias the first element of B.
    places = (f.select(has_bias, f.at(w["bias"], i64(n)), w["b"]) for n in range(columns))
    biases = [f.splat(f.read(place, F32), lanes) for place in places]
    each = i64(lanes)
    with f.loop(first, last) as item:
        begin = f.mul(item.index, i64(narrow_rows(isa)))
        end = f.least(f.add(begin, i64(narrow_rows(isa))), w["rows"])
        with f.loop(begin, end, each) as group:
            row = f.least(group.index, f.sub(w["rows"], each))
            xs = _elements(f, f.at(w["a"], f.mul(row, i64(depth))), depth)
            sums: list[Any] = [ir.Constant(f.vector, None)] * columns
            for x, row_of_b in zip(xs, weights, strict=True):
                pairs = zip(row_of_b, sums, strict=True)
                sums = [f.multiply_add(x, weight, total) for weight, total in pairs]
            for n, added in enumerate(biases):
                sums[n] = f.select(has_bias, f.fadd(sums[n], added), sums[n])
                if product.activation:
                    sums[n] = ACTIVATIONS[product.activation](f, sums[n])
            place, y = f.mul(row, i64(columns)), _in_turn(f, sums)
            beside = f.select(has_residual, f.at(w["residual"], place), f.at(w["a"], i64(0)))
            more = f.fadd(y, f.read(beside, y.type))
            f.write(f.select(has_residual, more, y), f.at(w["c"], place))
    f.ret_void()
    return KernelText(str(module), name)


def _elements(f: Function, rows: Any, depth: int) -> list[Any]:
    """Vectors across rows that follow each other: of their first elements, of their second ones."""
    lanes = f.isa.lanes
    if depth <= _SHUFFLED or depth > lanes:
        whole = f.read(rows, ir.VectorType(F32, depth * lanes))
        return [_lanes(f, whole, whole, range(k, depth * lanes, depth)) for k in range(depth)]
    mask = None if depth == lanes else f.mask(i64(depth))
    block = [f.read(f.at(rows, i64(r * depth)), mask=mask) for r in range(lanes)]
    return f.transposed(block)[:depth]


def _place(f: Function, w: dict[str, Any], k: int, n: int) -> Any:
    return f.add(f.mul(i64(k), w["b_depth"]), f.mul(i64(n), w["b_column"]))


def _in_turn(f: Function, parts: list[Any]) -> Any:
    """The elements of some vectors in turn."""
    count, lanes = len(parts), parts[0].type.count
    joined = list(parts)
    while len(joined) > 1:
        if len(joined) % 2:
            joined.append(ir.Constant(joined[0].type, ir.Undefined))
        width = joined[0].type.count
        joined = [
            _lanes(f, x, y, range(2 * width))
            for x, y in zip(joined[::2], joined[1::2], strict=True)
        ]
    return _lanes(
        f, joined[0], joined[0], [n * lanes + i for i in range(lanes) for n in range(count)]
    )


def _lanes(f: Function, x: Any, y: Any, places: Any) -> Any:
    places = list(places)
    return f.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(places)), places))
