"""Rotary positions against float64, at every vector level, with any strides."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.rowwise.rotary import Pairs, rotary_kernel

Array = NDArray[Any]

SHAPE = (2, 3, 5)
ALL = [Pairs(*flags) for flags in product((False, True), repeat=3)]


def operand(shape: tuple[int, ...], width: int, seed: int) -> Array:
    """Rows in the middle of a larger array; axes of one element broadcast."""
    rng = np.random.default_rng(seed)
    wide = rng.standard_normal((*shape, width + 3)).astype(np.float32)
    return wide[..., 1 : 1 + width]


def strides_of(array: Array) -> list[int]:
    shape, strides = array.shape[:-1], array.strides[:-1]
    return [0 if n == 1 else s // 4 for n, s in zip(shape, strides, strict=True)]


def turn(level: isa.Isa, pairs: Pairs, x: Array, cos: Array, sin: Array, split: int = 7) -> Array:
    """The kernel's result, with its rows in two ranges."""
    count = x.shape[-1] // 2
    held = np.full((x[..., 0].size + 1, x.shape[-1]), np.float32(7e7))
    words = [a.ctypes.data for a in (x, held, cos, sin)] + [count, *x.shape[1:3]]
    block = np.array([*words, *(s for a in (x, cos, sin) for s in strides_of(a))], np.int64)
    kernel = compile_ir(*rotary_kernel(level, pairs))
    for first, last in ((0, split), (split, x[..., 0].size)):
        kernel(block.ctypes.data, first, last)
    assert (held[-1] == np.float32(7e7)).all(), "written outside the rows"
    return held[:-1].reshape(x.shape)


def exact(pairs: Pairs, *operands: Array) -> Array:
    x, cos, sin = (each.astype(np.float64) for each in operands)
    count = x.shape[-1] // 2
    order: Array = np.array(range(2 * count))
    if pairs.interleaved:
        order = order.reshape(-1, 2).T.ravel()  # first elements, then second ones
    a, b = _halves(x, order, each=True)
    c0, c1 = _halves(cos, order, each=pairs.cos_each)
    s0, s1 = _halves(sin, order, each=pairs.sin_each)
    turned = np.concatenate([a * c0 - b * s0, b * c1 + a * s1], -1)
    return turned[..., np.argsort(order)]


def _halves(table: Array, order: Array, *, each: bool) -> tuple[Array, Array]:
    """What belongs to the first and to the second elements of pairs."""
    if not each:
        return table, table
    half = len(order) // 2
    return table[..., order[:half]], table[..., order[half:]]


@pytest.mark.parametrize("pairs", ALL, ids=str)
@pytest.mark.parametrize("count", [1, 3, 8, 21, 32])
def test_rotary(level: isa.Isa, pairs: Pairs, count: int) -> None:
    x = operand(SHAPE, 2 * count, 0)
    for outer, heads in ((1, 1), (2, 1), (2, 3)):
        cos = operand((outer, heads, 5), count * (1 + pairs.cos_each), 1)
        sin = operand((outer, heads, 5), count * (1 + pairs.sin_each), 2)
        found, right = turn(level, pairs, x, cos, sin), exact(pairs, x, cos, sin)
        # Two products and their sum are rounded, at most by 2⁻²⁴ of the terms each.
        terms = exact(pairs, abs(x), abs(cos), abs(sin)), exact(pairs, abs(x), abs(cos), -abs(sin))
        size = np.maximum(*map(abs, terms))
        assert (abs(found - right) <= 2.01 * 2.0**-24 * size).all()


def test_a_row_does_not_depend_on_the_others(level: isa.Isa) -> None:
    pairs = Pairs()
    x, cos, sin = operand(SHAPE, 24, 0), operand((1, 1, 5), 12, 1), operand((1, 1, 5), 12, 2)
    whole = turn(level, pairs, x, cos, sin)
    for token in range(5):
        part = slice(token, token + 1)
        one = turn(level, pairs, x[:, :, part], cos[:, :, part], sin[:, :, part], split=2)
        assert one.tobytes() == whole[:, :, part].tobytes()
