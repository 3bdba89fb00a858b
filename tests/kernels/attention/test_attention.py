"""Attention kernels: results, bits and edges, at every vector level."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.types import DType, bf16, f16
from gptrs.kernels.attention.blocks import Head, most_rows
from gptrs.kernels.attention.kernel import attention_extent, attention_kernel, row_block_for
from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import Kernel, compile_ir
from gptrs.kernels.compiler.ir_builder import Function, KernelText, i64
from gptrs.kernels.vector_math import exp_below

Array = NDArray[Any]

GUARD = np.float32(-7.25)

GPT = Head(64, causal=True, start=True, length=True)
WINDOW = Head(64, causal=True, window=True)
ODD = Head(21, scale=0.3, causal=True, window=True, start=True, length=True, index="i64")
PLAIN = Head(40)


_texts: dict[tuple[isa.Isa, Head], KernelText] = {}


def kernel(level: isa.Isa, head: Head) -> Kernel:
    if (level, head) not in _texts:
        _texts[level, head] = attention_kernel(level, head)
    return compile_ir(*_texts[level, head])


def strides(a: Array) -> list[int]:
    assert a.strides[3] == a.itemsize, "the elements of a head are contiguous"
    return [s // a.itemsize for s in a.strides[:3]]


def attend(level: isa.Isa, head: Head, q: Array, k: Array, v: Array, **more: Any) -> Array:
    """The kernel's result, stored as [B, S, H, D] between guards.

    ``more``: start, length (lists or one number for all rows), window, row_block, parts.
    """
    (batch, heads, queries, size), (groups, keys) = q.shape, k.shape[1:3]
    assert head.size == size
    kind = np.int32 if head.index == "i32" else np.int64
    integers = [np.array(more.get(name, 0), kind) for name in ("start", "length")]
    block = more.get("row_block", most_rows(level, size))
    held = np.full((batch, queries, heads, size + 3), GUARD)
    result = held[..., :size].transpose(0, 2, 1, 3)
    words = [a.ctypes.data for a in (q, k, v, result, *integers)]
    words += [groups, heads // groups, queries, keys, block, more.get("window", 0)]
    for a in (q, k, v, result):
        words += strides(a)
    words += [int(a.ndim > 0) for a in integers]
    address = np.array(words, np.int64)
    extent = attention_extent(batch, groups, heads // groups, queries, block)
    parts = more.get("parts", 1)
    edges = [extent * i // parts for i in range(parts + 1)]
    for first, last in reversed(list(pairwise(edges))):
        kernel(level, head)(address.ctypes.data, first, last)
    assert (held[..., size:] == GUARD).all(), "written outside the result"
    return np.ascontiguousarray(result)


def sample(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def operands(
    b: int, h: int, g: int, s: int, t: int, d: int, seed: int = 0
) -> tuple[Array, Array, Array]:
    return (
        sample(b, h, s, d, seed=seed),
        sample(b, g, t, d, seed=seed + 1),
        sample(b, g, t, d, seed=seed + 2),
    )


def meaning(head: Head, q: Array, k: Array, v: Array, **more: Any) -> Array:
    """The op, in float64."""
    rows = len(q)
    wide = (ptir.tensor(a.astype(np.float64)) for a in (q, k, v))
    limits = {
        f"kv_{short}": ptir.tensor(np.broadcast_to(np.array(more[name], np.int64), rows))
        for name, short in (("start", "start"), ("length", "len"))
        if getattr(head, name)
    }
    window = more["window"] if head.window else None
    options = {"scale": head.scale, "window": window, "softcap": head.softcap}
    y = ptir.attention(*wide, **limits, causal=head.causal, **options)
    return y.numpy()


def check(level: isa.Isa, head: Head, *qkv: Array, **more: Any) -> None:
    found, exact = attend(level, head, *qkv, **more), meaning(head, *qkv, **more)
    # Weights add up to 1, so their errors are multiplied by the size of the values. Scores have
    # up to about ten units in the last place of 1, in two places of the softmax.
    bound = 32 * 2.0**-24 * np.abs(qkv[2]).max(initial=0)
    assert np.abs(found - exact).max(initial=0) <= bound


SHAPES = [(1, 1, 1, 1, 1), (2, 4, 2, 3, 70), (1, 3, 3, 61, 131), (3, 6, 1, 17, 17), (1, 2, 2, 5, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_all_keys(level: isa.Isa, shape: tuple[int, int, int, int, int]) -> None:
    check(level, PLAIN, *operands(*shape, 40))


@pytest.mark.parametrize("shape", SHAPES)
def test_causal_with_lengths(level: isa.Isa, shape: tuple[int, int, int, int, int]) -> None:
    batch, keys = shape[0], shape[4]
    rng = np.random.default_rng(1)
    for _ in range(3):
        start, length = rng.integers(0, keys, batch), rng.integers(0, keys + 1, batch)
        check(level, GPT, *operands(*shape, 64), start=start, length=length)


@pytest.mark.parametrize("softcap", [0.5, 30.0])
@pytest.mark.parametrize("queries", [1, 37])
def test_softcap(level: isa.Isa, softcap: float, queries: int) -> None:
    head = Head(24, scale=2.0, softcap=softcap, causal=True)
    check(level, head, *operands(2, 4, 2, queries, 70, 24))


@pytest.mark.parametrize("window", [1, 2, 30, 64, 1000])
def test_window(level: isa.Isa, window: int) -> None:
    qkv = operands(2, 4, 2, 37, 150, 21)
    check(level, ODD, *qkv, start=[0, 13], length=[150, 110], window=window)


@pytest.mark.parametrize("size", [1, 80, 256])
def test_head_sizes(level: isa.Isa, size: int) -> None:
    head = Head(size, causal=True)
    check(level, head, *operands(1, 2, 1, 9, 75, size))


def test_window_without_causal(level: isa.Isa) -> None:
    check(level, Head(8, window=True), *operands(1, 2, 2, 20, 90, 8), window=7)


def test_many_keys(level: isa.Isa) -> None:
    check(level, GPT, *operands(1, 2, 1, 2, 5000, 64), start=[3], length=[4990])


def test_wild_limits(level: isa.Isa) -> None:
    """Lengths beyond the capacity still tell positions; below zero they hide all."""
    qkv = operands(4, 2, 2, 4, 40, 64)
    for length in ([41, 60, 10**6, 2**31 - 1], [-1, -(2**31), 0, 2]):
        check(level, GPT, *qkv, start=[-5, 3, -(2**31), 1], length=length)
        check(level, GPT, *qkv, start=[2**31 - 1, 40, 39, 38], length=length)
    far = [2**63 - 1, -(2**63), 2**62, 40]
    more = {"start": far, "length": far, "window": 2**63 - 1}
    found = attend(level, ODD, *operands(4, 1, 1, 3, 40, 21), **more)
    assert not found[:3].any()


def test_a_query_without_keys_gives_zero(level: isa.Isa) -> None:
    q, k, v = operands(3, 2, 1, 5, 30, 64)
    k[:], v[:] = np.nan, np.inf
    start, length = [30, 7, 0], [30, 7, 0]
    assert not attend(level, GPT, q, k, v, start=start, length=length).any()
    found = attend(level, GPT, *operands(1, 2, 1, 5, 30, 64), start=[0], length=[3])
    assert not found[0, :, :2].any(), "queries before the first key"
    assert found[0, :, 2:].all()


def test_what_is_not_seen_takes_no_part(level: isa.Isa) -> None:
    q, k, v = operands(2, 4, 2, 30, 100, 64)
    limits = {"start": [5, 17], "length": [90, 64]}
    clean = attend(level, GPT, q, k, v, **limits)
    for row, (start, length) in enumerate(zip(*limits.values(), strict=True)):
        k[row, :, :start], v[row, :, :start] = np.nan, np.nan
        k[row, :, length:], v[row, :, length:] = np.nan, np.inf
        k[row, :, length - 10 : length], v[row, :, length - 10 : length] = np.nan, np.inf
    found = attend(level, GPT, q, k, v, **limits)
    np.testing.assert_array_equal(found[:, :, :20], clean[:, :, :20])
    assert np.isnan(found[:, :, 20:]).all(), "the last ten see NaN"


def test_infinite_scores(level: isa.Isa) -> None:
    q, k, v = operands(1, 1, 1, 3, 20, 40)
    q[:] = np.abs(q)
    k[0, 0, 4] = -np.inf
    check(level, PLAIN, q, np.where(np.isinf(k), np.float32(-1e30), k), v)
    found = attend(level, PLAIN, q, k, v)
    rest = np.delete(np.arange(20), 4)
    np.testing.assert_allclose(
        found, meaning(PLAIN, q, k[:, :, rest], v[:, :, rest]), rtol=0, atol=1e-5
    )
    k[0, 0, 4] = np.inf
    assert np.isnan(attend(level, PLAIN, q, k, v)).all()
    q[0, 0, 1] = np.nan
    k[0, 0, 4] = 0
    found = attend(level, PLAIN, q, k, v)
    assert np.isnan(found).all(-1).tolist() == [[[False, True, False]]]


def test_scores_of_minus_infinity(level: isa.Isa) -> None:
    """Weights of 0, in a first block alone or in all of them."""
    q, k, v = operands(1, 2, 1, 3, 70, 64)
    q[:] = np.abs(q)
    k[:, :, :66] = -np.inf
    found = attend(level, GPT, q, k, v, start=0, length=70)
    rest = attend(level, GPT, q, k[:, :, 66:], v[:, :, 66:], start=0, length=4)
    np.testing.assert_allclose(found, rest, rtol=0, atol=1e-5)
    k[:] = -np.inf
    assert not attend(level, GPT, q, k, v, start=0, length=70).any()


# Bits.


@pytest.mark.parametrize(("head", "window"), [(GPT, 0), (ODD, 75)], ids=["gpt", "window"])
def test_token_by_token(level: isa.Isa, head: Head, window: int) -> None:
    tokens, capacity = 150, 170
    q, k, v = operands(2, 4, 2, tokens, capacity, head.size)
    start = [0, 11]
    more = {"start": start, "window": window}
    whole = attend(level, head, q, k, v, length=tokens, **more)
    assert np.abs(whole).max() > 0
    for i in [*range(0, tokens, 9), tokens - 1]:
        one = attend(level, head, q[:, :, i : i + 1], k, v, length=i + 1, **more)
        np.testing.assert_array_equal(one[:, :, 0], whole[:, :, i])
    for first, last in [(0, 7), (7, 75), (75, 150)]:
        part = attend(level, head, q[:, :, first:last], k, v, length=last, **more)
        np.testing.assert_array_equal(part, whole[:, :, first:last])


def test_rows_do_not_know_each_other(level: isa.Isa) -> None:
    q, k, v = operands(8, 4, 2, 33, 90, 64)
    start, length = list(range(0, 40, 5)), [90 - 3 * i for i in range(8)]
    whole = attend(level, GPT, q, k, v, start=start, length=length)
    for i in range(8):
        row = slice(i, i + 1)
        alone = attend(level, GPT, q[row], k[row], v[row], start=start[row], length=length[row])
        np.testing.assert_array_equal(alone[0], whole[i])


def test_heads_do_not_know_each_other(level: isa.Isa) -> None:
    q, k, v = operands(1, 6, 2, 13, 70, 40)
    whole = attend(level, PLAIN, q, k, v)
    for i in range(6):
        group = slice(i // 3, i // 3 + 1)
        alone = attend(level, PLAIN, q[:, i : i + 1], k[:, group], v[:, group])
        np.testing.assert_array_equal(alone[:, 0], whole[:, i])


@pytest.mark.parametrize("queries", [1, 3, 20])
def test_padding_and_capacity(level: isa.Isa, queries: int) -> None:
    q, k, v = operands(1, 2, 2, queries, 200, 64)
    alone = attend(level, GPT, q, k, v, start=0, length=200)
    check(level, GPT, q, k, v, start=0, length=200)
    for left, right in [(1, 0), (64, 5), (37, 200)]:
        wide = ((0, 0), (0, 0), (left, right), (0, 0))
        padded = (np.pad(a, wide, constant_values=np.nan) for a in (k, v))
        found = attend(level, GPT, q, *padded, start=left, length=left + 200)
        np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("queries", [1, 3, 20])
def test_keys_that_a_window_has_left_behind(level: isa.Isa, queries: int) -> None:
    """They may be missing: a row begins at a negative place then."""
    q, k, v = operands(2, 4, 2, queries, 300, ODD.size)
    whole = attend(level, ODD, q, k, v, start=[5, 30], length=300, window=40)
    for first in (1, 64, 150):
        part = k[:, :, first:], v[:, :, first:]
        more = {"start": [5 - first, 30 - first], "length": 300 - first, "window": 40}
        np.testing.assert_array_equal(attend(level, ODD, q, *part, **more), whole)


@pytest.mark.slow
def test_splits_and_row_blocks(level: isa.Isa) -> None:
    for head, window, tokens in [(GPT, 0, 77), (ODD, 20, 77), (WINDOW, 70, 200)]:
        q, k, v = operands(2, 6, 2, 29, tokens, head.size)
        more = {"start": [0, 9], "length": [tokens, tokens - 7], "window": window}
        whole = attend(level, head, q, k, v, **more)
        for block in (1, 5, level.tile_rows, 16, most_rows(level, head.size)):
            for parts in (1, 3, 200):
                found = attend(level, head, q, k, v, row_block=block, parts=parts, **more)
                np.testing.assert_array_equal(found, whole)


def test_strides(level: isa.Isa) -> None:
    """Heads beside each other, in one array with all three operands, at an odd address."""
    for head in (PLAIN, replace(GPT, start=False, length=False)):
        batch, heads, tokens, size = 2, 3, 70, head.size
        held = sample(1 + batch * tokens * 3 * heads * size)[1:]
        q, k, v = held.reshape(batch, tokens, 3, heads, size).transpose(2, 0, 3, 1, 4)
        found = attend(level, head, q, k, v)
        packed = (np.ascontiguousarray(a) for a in (q, k, v))
        np.testing.assert_array_equal(found, attend(level, head, *packed))
        # One row of keys for all of the batch.
        shared = (np.broadcast_to(a[:1], a.shape) for a in (k, v))
        found = attend(level, head, q, *shared)
        alone = attend(level, head, q[1:], k[:1], v[:1])
        np.testing.assert_array_equal(found[1:], alone)


@pytest.mark.parametrize("stored", [f16, bf16], ids=str)
def test_keys_of_16_bits(level: isa.Isa, stored: DType) -> None:
    """The bits are those of widened copies: few and many queries, masks, odd heads, strides."""
    for head, more in [
        (GPT, {"start": [5, 0], "length": [88, 61]}),
        (ODD, {"start": [5, 0], "length": [90, 61], "window": 20}),
        (Head(256, softcap=3.0), {}),
    ]:
        for queries in (1, 3, 29):
            q, *kv = operands(2, 6, 2, queries, 90, head.size)
            k, v = (a.swapaxes(1, 2).copy().swapaxes(1, 2).astype(stored.numpy) for a in kv)
            k[0, 0, 7, 0] = 2**-20  # not a normal number of f16
            found = attend(level, replace(head, stored=stored.name), q, k, v, **more)
            wide = (a.astype(np.float32) for a in (k, v))
            np.testing.assert_array_equal(found, attend(level, head, q, *wide, **more))


def test_like_torch(level: isa.Isa) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = operands(2, 6, 2, 65, 65, 64)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)), is_causal=True, enable_gqa=True
    )
    found = attend(level, GPT, q, k, v, start=0, length=65)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=5e-6)  # as in `check`, twice


def test_row_blocks_for_threads() -> None:
    for level in isa.ISAS.values():
        for size in (1, 64, 256):
            most = most_rows(level, size)
            assert most % level.tile_rows == 0
            assert row_block_for(level, size, 1, 12, 1, 1000, 2) == most, "enough pieces"
            assert row_block_for(level, size, 1, 1, 1, 1000, 1) == most, "nobody to share with"
            assert row_block_for(level, size, 1, 1, 1, 1000, 64) < most
            for shape in [(1, 12, 1, 1), (8, 2, 4, 1), (0, 1, 1, 5), (1, 1, 1, 0), (2, 2, 2, 99)]:
                assert 1 <= row_block_for(level, size, *shape, 4) <= most


def test_exp_below(level: isa.Isa) -> None:
    module = ir.Module("exp_below")
    f = Function.kernel(module, level, "exp_below")
    address, first, last = f.arguments
    words = f.argument_block(address, ("x", "result"), ())
    with f.loop(first, last, i64(level.lanes)) as loop:
        value = exp_below(f, f.read(f.at(words["x"], loop.index)))
        f.write(value, f.at(words["result"], loop.index))
    f.ret_void()
    special = [0.0, -0.0, np.nan, -np.inf, -87, -87.8, -88.2, -1e30, -0.5, -1.5, -149, -1e-30]
    x = np.array([*special, *np.linspace(-87, 0, 100_004)], np.float32)
    assert len(x) % level.lanes == 0
    # A payload fills all the low bits, into which exponents are shifted.
    x[2:3].view(np.uint32)[:] = 0xFFFFFFFF
    found = np.empty_like(x)
    words = np.array([x.ctypes.data, found.ctypes.data])
    compile_ir(str(module), "exp_below")(words.ctypes.data, 0, len(x))
    assert found[:2].tolist() == [1, 1]
    assert np.isnan(found[2])
    assert found[[3, 5, 6, 7, 10]].tolist() == [0] * 5
    exact = np.exp(x.astype(np.float64))
    normal = ~np.isnan(x) & (x >= -87)
    errors = np.abs(found - exact)[normal] / np.spacing(exact[normal].astype(np.float32))
    assert errors.max() < 1.1


@pytest.mark.parametrize(("query", "scale"), [(3.4e38, None), (1e20, 1e20), (-3e38, 1.0)])
def test_scores_are_scaled_after_the_product(
    level: isa.Isa, query: float, scale: float | None
) -> None:
    """A query times the scale may overflow where its score does not."""
    q = np.full((1, 1, 1, 2), query, np.float32)
    k = np.array([[1e-38, 0], [2e-38, 0], [0, 0]], np.float32).reshape(1, 1, 3, 2)
    k /= np.float32((scale or 1) if query > 1e30 else 1e2)
    v = np.eye(3, 2, dtype=np.float32).reshape(1, 1, 3, 2)
    scores = (q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2))[0, 0]
    weights = np.exp(scores * (scale if scale is not None else 1 / np.sqrt(2)))
    wanted = weights @ v[0, 0] / weights.sum()
    found = attend(level, Head(2, scale=scale), q, k, v)
    np.testing.assert_allclose(found[0, 0], wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [0, 257])
def test_head_size_out_of_range(size: int) -> None:
    with pytest.raises(ArgumentError, match=f"head size {size}, expected 1 to 256"):
        attention_kernel(isa.current(), Head(size))
