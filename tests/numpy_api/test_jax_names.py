"""Names of ``jax.lax`` and ``jax.nn``: against NumPy, torch and formulas, traced and eager."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from gptrs import ptir
from gptrs.errors import ArgumentError, ShapeError
from tests.numpy_api.test_against_numpy import compare

RANDOM = np.random.default_rng(2)
X = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)
I = RANDOM.integers(-100, 100, (3, 4)).astype(np.int32)  # noqa: E741
U = I.astype(np.uint8)
M = X > 0
NEW = X[:, :1] * 10
AT = np.array(2)


class Row(NamedTuple):
    """A function of arrays, and what it gives."""

    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    expected: Any


def updated(start: int, part: Any) -> Any:
    result = X.copy()
    result[:, start : start + part.shape[1]] = part
    return result


def bits(x: Any) -> Any:
    return [int(n) & (2 ** (8 * x.itemsize) - 1) for n in x.ravel()]


def zeros_above(x: Any) -> Any:
    found = [8 * x.itemsize - n.bit_length() for n in bits(x)]
    return np.array(found, x.dtype).reshape(x.shape)


def ones_of(x: Any) -> Any:
    return np.array([n.bit_count() for n in bits(x)], x.dtype).reshape(x.shape)


ROWS: dict[str, Row] = {
    "slice_in_dim": Row(lambda x: ptir.slice_in_dim(x, 1, 5, 2, axis=2), (X,), X[:, :, 1:5:2]),
    "index_in_dim": Row(lambda x: ptir.index_in_dim(x, -1, 1), (X,), X[:, -1:]),
    "index without axis": Row(lambda x: ptir.index_in_dim(x, 1, 1, False), (X,), X[:, 1]),
    "dynamic slice": Row(
        lambda x, i: ptir.dynamic_slice_in_dim(x, i, 2, axis=1), (X, AT), X[:, 2:4]
    ),
    "dynamic slice from the end": Row(
        lambda x, i: ptir.dynamic_slice_in_dim(x, -i, 2, 1), (X, AT), X[:, 2:4]
    ),
    "dynamic slice moved": Row(lambda x: ptir.dynamic_slice_in_dim(x, 3, 2, 1), (X,), X[:, 2:]),
    "dynamic index": Row(
        lambda x, i: ptir.dynamic_index_in_dim(x, i, 1, keepdims=False), (X, AT), X[:, 2]
    ),
    "dynamic update": Row(
        lambda x, y, i: ptir.dynamic_update_slice_in_dim(x, y, i, 1), (X, NEW, AT), updated(2, NEW)
    ),
    "dynamic update of an index": Row(
        lambda x, y, i: ptir.dynamic_update_index_in_dim(x, y[:, 0], i - 3, 1),
        (X, NEW, AT),
        updated(3, NEW),
    ),
    "broadcast_in_dim": Row(
        lambda x: ptir.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (I,), np.tile(I[:, None], (1, 2, 1))
    ),
    "broadcasted_iota": Row(
        lambda: ptir.broadcasted_iota("si32", (2, 3), 1), (), np.indices((2, 3))[1]
    ),
    "convert": Row(lambda x: ptir.convert_element_type(x, np.int32), (X,), X.astype(np.int32)),
    "rev": Row(lambda x: ptir.rev(x, (0, 2)), (X,), X[::-1, :, ::-1]),
    "rem": Row(lambda x: ptir.rem(x, 7), (I,), np.fmod(I, 7)),
    "select_n of bools": Row(
        lambda m, x: ptir.select_n(m, x, x * 2), (M, X), np.where(M, X * 2, X)
    ),
    "select_n": Row(
        lambda i, x: ptir.select_n(i % 3, x, x * 2, x * 3),
        (I, X[:, :, 0]),
        np.choose(I % 3, [X[:, :, 0], X[:, :, 0] * 2, X[:, :, 0] * 3]),
    ),
    "integer_pow": Row(lambda x: ptir.integer_pow(x, -2), (X,), X ** np.float32(-2)),
    "cumlogsumexp": Row(
        lambda x: ptir.cumlogsumexp(x, axis=1), (X,), np.logaddexp.accumulate(X, axis=1)
    ),
    "cumlogsumexp backwards": Row(
        lambda x: ptir.cumlogsumexp(x, 2, reverse=True),
        (X,),
        np.logaddexp.accumulate(X[..., ::-1], axis=2)[..., ::-1],
    ),
    "sort_key_val": Row(
        lambda k, v: ptir.sort_key_val(k, v, dimension=0),
        (X[0], X[1]),
        (np.sort(X[0], axis=0), np.take_along_axis(X[1], np.argsort(X[0], axis=0), 0)),
    ),
    "reduce by add": Row(lambda x: ptir.reduce(x, 1.0, ptir.add, (0, 2)), (X,), X.sum((0, 2)) + 1),
    "reduce by maximum": Row(
        lambda x: ptir.reduce(x, 0.5, ptir.maximum, (1,)), (X,), X.max(1, initial=0.5)
    ),
    "reduce by an operator": Row(
        lambda x: ptir.reduce(x, 2.0, operator.mul, (1, 2)), (X,), X.prod((1, 2)) * 2
    ),
    "reduce by a function": Row(
        lambda x: ptir.reduce(x, 0.0, lambda a, b: a + b - a * b, (1,)), (X,), 1 - (1 - X).prod(1)
    ),
    "reduce_and": Row(
        lambda x: ptir.reduce_and(x | 3, (0,)), (I,), np.bitwise_and.reduce(I | 3, axis=0)
    ),
    "reduce_and of bytes": Row(
        lambda x: ptir.reduce_and(x[:0], (0,)), (U,), np.full(4, 255, np.uint8)
    ),
    "reduce_or": Row(lambda x: ptir.reduce_or(x, (1,)), (I,), np.bitwise_or.reduce(I, axis=1)),
    "reduce_xor": Row(lambda x: ptir.reduce_xor(x), (I,), np.bitwise_xor.reduce(I, axis=None)),
    "reduce_xor of bools": Row(
        lambda x: ptir.reduce_xor(x, (1,)), (M,), np.logical_xor.reduce(M, axis=1)
    ),
    "shift_right_logical": Row(
        lambda x: ptir.shift_right_logical(x, 3), (I,), (I.view(np.uint32) >> 3).astype(np.int32)
    ),
    "shift_right_arithmetic": Row(
        lambda x: ptir.shift_right_arithmetic(x, 2), (U,), (U.view(np.int8) >> 2).view(np.uint8)
    ),
    "population_count": Row(ptir.population_count, (I,), ones_of(I)),
    "clz": Row(ptir.clz, (I,), zeros_above(I)),
    "clz of bytes": Row(ptir.clz, (U,), zeros_above(U)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_function_of_lax(name: str) -> None:
    function, arrays, expected = ROWS[name]
    compare(function(*map(ptir.tensor, arrays)), expected)
    compare(ptir.jit(function)(*arrays), expected)


IMAGES = torch.randn(2, 4, 9, 8, generator=torch.manual_seed(0))
KERNEL = torch.randn(6, 2, 3, 2, generator=torch.manual_seed(1))


def convolved(**options: Any) -> Callable[..., Any]:
    def function(x: Any, w: Any) -> Any:
        return ptir.conv_general_dilated(x, w, **options)

    return function


def test_a_convolution_in_any_order_of_axes() -> None:
    expected = F.conv2d(IMAGES, KERNEL, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
    options: dict[str, Any] = {
        "window_strides": (2, 1),
        "padding": [(1, 1), (2, 2)],
        "rhs_dilation": (1, 2),
        "feature_group_count": 2,
    }
    x, w = IMAGES.numpy(), KERNEL.numpy()
    found = ptir.jit(convolved(**options))(x, w).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    named = convolved(**options, dimension_numbers=("HNWC", "IHOW", "NHWC"))
    found = named(x.transpose(2, 0, 3, 1), w.transpose(1, 2, 0, 3)).numpy()
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ArgumentError, match="dimension_numbers"):
        convolved(**options, dimension_numbers=("NHWC", "HWXO", "NHWC"))(x, w)


@pytest.mark.parametrize("rank", [1, 3])
def test_a_transposed_convolution_of_other_ranks(rank: int) -> None:
    x, w = torch.randn(2, 3, *(5, 4, 6)[:rank]), torch.randn(3, 4, *(3, 2, 3)[:rank])
    expected = {1: F.conv_transpose1d, 3: F.conv_transpose3d}[rank](x, w, stride=2)
    options = convolved(
        window_strides=(1,) * rank,
        padding=[(n - 1, n - 1) for n in w.shape[2:]],
        lhs_dilation=(2,) * rank,
    )
    flipped = w.flip(*range(2, rank + 2)).transpose(0, 1).contiguous()
    found = options(x.numpy(), flipped.numpy()).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_same_padding(stride: int) -> None:
    x, w = IMAGES[:, :2].numpy(), KERNEL.numpy()
    found = convolved(window_strides=(stride, stride), padding="SAME")(x, w)
    around = [(0, 1), (1, 1)] if stride == 1 else [(0, 0), (1, 1)]
    padded = F.pad(IMAGES[:, :2], [*around[0], *around[1]])
    expected = F.conv2d(padded, KERNEL, stride=stride)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "swish": F.silu,
    "hard_sigmoid": F.hardsigmoid,
    "hard_silu": F.hardswish,
    "hard_swish": F.hardswish,
    "hard_tanh": F.hardtanh,
    "log_sigmoid": F.logsigmoid,
    "soft_sign": F.softsign,
    "squareplus": lambda x: (x + (x * x + 4).sqrt()) / 2,
    "sparse_plus": lambda x: torch.where(
        x <= -1, torch.zeros(()), torch.where(x >= 1, x, (x + 1) ** 2 / 4)
    ),
    "sparse_sigmoid": lambda x: ((x + 1) / 2).clamp(0, 1),
    "logmeanexp": lambda x: torch.logsumexp(x, (0, 1, 2)) - math.log(60),
    "standardize": lambda x: F.layer_norm(x, (5,)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_function_of_jax_nn(name: str) -> None:
    expected = ACTIVATIONS[name](torch.from_numpy(3 * X)).numpy()
    function = getattr(ptir.nn, name)
    compare(function(3 * X), expected)
    compare(ptir.jit(lambda x: function(x))(3 * X), expected)


def test_log1mexp_has_all_digits() -> None:
    x = np.array([1e-6, 1e-3, 0.5, 1, 5, 40], np.float32)
    wide = x.astype(np.float64)
    expected = np.where(x < 1, np.log(-np.expm1(-wide)), np.log1p(-np.exp(-wide)))
    np.testing.assert_allclose(ptir.nn.log1mexp(x).numpy(), expected, rtol=2e-6)


def test_logmeanexp_and_standardize_of_some_elements() -> None:
    means = [np.exp(row[m]).mean() for row, m in zip(X[0], M[0], strict=True)]
    found = ptir.nn.logmeanexp(X[0], axis=1, where=M[0]).numpy()
    np.testing.assert_allclose(found, np.log(means), rtol=1e-5, atol=1e-6)
    found = ptir.nn.standardize(X[0], axis=0, mean=1.0, variance=4.0, epsilon=0.0).numpy()
    np.testing.assert_allclose(found, (X[0] - 1) / 2, rtol=1e-6)


def attended(q: Any, k: Any, v: Any, seen: Any, bias: Any = 0.0, scale: float = 0.5) -> Any:
    """Attention of [B, T, N, H] by its formula."""
    groups = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, groups, axis=2) for x in (k, v))
    scores = np.einsum("btnh,bsnh->bnts", q, k).astype(np.float64) * scale + bias
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights, v)


Q = RANDOM.standard_normal((2, 5, 4, 4)).astype(np.float32)
K, V = RANDOM.standard_normal((2, 2, 5, 2, 4)).astype(np.float32)
BIAS = RANDOM.standard_normal((1, 4, 5, 5)).astype(np.float32)
TRIANGLE = np.tril(np.ones((5, 5), bool))
LENGTHS = np.array([3, 5])
SHORT = (np.arange(5) < LENGTHS[:, None])[:, None, None]
NEAR = np.abs(np.arange(5)[:, None] - np.arange(5)) <= 1

ATTENTION: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "plain": ({}, True, 0.0),
    "causal": ({"is_causal": True}, TRIANGLE, 0.0),
    "bias": ({"bias": BIAS, "is_causal": True}, TRIANGLE, BIAS),
    "mask": ({"mask": SHORT | TRIANGLE, "bias": BIAS}, SHORT | TRIANGLE, BIAS),
    "lengths": ({"key_value_seq_lengths": LENGTHS}, SHORT, 0.0),
    "window": ({"local_window_size": 1}, NEAR, 0.0),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_dot_product_attention(name: str) -> None:
    options, seen, bias = ATTENTION[name]
    expected = attended(Q, K, V, seen, bias).astype(np.float32)
    compare(ptir.nn.dot_product_attention(Q, K, V, **options), expected)
    traced = ptir.jit(lambda q, k, v: ptir.nn.dot_product_attention(q, k, v, **options))
    compare(traced(Q, K, V), expected)


def test_dot_product_attention_of_one_example() -> None:
    expected = attended(Q[:1], K[:1], V[:1], True, scale=0.2)[0].astype(np.float32)
    compare(ptir.nn.dot_product_attention(Q[0], K[0], V[0], scale=0.2), expected)
    with pytest.raises(ShapeError, match="ranks"):
        ptir.nn.dot_product_attention(Q[0], K, V)
