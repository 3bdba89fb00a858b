"""``ptir.random``: distributions of fixed keys, against distribution functions in closed form.

Bounds that a right sample exceeds with a probability below 1 in 10⁵: Kolmogorov's
P(√n·D > 2.5) < 8·10⁻⁶, means within 4.5 standard errors, χ² within 4.5 deviations of its mean (of
at least 3 degrees of freedom: P < 4·10⁻⁵).
"""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.types import Array

random = ptir.random
N = 20_000
_erf = np.vectorize(math.erf)


def phi(x: Any) -> Any:
    return (1 + _erf(np.asarray(x) / math.sqrt(2))) / 2


def erlang(a: int) -> Callable[[Array], Array]:
    """The distribution function of `gamma` of a whole number."""
    return lambda x: 1 - np.exp(-x) * sum(x**k / math.factorial(k) for k in range(a))


def truncated(low: float, high: float) -> Callable[[Array], Array]:
    return lambda x: (phi(x) - phi(low)) / (phi(high) - phi(low))


def drawn(draw: Callable[[Any], Any], seed: int = 1) -> Array:
    return ptir.jit(draw)(random.key(seed)).numpy()


CONTINUOUS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "uniform": (lambda k: random.uniform(k, (N,), minval=-1, maxval=3), lambda x: (x + 1) / 4),
    "normal": (lambda k: random.normal(k, (N,)), phi),
    "truncated_normal": (lambda k: random.truncated_normal(k, -1, 2.5, (N,)), truncated(-1, 2.5)),
    "truncated_normal, above": (
        lambda k: random.truncated_normal(k, 1, math.inf, (N,)),
        truncated(1, math.inf),
    ),
    "truncated_normal, tail": (  # Mills' ratio: exponential in x², but for 1 part in 400
        lambda k: random.truncated_normal(k, 20, 40, (N,)),
        lambda x: 1 - np.exp((400 - x * x) / 2) * 20 / x,
    ),
    "truncated_normal, below": (
        lambda k: random.truncated_normal(k, -40, -20, (N,), "f64"),
        lambda x: np.exp((400 - x * x) / 2) * 20 / -x,
    ),
    "lognormal": (lambda k: random.lognormal(k, 0.5, (N,)), lambda x: phi(np.log(x) / 0.5)),
    "exponential": (lambda k: random.exponential(k, (N,)), lambda x: 1 - np.exp(-x)),
    "gumbel": (lambda k: random.gumbel(k, (N,)), lambda x: np.exp(-np.exp(-x))),
    "laplace": (
        lambda k: random.laplace(k, (N,)),
        lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    ),
    "logistic": (lambda k: random.logistic(k, (N,)), lambda x: 1 / (1 + np.exp(-x))),
    "cauchy": (lambda k: random.cauchy(k, (N,)), lambda x: 0.5 + np.arctan(x) / math.pi),
    "weibull_min": (
        lambda k: random.weibull_min(k, 2.0, 1.5, (N,)),
        lambda x: 1 - np.exp(-((x / 2) ** 1.5)),
    ),
    "pareto": (lambda k: random.pareto(k, 3.0, (N,)), lambda x: 1 - x**-3.0),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (N,)), lambda x: 1 - np.exp(-(x**2) / 8)),
    "gamma 1/2": (lambda k: random.gamma(k, 0.5, (N,)), lambda x: _erf(np.sqrt(x))),
    "gamma 3": (lambda k: random.gamma(k, 3.0, (N,)), erlang(3)),
    "gamma 40": (lambda k: random.gamma(k, 40, (N,)), erlang(40)),
    "loggamma 1": (lambda k: random.loggamma(k, 1.0, (N,)), lambda x: 1 - np.exp(-np.exp(x))),
    "beta 2 1": (lambda k: random.beta(k, 2.0, 1.0, (N,)), lambda x: x**2),
    "beta 1/2": (
        lambda k: random.beta(k, 0.5, 0.5, (N,), "f64"),
        lambda x: 2 / math.pi * np.arcsin(np.sqrt(x)),
    ),
    "dirichlet": (
        lambda k: random.dirichlet(k, np.array([1.0, 0.5, 1.5]), (N,))[:, 0],
        lambda x: 1 - (1 - x) ** 2,
    ),
    "chisquare": (lambda k: random.chisquare(k, 2, (N,)), lambda x: 1 - np.exp(-x / 2)),
    "t 1": (lambda k: random.t(k, 1, (N,)), lambda x: 0.5 + np.arctan(x) / math.pi),
    "t 2": (lambda k: random.t(k, 2.0, (N,)), lambda x: 0.5 + x / np.sqrt(2 + x * x) / 2),
    "generalized_normal 2": (
        lambda k: random.generalized_normal(k, 2.0, (N,)),
        lambda x: phi(x * math.sqrt(2)),
    ),
    "ball": (lambda k: (random.ball(k, 3, shape=(N,)) ** 2).sum(-1) ** 1.5, lambda x: x),
    "ball 1": (lambda k: ptir.abs(random.ball(k, 2, 1.0, (N,))).sum(-1) ** 2, lambda x: x),
    "sphere": (  # a coordinate of a point on a sphere is uniform
        lambda k: random.orthogonal(k, 3, (N,))[:, 1, 2],
        lambda x: (x + 1) / 2,
    ),
    "multivariate_normal": (
        lambda k: random.multivariate_normal(k, [1.0, -1.0], [[2.0, 1], [1, 2]], (N,)).sum(-1),
        lambda x: phi(x / math.sqrt(6)),
    ),
}


