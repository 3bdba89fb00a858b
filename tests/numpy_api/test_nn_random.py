"""The functions of ``ptir.nn`` that draw numbers: distributions, seeds, and torch where none is
drawn."""

# torch's functions, and ours by name, have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from tests.numpy_api.test_nn import DRAWN
from tests.support.lazy_torch import F, torch

X = np.random.default_rng(0).standard_normal((40, 25, 3, 7)).astype(np.float32) + 3
MANY = X.size
DROPPING = sorted(DRAWN - {"gumbel_softmax", "rrelu"})
SHAPES = {"dropout1d": (1000, 7, 3), "dropout3d": (40, 25, 1, 3, 7)}


def of_shape(name: str) -> Any:
    return X.reshape(SHAPES.get(name, X.shape))


@pytest.mark.parametrize("name", DROPPING)
def test_without_training_it_is_the_identity(name: str) -> None:
    x = of_shape(name)
    assert np.array_equal(getattr(ptir.nn, name)(x, 0.4, training=False).numpy(), x)
    assert np.array_equal(getattr(ptir.nn, name)(x, 0.0, training=True).numpy(), x)
    assert not getattr(ptir.nn, name)(x, 1.0, training=True).numpy().any()


@pytest.mark.parametrize("name", DROPPING)
def test_a_seed_decides(name: str) -> None:
    x, function = of_shape(name), getattr(ptir.nn, name)
    first = function(x, 0.4, training=True, seed=3).numpy()
    assert np.array_equal(first, function(x, 0.4, training=True, key=ptir.tensor(3)).numpy())
    assert not np.array_equal(first, function(x, 0.4, training=True, seed=4).numpy())
    jitted = ptir.jit(lambda x, seed: function(x, 0.4, training=True, seed=seed))
    np.testing.assert_allclose(jitted(x, np.int64(3)).numpy(), first, rtol=1e-6)


@pytest.mark.parametrize("name", DROPPING)
def test_what_is_dropped(name: str) -> None:
    """The share that is dropped, whole channels, and the values of the others as torch scales."""
    x, p = of_shape(name), 0.4
    y = getattr(ptir.nn, name)(x, p, training=True, seed=1).numpy()
    theirs = getattr(F, name)(torch.from_numpy(x), p, training=True).numpy()
    floor = theirs.min() if "alpha" in name else 0.0
    gone, lost = np.isclose(y, floor), np.isclose(theirs, floor)
    whole = name not in ("dropout", "alpha_dropout")
    if whole:
        assert np.array_equal(gone, np.broadcast_to(gone[..., :1], gone.shape))
    drawn = {True: 1000, False: MANY}[whole] * (7 if name == "dropout1d" else 1)
    assert abs(gone.mean() - p) < 5 * (p * (1 - p) / drawn) ** 0.5  # five standard deviations
    both = ~gone & ~lost
    np.testing.assert_allclose(y[both], theirs[both], rtol=2e-6)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
    y = ptir.nn.alpha_dropout(x, 0.3, training=True, seed=5).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02


def test_rrelu_draws_slopes() -> None:
    x = X - 3
    y = ptir.nn.rrelu(x, 0.2, 0.6, training=True, seed=0).numpy()
    slopes = (y / x)[x < 0]
    assert slopes.min() >= 0.2 - 1e-6
    assert slopes.max() <= 0.6 + 1e-6
    assert abs(slopes.mean() - 0.4) < 0.01
    assert np.array_equal(y[x >= 0], x[x >= 0])
    mean = ptir.nn.rrelu(x, 0.2, 0.6).numpy()
    np.testing.assert_allclose(mean, F.rrelu(torch.from_numpy(x), 0.2, 0.6).numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_gumbel_softmax_draws_classes(dtype: str) -> None:
    """Its greatest element is class i with probability softmax(x)ᵢ."""
    logits = ptir.tensor(np.log(np.array([0.1, 0.2, 0.7]))).astype(dtype)
    rows = ptir.broadcast_to(logits, shape=(20_000, 3))
    hard = ptir.nn.gumbel_softmax(rows, hard=True, seed=2)
    assert hard.dtype.name == dtype
    shares = hard.astype("f64").numpy().mean(0)
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7], atol=0.02)
    soft = ptir.nn.gumbel_softmax(rows, tau=0.5, seed=2).astype("f64").numpy()
    chosen = soft[hard.astype("f64").numpy() == 1]
    assert np.array_equal(chosen, soft.max(1))
    np.testing.assert_allclose(soft.sum(1), 1, rtol=2e-2)


def test_attention_drops_weights() -> None:
    q, k, v = (X[:4, :4, :, :], X[4:8, :4], np.ones((4, 4, 3, 2), np.float32))
    y = ptir.nn.scaled_dot_product_attention(q, k, v, dropout_p=0.5, seed=0).numpy()
    assert len(np.unique(y.round(5))) > 10
    with pytest.raises(ArgumentError, match="need one seed"):
        ptir.nn.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_drawing_needs_a_seed(name: str) -> None:
    more = {} if name == "gumbel_softmax" else {"training": True}
    with pytest.raises(ArgumentError, match="need one seed"):
        getattr(ptir.nn, name)(of_shape(name), **more)


def test_a_probability_is_checked() -> None:
    with pytest.raises(ArgumentError, match="probability"):
        ptir.nn.dropout(X, 1.5, seed=0)
