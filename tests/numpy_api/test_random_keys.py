"""``ptir.random``: keys, and that a key gives the same numbers in every way of running."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError, PtirError, ShapeError
from gptrs.ir.types import Array
from gptrs.numpy_api import random as names
from tests.cases.random import philox_words
from tests.support.marks import slow_unless

random = ptir.random
KEY = random.key(7)
LOGITS = np.log(np.array([0.2, 0.3, 0.5], np.float32))
MEANS = np.array([0, 0.5, 5, 50, 5e5])
COVARIANCE = np.array([[2, 1], [1, 2]], np.float32)

DRAWS: dict[str, Callable[[Any], Any]] = {
    "key": lambda k: random.key(random.bits(k)),
    "PRNGKey": lambda k: random.PRNGKey(random.bits(k)),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, random.bits(k)),
    "bits": lambda k: random.bits(k, (5,), "ui16"),
    "uniform": lambda k: random.uniform(
        k, (2, 3), minval=np.array([1, 2, 3], np.float32), maxval=5
    ),
    "randint": lambda k: random.randint(k, (6,), -3, 9),
    "randint-wide": lambda k: random.randint(k, (6,), 0, 3 * 2**61),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (6,)),
    "rademacher": lambda k: random.rademacher(k, (6,)),
    "normal": lambda k: random.normal(k, (3,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1, 2, (4,)),
    "lognormal": lambda k: random.lognormal(k, 0.5, (3,)),
    "multivariate_normal": lambda k: random.multivariate_normal(k, [0, 1], COVARIANCE, (3,)),
    "orthogonal": lambda k: random.orthogonal(k, 3),
    "exponential": lambda k: random.exponential(k, (3,)),
    "gumbel": lambda k: random.gumbel(k, (3,), "bf16"),
    "laplace": lambda k: random.laplace(k, (3,)),
    "logistic": lambda k: random.logistic(k, (3,), "f16"),
    "cauchy": lambda k: random.cauchy(k, (3,)),
    "weibull_min": lambda k: random.weibull_min(k, 2.0, 1.5, (3,)),
    "pareto": lambda k: random.pareto(k, 2.0, (3,)),
    "rayleigh": lambda k: random.rayleigh(k, 2.0, (3,)),
    "gamma": lambda k: random.gamma(k, np.array([0.1, 1, 20]), (4, 3)),
    "loggamma": lambda k: random.loggamma(k, 0.01, (4,)),
    "beta": lambda k: random.beta(k, 0.5, 2.0, (3,)),
    "dirichlet": lambda k: random.dirichlet(k, np.ones(3), (2,)),
    "chisquare": lambda k: random.chisquare(k, 4, (3,)),
    "t": lambda k: random.t(k, 4, (3,)),
    "generalized_normal": lambda k: random.generalized_normal(k, 3.0, (3,)),
    "ball": lambda k: random.ball(k, 3, shape=(2,)),
    "categorical": lambda k: random.categorical(k, LOGITS, shape=(5,)),
    "geometric": lambda k: random.geometric(k, 0.2, (5,)),
    "poisson": lambda k: random.poisson(k, MEANS),
    "binomial": lambda k: random.binomial(k, np.array([0, 5, 50, 5000, 10**9]), 0.3),
    "choice": lambda k: random.choice(k, np.arange(3.0), (6,), p=np.array([0, 0.5, 0.5])),
    "choice-once": lambda k: random.choice(k, 10, (4,), replace=False),
    "permutation": lambda k: random.permutation(k, 6),
}


def test_every_function_has_a_row() -> None:
    assert {name.partition("-")[0] for name in DRAWS} == set(dir(random))
    for module, found in names.MODULES.items():
        loaded: Any = __import__(f"gptrs.numpy_api.random.{module}", fromlist=["*"])
        assert sorted(loaded.__all__) == sorted(found)
        assert all(getattr(random, name).__doc__ for name in found)
    assert not hasattr(random, "no_such_function")


@pytest.mark.parametrize("name", DRAWS)
def test_a_key_gives_the_same_numbers_eagerly_compiled_and_mapped(name: str) -> None:
    """Bit for bit, a batch of keys too."""
    draw = DRAWS[name]
    keys = random.split(KEY, 3)
    singly = [draw(key).numpy() for key in keys]
    np.testing.assert_array_equal(ptir.jit(draw)(keys[1]).numpy(), singly[1])
    np.testing.assert_array_equal(ptir.jit(ptir.vmap(draw))(keys).numpy(), np.stack(singly))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=slow_unless(name in ("normal", "fold_in", "poisson")))
        for name in DRAWS
    ],
)
def test_a_key_gives_the_same_numbers_in_a_loop(name: str) -> None:
    draw = DRAWS[name]

    def step(key: Any, _: Any) -> Any:
        key, now = random.split(key)
        return key, draw(now)

    found = ptir.jit(lambda key: ptir.scan(step, key, np.arange(3))[1])(KEY).numpy()
    key, expected = KEY, list[Array]()
    for _ in range(3):
        key, now = random.split(key)
        expected.append(draw(now).numpy())
    np.testing.assert_array_equal(found, np.stack(expected))


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_threads_do_not_matter(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    draw = ptir.jit(lambda k: (random.uniform(k, (40_003,)), random.gamma(k, 2.0, (10_001,))))
    u, g = draw(KEY)
    np.testing.assert_array_equal(u.numpy(), random.uniform(KEY, (40_003,)).numpy())
    np.testing.assert_array_equal(g.numpy(), random.gamma(KEY, 2.0, (10_001,)).numpy())


def test_keys_are_blocks_of_philox() -> None:
    """Stream 3 of `split`, stream 4 of `fold_in`; the key is the seed modulo 2⁶⁴."""
    for seed in (0, 5, -1, 2**64 + 3, 10**30):
        assert int(random.key(seed)) == seed % 2**64
    words = [7, 0]
    for number, key in enumerate(random.split(KEY, 3)):
        block = philox_words([number // 2, 0, 3, 0], words)[number % 2 * 2 :]
        assert int(key) == block[0] << 32 | block[1]
    for data in (0, 9, -1, 2**40):
        low, high = data & 0xFFFFFFFF, data >> 32 & 0xFFFFFFFF
        block = philox_words([low, high, 4, 0], words)
        assert int(random.fold_in(KEY, data)) == block[0] << 32 | block[1]


def test_keys_are_new() -> None:
    """No key occurs twice among many made in all ways of each other."""
    parents = random.split(KEY, 200)
    children = ptir.vmap(lambda key: random.split(key, 20))(parents)
    folded = ptir.vmap(lambda i: ptir.vmap(lambda k: random.fold_in(k, i))(parents))(np.arange(20))
    made = [np.arange(100, dtype=np.uint64), parents.numpy(), children.numpy(), folded.numpy()]
    every = np.concatenate([keys.ravel() for keys in made])
    assert len(np.unique(every)) == len(every)
    shape = random.split(KEY, (2, 3)).numpy()
    np.testing.assert_array_equal(shape.ravel(), random.split(KEY, 6).numpy())
    np.testing.assert_array_equal(shape.ravel()[:4], random.split(KEY, 4).numpy())


def test_seeds_and_data_may_be_traced() -> None:
    made = ptir.jit(lambda seed, i: random.fold_in(random.key(seed), i))(np.int32(-3), np.int8(-1))
    assert int(made) == int(random.fold_in(random.key(-3), -1))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_dtypes(dtype: str) -> None:
    """Those of the result alone: numbers of f32 and narrower are rounded f64."""
    for name in ("exponential", "gumbel", "laplace", "logistic", "cauchy"):
        wide = getattr(random, name)(KEY, (50,), "f64")
        np.testing.assert_array_equal(
            getattr(random, name)(KEY, (50,), dtype).numpy(), wide.astype(dtype).numpy()
        )
    for name, parameters in {
        "gamma": (2.0,),
        "beta": (2.0, 1.0),
        "truncated_normal": (-1.0, 1.0),
        "t": (3.0,),
    }.items():
        drawn = getattr(random, name)(KEY, *parameters, (3,), dtype)
        assert drawn.dtype == getattr(ptir, dtype)
    assert random.uniform(KEY, (3,), dtype).dtype == random.normal(KEY, (), dtype).dtype
    assert random.dirichlet(KEY, [1, 2], dtype=dtype).dtype == getattr(ptir, dtype)


def test_integer_dtypes() -> None:
    for dtype in ("si8", "ui8", "si16", "si32", "si64", "ui64"):
        kind = getattr(ptir, dtype)
        low, high = kind.limits
        drawn = random.randint(KEY, (1000,), low, high + 1, dtype)
        assert drawn.dtype is kind
        assert drawn.numpy().min() < low // 2 + high // 4
        assert drawn.numpy().max() > high // 2
        assert random.poisson(KEY, 3.0, (2,), dtype).dtype is kind
        assert random.binomial(KEY, 9, 0.5, (2,), dtype).dtype is kind
        assert random.geometric(KEY, 0.5, (2,), dtype).dtype is kind


def test_symbolic_shapes() -> None:
    def draw(x: Any, key: Any) -> Any:
        first, second, third = random.split(key, 3)
        n = x.shape[0]
        return (
            x + random.normal(first, (n,)),
            random.gamma(second, 0.5, (n, 2)),
            random.permutation(third, x),
        )

    function: Any = ptir.jit(dynamic={"x": {0: "N"}})(draw)
    for size in (1, 4, 30):
        x = np.arange(size, dtype=np.float32)
        for found, expected in zip(function(x, KEY), draw(ptir.tensor(x), KEY), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


WRONG: dict[str, tuple[Callable[[], Any], type[PtirError], str]] = {
    "integer": (lambda: random.normal(3, (2,)), DTypeError, "key is 3, expected a key"),
    "dtype": (
        lambda: random.normal(np.array(3), (2,)),
        DTypeError,
        "key has type si64[], expected",
    ),
    "rank": (lambda: random.normal(random.split(KEY), (2,)), ShapeError, "expected one of rank 0"),
    "seed": (lambda: random.key(1.5), ArgumentError, "seed is 1.5, expected an integer"),
    "seeds": (
        lambda: random.key(np.arange(2)),
        ShapeError,
        "seed has type si64[2], expected rank 0",
    ),
    "data": (lambda: random.fold_in(KEY, True), ArgumentError, "data is True, expected an integer"),
    "floats": (
        lambda: random.uniform(KEY, (2,), "si32"),
        DTypeError,
        "dtype is si32, expected a float",
    ),
    "integers": (
        lambda: random.randint(KEY, (), 0, 3, "f32"),
        DTypeError,
        "dtype is f32, expected an",
    ),
    "bits": (lambda: random.bits(KEY, (2,), "si8"), DTypeError, "expected an unsigned integer"),
    "shape": (lambda: random.normal(KEY, (-1,)), ShapeError, "shape [-1] has a negative extent"),
    "empty": (lambda: random.randint(KEY, (2,), 3, 3), ArgumentError, "minval is 3 and maxval 3"),
    "range": (lambda: random.randint(KEY, (2,), 0, 300, "ui8"), ArgumentError, "maxval of ui8"),
    "bounds": (
        lambda: random.randint(KEY, (), np.float32(0), 3),
        DTypeError,
        "minval has type f32[], expected integers",
    ),
    "interval": (
        lambda: random.uniform(KEY, (), minval=2, maxval=1),
        ArgumentError,
        "expected low <",
    ),
    "truncated": (
        lambda: random.truncated_normal(KEY, 1, 1),
        ArgumentError,
        "lower is 1 and upper 1, expected lower < upper",
    ),
    "broadcast": (
        lambda: random.gamma(KEY, np.ones(3), (3, 2)),
        ShapeError,
        "a has shape [3], which does not broadcast to [3,2]",
    ),
    "positive": (lambda: random.gamma(KEY, 0), ArgumentError, "a is 0, expected a positive number"),
    "complex": (lambda: random.gamma(KEY, np.ones(2, "c8")), DTypeError, "expected real numbers"),
    "probability": (
        lambda: random.binomial(KEY, 3, 1.5),
        ArgumentError,
        "p is 1.5, expected a prob",
    ),
    "trials": (lambda: random.binomial(KEY, 2.5, 0.5), ArgumentError, "n is 2.5, expected a whole"),
    "mean": (lambda: random.poisson(KEY, -1.0), ArgumentError, "lam is -1.0, expected a number"),
    "scalar": (
        lambda: random.choice(KEY, np.float32(3)),
        ShapeError,
        "a has type f32[], expected an",
    ),
    "weights": (
        lambda: random.choice(KEY, 3, p=np.ones(2)),
        ShapeError,
        "p has shape [2], expected [3]",
    ),
    "many": (
        lambda: random.choice(KEY, 3, (2, 2), replace=False),
        ArgumentError,
        "4 of 3 elements, expected at most all of them",
    ),
    "vectors": (
        lambda: random.dirichlet(KEY, 1.0),
        ShapeError,
        "alpha is a number, expected vectors",
    ),
    "logits": (lambda: random.categorical(KEY, 1.0), ShapeError, "expected at least one axis"),
    "covariance": (
        lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)),
        ShapeError,
        "cov has shape [3,3], expected [..., 2, 2]",
    ),
    "method": (
        lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="lu"),  # pyright: ignore[reportArgumentType]
        ArgumentError,
        "method is 'lu', expected 'cholesky', 'eigh' or 'svd'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, words = WRONG[name]
    with pytest.raises(kind) as raised:
        call()
    assert words in str(raised.value)
    assert "in random." in str(raised.value)
