"""Idioms of attention and convolution."""

# Small lambdas that are traced: their operands and results are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import math

import numpy as np

from gptrs import ptir
from tests.support.idioms import KV, Q, Row, softmax


def positions(queries, keys, dtype="si32"):
    """Where queries and keys stand, the last query at the last key."""
    i = ptir.iota(shape=(queries, 1), axis=0, dtype=dtype) + (keys - queries)
    return i, ptir.iota(shape=(1, keys), axis=1, dtype=dtype)


def attend(scores, v):
    return softmax(scores) @ v


def causal(q, k, v):
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    i, j = positions(*scores.shape[-2:])
    return attend(ptir.select(j <= i, scores, -math.inf), v)


def causal_hidden(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(8)
    i, j = positions(*scores.shape[-2:], dtype="si64")
    return ptir.softmax(ptir.select(~(i >= j), -1e30, scores)) @ v


def causal_hidden_arms(q, k, v):
    scores = q * 0.25 @ k.mT
    i, j = positions(*scores.shape[-2:])
    return ptir.softmax(ptir.select(j - i > 0, -math.inf, scores), axis=3) @ v


def causal_by_a_triangle(q, k, v):
    scores = q @ (k * 0.25).mT
    mask = np.tril(np.ones((1, 1, 8, 8), np.float32))[:, :, :6, :6]
    return ptir.softmax(ptir.select(ptir.equal(mask, 0.0), -math.inf, scores)) @ v


def causal_by_a_sliced_triangle(q, k, v):
    scores, tokens = q @ k.mT * 0.25, q.shape[2]
    seen = ptir.tensor(np.tril(np.ones((8, 8), np.bool_)))[:tokens, :tokens]
    return ptir.softmax(ptir.select(seen, scores, -math.inf)) @ v


def causal_by_addition(q, k, v):
    root = 8**-0.25
    scores = (q * root) @ (k * root).mT
    return ptir.softmax(scores + np.triu(np.full((6, 6), -math.inf, np.float32), 1)) @ v


def causal_by_adding_a_choice(q, k, v):
    scores = q @ k.mT * 0.25
    i, j = positions(*scores.shape[-2:])
    mask = ptir.select(j > i, ptir.tensor(-1e9), 0.0)
    return ptir.softmax(scores + mask) @ v


def windowed(q, k, v):
    scores = q @ k.mT * 0.25
    i, j = positions(*scores.shape[-2:])
    hidden = ptir.logical_or(i < j, i - j >= 3)
    return ptir.softmax(ptir.select(~hidden, scores, -math.inf)) @ v


def masked_by(seen, fill=-math.inf):
    """Attention of 6 queries in which the keys ``seen(i, j)`` are seen."""

    def attention(q, k, v):
        scores = q @ k.mT * 0.5
        i, j = positions(*scores.shape[-2:])
        return ptir.softmax(ptir.select(seen(i, j), scores, fill)) @ v

    return attention


def per_row(q, k, v, start, length):
    scores = q @ k.mT * 0.5
    j = ptir.iota(shape=(1, 1, 1, k.shape[2]), axis=3)
    seen = (j >= start[:, None, None, None]) & (length[:, None, None, None] > j)
    return ptir.softmax(ptir.select(seen, scores, -math.inf)) @ v


def causal_per_row(q, k, v, start, length):
    queries, keys = q.shape[2], k.shape[2]
    j = ptir.iota(shape=(keys,))
    i = ptir.iota(shape=(queries, 1)) + (length.reshape(-1, 1, 1, 1) - queries)
    seen = ptir.logical_and(j <= i, j >= start.reshape(-1, 1, 1, 1))
    return ptir.softmax(ptir.select(seen, q @ k.mT * 0.5, -math.inf)) @ v


def from_a_place(q, k, v, at, window=100):
    """Queries that stand at ``at`` and after it, as those of a cache do, and heads that share
    keys along an axis of the products."""
    batch, heads, count, size = q.shape
    groups, keys = k.shape[1:3]
    q = q.reshape(batch, groups, heads // groups, count, size)
    i, j = (ptir.arange(count) + at)[:, None], ptir.arange(keys)[None]
    seen = j <= i if window == 100 else ptir.logical_and(j <= i, j > i - window)
    scores = q @ k[:, :, None].mT * 0.5
    y = ptir.softmax(ptir.where(seen, scores, -math.inf)) @ v[:, :, None]
    return y.reshape(batch, heads, count, size)


def up_to_a_place(q, k, v, at, start):
    seen = (ptir.arange(k.shape[2]) < at + 1) & (ptir.arange(k.shape[2]) >= start)
    return ptir.softmax(ptir.where(seen, q @ k.mT * 0.5, -math.inf)) @ v


def repeated(x, times):
    batch, groups, keys, depth = x.shape
    wide = ptir.broadcast_to(x[:, :, None], shape=(batch, groups, times, keys, depth))
    return wide.reshape(batch, groups * times, keys, depth)


def grouped(q, k, v):
    queries = q.reshape(2, 2, 2, 6, 8)
    product = {"batch_lhs": (0, 1), "batch_rhs": (0, 1), "contract_lhs": (4,)}
    scores = ptir.dot_general(queries, k, **product, contract_rhs=(3,)) * 0.25
    i, j = positions(6, 6)
    weights = ptir.softmax(ptir.select(i >= j, scores, -math.inf))
    return ptir.dot_general(weights, v, **product, contract_rhs=(2,)).reshape(q.shape)


def of_a_projection(x, w):
    batch, tokens, width = x.shape
    qkv = (x @ w).reshape(batch, tokens, 3, 2, -1).permute(2, 0, 3, 1, 4)
    y = causal(qkv[0], qkv[1], qkv[2])
    return y.permute(0, 2, 1, 3).reshape(batch, tokens, width)


def with_keys_moved(q, k, v):
    k = k.reshape(2, 6, 4, 8).permute(0, 2, 1, 3)
    return ptir.softmax(q @ k.transpose(-2, -1) * 0.5) @ v


def guarded(q, k, v, length):
    """As the definition does it: a query that sees no key gives 0."""
    j = ptir.iota(shape=(1, 1, 1, k.shape[2]), axis=3)
    scores = ptir.select(j < length.reshape(-1, 1, 1, 1), q @ k.mT * 0.5, -math.inf)
    top = scores.max(-1, keepdims=True)
    e = ptir.exp(scores - ptir.select(top == -math.inf, 0.0, top))
    return e / ptir.maximum(e.sum(-1, keepdims=True), 1.0) @ v


ROWS = "f32[2,4,6,8] f32[2,4,9,8] f32[2,4,9,8] si32[2]|0..2 si32[2]|6..9"
ONE_ROW = "f32[1,4,3,8] f32[1,4,9,8] f32[1,4,9,8] si32[1]|0..2 si32[1]|6..9"
CACHED = "f32[2,4,3,8] f32[2,2,9,8] f32[2,2,9,8]"
PLACED = frozenset(["cast", "add"])  # the place after the last query
DYNAMIC = " ".join(["f32[?B,4,?S,8]"] * 3)
B_AND_S = {"B": 2, "S": 6}
CAUSAL = {"causal": True, "window": None}
ATTENTION: tuple[Row, ...] = (
    Row(
        "attention",
        lambda q, k, v: attend(q @ k.mT, v),
        f"{Q} {Q} {Q}",
        {"causal": False, "scale": 1.0},
        exact=True,
    ),
    Row(
        "attention",
        lambda q, k, v: attend(q @ k.mT, v),
        "f32[4,6,8] f32[4,7,8] f32[4,7,5]",
        exact=True,
    ),
    Row(
        "attention",
        lambda q, k, v: attend(q @ k.mT * 0.5, v),
        "f32[6,8] f32[7,8] f32[7,8]",
        {"scale": 0.5},
        exact=True,
    ),
    Row("attention", causal, f"{Q} {Q} {Q}", {**CAUSAL, "scale": 1 / math.sqrt(8)}, exact=True),
    Row("attention", causal, DYNAMIC, CAUSAL, B_AND_S, exact=True),
    Row("attention", causal, "f32[2,4,3,8] f32[2,4,5,8] f32[2,4,5,8]", CAUSAL, exact=True),
    Row("attention", causal_hidden, f"{Q} {Q} {Q}", {**CAUSAL, "scale": 1 / math.sqrt(8)}),
    Row("attention", causal_hidden, DYNAMIC, CAUSAL, B_AND_S),
    Row("attention", causal_hidden_arms, f"{Q} {Q} {Q}", {**CAUSAL, "scale": 0.25}),
    Row("attention", causal_hidden_arms, DYNAMIC, {**CAUSAL, "scale": 0.25}, B_AND_S),
    Row("attention", causal_by_a_triangle, f"{Q} {Q} {Q}", {**CAUSAL, "scale": 0.25}),
    Row("attention", causal_by_a_sliced_triangle, f"{Q} {Q} {Q}", CAUSAL, exact=True),
    Row("attention", causal_by_addition, f"{Q} {Q} {Q}", CAUSAL),
    Row("attention", causal_by_adding_a_choice, f"{Q} {Q} {Q}", CAUSAL, exact=True),
    Row("attention", causal_by_adding_a_choice, DYNAMIC, CAUSAL, B_AND_S, exact=True),
    Row("attention", windowed, f"{Q} {Q} {Q}", {"causal": True, "window": 3}, exact=True),
    Row("attention", windowed, DYNAMIC, {"causal": True, "window": 3}, B_AND_S, exact=True),
    Row(
        "attention",
        masked_by(lambda i, j: j > i - 2),
        f"{Q} {Q} {Q}",
        {"causal": False, "window": 2},
        exact=True,
    ),
    Row(
        "attention",
        masked_by(lambda i, j: j > i - 2),
        DYNAMIC,
        {"causal": False, "window": 2},
        B_AND_S,
        exact=True,
    ),
    Row("attention", per_row, ROWS, {"causal": False}, exact=True),
    Row("attention", causal_per_row, ONE_ROW, CAUSAL, exact=True),
    Row("attention", causal_per_row, ROWS, CAUSAL, exact=True),
    Row(
        "attention",
        lambda q, k, v: causal(q, repeated(k, 2), repeated(v, 2)),
        f"{Q} {KV} {KV}",
        CAUSAL,
        exact=True,
    ),
    Row("attention", grouped, f"{Q} {KV} {KV}", CAUSAL, exact=True),
    Row("attention", from_a_place, f"{CACHED} si32[]|0..4", CAUSAL, left=PLACED),
    Row("attention", from_a_place, f"{CACHED} si64[]|3..9", CAUSAL, left=PLACED),
    Row(
        "attention",
        lambda q, k, v, at: from_a_place(q, k, v, at, 3),
        f"{CACHED} si32[]|2..5",
        {"causal": True, "window": 3},
        left=PLACED,
    ),
    Row(
        "attention",
        up_to_a_place,
        "f32[2,4,6,8] f32[2,4,9,8] f32[2,4,9,8] si32[]|4..8 si32[]|0..3",
        {"causal": False, "window": None},
        exact=True,
        left=PLACED,
    ),
    Row(
        "attention",
        of_a_projection,
        "f32[2,6,8] f32[8,24]",
        CAUSAL,
        exact=True,
        left=frozenset(["dot_general", "slice", "transpose", "reshape"]),
    ),
    Row(
        "attention",
        with_keys_moved,
        "f32[2,4,6,8] f32[2,6,32] f32[2,4,6,8]",
        exact=True,
        left=frozenset(["transpose", "reshape"]),
    ),
    Row("attention", guarded, "f32[2,4,6,8] f32[2,4,9,8] f32[2,4,9,8] si32[2]|0..9", exact=True),
)


def convolved(x, w, b):
    patches = ptir.extract_patches(x, window=(3, 3), strides=(2, 1), padding=((1, 1), (0, 1)))
    return patches @ w.reshape(-1, w.shape[-1]) + b


def convolved_by_a_matrix(x, w):
    return ptir.dot_general(
        ptir.extract_patches(x, window=(2, 3), dilation=(1, 2)),
        w,
        contract_lhs=(3,),
        contract_rhs=(1,),
    )


CONVOLUTION: tuple[Row, ...] = (
    Row(
        "conv2d",
        convolved,
        "f32[2,6,7,3] f32[3,3,3,5] f32[5]",
        {"strides": (2, 1), "padding": ((1, 1), (0, 1))},
        exact=True,
    ),
    Row("conv2d", convolved, "f32[?N,6,7,3] f32[27,5] f32[5]", {"groups": 1}, {"N": 2}, exact=True),
    Row(
        "conv2d",
        convolved_by_a_matrix,
        "f32[2,6,7,3] f32[5,18]",
        {"dilation": (1, 2)},
        exact=True,
        left=frozenset(["transpose", "reshape"]),
    ),
)