def deviation(sample: Array, distribution: Callable[[Array], Array]) -> float:
    """The greatest distance between the empirical and the true distribution function, times √n."""
    expected = distribution(np.sort(sample.astype(np.float64)))
    steps = np.arange(sample.size + 1) / sample.size
    return max(np.abs(expected - s).max() for s in (steps[1:], steps[:-1])) * sample.size**0.5


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    draw, distribution = CONTINUOUS[name]
    sample = drawn(draw)
    assert np.isfinite(sample).all()
    assert deviation(sample, distribution) < 2.5


def chi_square(counts: Array, chances: Sequence[float] | Array) -> float:
    """χ² of counts in standard deviations above its mean; cells that expect few are one."""
    expected = np.asarray(chances) * counts.sum()
    rare = expected < 10
    found = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 1
    assert found[~keep].sum() < 10
    found, wanted = found[keep], wanted[keep]
    return float(((found - wanted) ** 2 / wanted).sum() - len(found) + 1) / math.sqrt(
        2 * len(found)
    )


def poisson_chances(mean: float, count: int) -> Array:
    return np.array(
        [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count)]
    )


def binomial_chances(n: int, p: float) -> Array:
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


DISCRETE: dict[str, tuple[Callable[[Any], Any], Sequence[float] | Array]] = {
    "randint": (lambda k: random.randint(k, (N,), 0, 10), [0.1] * 10),
    "randint, shifted": (lambda k: random.randint(k, (N,), -5, 2, "si8") + 5, [1 / 7] * 7),
    "randint, wide": (  # a third of what the masks draw is rejected
        lambda k: random.randint(k, (N,), 0, 3 * 2**60) // 2**58,
        [1 / 12] * 12,
    ),
    "randint, traced": (
        lambda k: random.randint(k, (N,), np.array([0, 1]).repeat(N // 2), np.array(6), "si16"),
        [1 / 12, *([11 / 60] * 5)],
    ),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)).astype("si64"), [0.7, 0.3]),
    "rademacher": (lambda k: random.rademacher(k, (N,)) + 1, [0.5, 0, 0.5]),
    "bits": (lambda k: random.bits(k, (N,), "ui4"), [1 / 16] * 16),
    "categorical": (
        lambda k: random.categorical(k, np.log([0.1, 0.2, 0.3, 0.4]), shape=(N,)),
        [0.1, 0.2, 0.3, 0.4],
    ),
    "geometric": (
        lambda k: random.geometric(k, 0.3, (N,)),
        [0, *(0.3 * 0.7**n for n in range(100))],
    ),
    "choice": (lambda k: random.choice(k, 7, (N,)), [1 / 7] * 7),
    "choice, p": (
        lambda k: random.choice(k, 4, (N,), p=np.array([0.0, 2, 1, 1])),
        [0, 0.5, 0.25, 0.25],
    ),
    "poisson 1/2": (lambda k: random.poisson(k, 0.5, (N,)), poisson_chances(0.5, 60)),
    "poisson 9": (lambda k: random.poisson(k, 9, (N,)), poisson_chances(9, 99)),
    "poisson 10": (lambda k: random.poisson(k, 10.0, (N,)), poisson_chances(10, 99)),
    "poisson 123": (lambda k: random.poisson(k, 123.4, (N,)), poisson_chances(123.4, 400)),
    "poisson, step by step": (
        lambda k: random.poisson(k, np.full(N, 3.5)),
        poisson_chances(3.5, 60),
    ),
    "binomial, step by step": (
        lambda k: random.binomial(k, 12, np.full(N, 0.4)),
        binomial_chances(12, 0.4),
    ),
    "binomial 4": (lambda k: random.binomial(k, 4, 0.25, (N,)), binomial_chances(4, 0.25)),
    "binomial 9, turned": (lambda k: random.binomial(k, 9, 0.9, (N,)), binomial_chances(9, 0.9)),
    "binomial 40": (lambda k: random.binomial(k, 40, 0.3, (N,)), binomial_chances(40, 0.3)),
    "binomial 200, turned": (
        lambda k: random.binomial(k, 200, 0.8, (N,)),
        binomial_chances(200, 0.8),
    ),
    "binomial 20, even": (lambda k: random.binomial(k, 20, 0.5, (N,)), binomial_chances(20, 0.5)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    draw, chances = DISCRETE[name]
    sample = drawn(draw).astype(np.int64)
    assert sample.min() >= 0
    assert chi_square(np.bincount(sample, minlength=len(chances)), chances) < 4.5


def test_large_means() -> None:
    for mean in (1e6, 1e12):
        sample = drawn(lambda k, mean=mean: random.poisson(k, mean, (N,))).astype(np.float64)
        assert deviation((sample - mean) / math.sqrt(mean), phi) < 2.5
    sample = drawn(lambda k: random.binomial(k, 10**12, 0.25, (N,))).astype(np.float64)
    assert deviation((sample - 0.25e12) / math.sqrt(0.1875e12), phi) < 2.5


def test_ends_of_parameters() -> None:
    """Means and chances at their ends, and parameters out of range: NaN, or −1."""
    key = random.key(0)
    nan, inf = math.nan, math.inf
    assert random.poisson(key, np.array([0.0, -1, nan, inf])).tolist() == [0, -1, -1, -1]
    chances = np.array([0.0, 1, -1, nan])
    assert random.binomial(key, 5, chances).tolist() == [0, 5, -1, -1]
    assert random.binomial(key, 500, chances).tolist() == [0, 500, -1, -1]
    assert random.binomial(key, np.array([0, -1]), 0.5).tolist() == [0, -1]
    assert random.geometric(key, np.array([1.0, 0, 2])).tolist() == [1, -1, -1]
    assert not random.bernoulli(key, 0.0, (100,)).numpy().any()
    assert random.bernoulli(key, 1.0, (100,)).numpy().all()
    found = random.gamma(key, np.array([0.0, -1, nan, inf, 1e-30, 1e30])).numpy()
    assert found[[0, 4]].tolist() == [0, 0]
    assert np.isnan(found[1:4]).all()
    assert abs(found[5] / 1e30 - 1) < 1e-6
    assert math.isnan(random.truncated_normal(key, np.array(2.0), np.array(1.0)).item())
    inside = random.truncated_normal(key, 3, np.float32(3.001), (1000,)).numpy()
    assert 3 <= inside.min() < inside.max() <= np.float32(3.001)
    low, high = np.array([0, 1], np.float32), np.array([1, 1 + 2**-20], np.float32)
    u = random.uniform(key, (5000, 2), minval=low, maxval=high).numpy()
    assert (u >= low).all()
    assert (u < high).all()
    assert random.randint(key, (3,), np.array(4), np.array(2)).tolist() == [4, 4, 4]


def test_permutations() -> None:
    """All orders of four are alike, alone and along an axis of many rows."""
    orders = ptir.jit(ptir.vmap(lambda k: random.permutation(k, 4)))(
        random.split(random.key(3), 5000)
    )
    rows = ptir.jit(lambda k, x: random.permutation(k, x, axis=1, independent=True))(
        random.key(4), np.tile(np.arange(4), (5000, 1))
    )
    once = ptir.jit(ptir.vmap(lambda k: random.choice(k, 4, (2,), replace=False)))(
        random.split(random.key(5), 5000)
    )
    for sample, kinds in ((orders, 24), (rows, 24), (once, 12)):
        _, counts = np.unique(sample.numpy(), axis=0, return_counts=True)
        assert len(counts) == kinds
        assert chi_square(counts, [1 / kinds] * kinds) < 4.5
    x = np.arange(24).reshape(2, 3, 4)
    for axis in range(3):
        mixed = random.permutation(random.key(6), x, axis=axis).numpy()
        np.testing.assert_array_equal(np.sort(mixed, axis), x)
        assert mixed.shape == x.shape
    assert random.choice(random.key(6), x, (2, 5), axis=1).shape == (2, 2, 5, 4)
    assert sorted(random.choice(random.key(6), 5, (5,), replace=False).tolist()) == [*range(5)]


def test_choices_without_replacement_follow_their_weights() -> None:
    weights = np.array([0.5, 0.3, 0.2])
    sample = ptir.jit(ptir.vmap(lambda k: random.choice(k, 3, (2,), replace=False, p=weights)))(
        random.split(random.key(5), 5000)
    ).numpy()
    counts = np.bincount(sample[:, 0] * 3 + sample[:, 1], minlength=9)
    chances = [
        0 if i == j else weights[i] * weights[j] / (1 - weights[i])
        for i in range(3)
        for j in range(3)
    ]
    assert chi_square(counts, chances) < 4.5


def test_matrices() -> None:
    q = random.orthogonal(random.key(1), 4, (6,), "f64").numpy()
    np.testing.assert_allclose(
        q @ q.swapaxes(-1, -2), np.broadcast_to(np.eye(4), q.shape), atol=1e-14
    )
    assert {round(float(d)) for d in np.linalg.det(q)} == {-1, 1}
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    for method in ("cholesky", "eigh", "svd"):
        x = random.multivariate_normal(
            random.key(2), np.array([1.0, -2]), covariance, (N,), "f64", method
        ).numpy()
        assert np.abs(x.mean(0) - [1, -2]).max() < 4.5 * math.sqrt(2 / N)
        assert np.abs(np.cov(x.T) - covariance).max() < 4.5 * math.sqrt(8 / N)
    many = random.multivariate_normal(
        random.key(2), np.zeros((3, 1, 2)), np.stack([covariance] * 4)
    )
    assert many.shape == (3, 4, 2)


def test_categories_along_an_axis() -> None:
    logits = np.log(np.array([[0.9, 0.5], [0.1, 0.5]], np.float32))  # [category, example]
    sample = random.categorical(random.key(3), logits, axis=0, shape=(N, 2)).numpy()
    assert sample.shape == (N, 2)
    assert np.abs(sample.mean(0) - [0.1, 0.5]).max() < 4.5 * math.sqrt(0.25 / N)
    assert random.categorical(random.key(3), logits).shape == (2,)
    never = np.array([0, -math.inf, 0], np.float32)
    assert not (random.categorical(random.key(3), never, shape=(1000,)).numpy() == 1).any()
