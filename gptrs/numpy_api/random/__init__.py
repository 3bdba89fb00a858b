"""``ptir.random``: random numbers from keys, by the names and signatures of ``jax.random``.

A key is a ui64 of rank 0, and there is no other state: a function gives the same numbers for the
same key, eagerly, in a jitted function, in a loop, under `vmap` and with any number of threads. So
a key is used once, and `split` and `fold_in` make new ones of it, whose numbers have nothing to do
with each other's:

    key, first, second = ptir.random.split(key, 3)
    x = ptir.random.normal(first, (2, 3))

Words come from Philox (`gptrs.ir.ops.random`). Distributions are computed in f64 and rounded to
``dtype`` once, so that what is rounded to f32 or less does not depend on whose logarithm it is (but
for some 1 of 10⁸). Parameters may be numbers, arrays or traced; they broadcast to ``shape``. Where
they are out of range the result is NaN, or −1 if it is an integer.

| module | functions |
|---|---|
| `keys` | key, split, fold_in, bits |
| `uniforms` | uniform, randint, bernoulli, rademacher |
| `normals` | normal, truncated_normal, lognormal, multivariate_normal, orthogonal |
| `continuous` | exponential, gumbel, laplace, logistic, cauchy, weibull_min, pareto, rayleigh |
| `gamma_distributions` | gamma, loggamma, beta, dirichlet, chisquare, t, generalized_normal, ball |
| `discrete` | categorical, geometric, poisson, binomial |
| `sampling` | choice, permutation |
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.names import unknown_name
from gptrs.locks import late_import

MODULES: dict[str, tuple[str, ...]] = {
    "keys": ("PRNGKey", "bits", "fold_in", "key", "split"),
    "uniforms": ("bernoulli", "rademacher", "randint", "uniform"),
    "normals": ("lognormal", "multivariate_normal", "normal", "orthogonal", "truncated_normal"),
    "continuous": (
        *("cauchy", "exponential", "gumbel", "laplace", "logistic", "pareto", "rayleigh"),
        *("weibull_min",),
    ),
    "gamma_distributions": (
        *("ball", "beta", "chisquare", "dirichlet", "gamma", "generalized_normal", "loggamma"),
        *("t",),
    ),
    "discrete": ("binomial", "categorical", "geometric", "poisson"),
    "sampling": ("choice", "permutation"),
}
"""The names of each module, its ``__all__``."""

_PLACES = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The function called ``name``."""
    if name not in _PLACES:
        raise unknown_name("ptir.random", name)
    return getattr(late_import(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
