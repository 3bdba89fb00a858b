"""Impure functions: those whose result differs from call to call, and what replaces them in a
traced function. Random numbers, clocks, random ids, input.

Used by `gptrs.jit.impure_calls`. Only modules that are loaded are looked at.
"""

from __future__ import annotations

import datetime
import random
import sys
from functools import lru_cache
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import Any

_RANDOM = "draw with ptir.random and a key, pass the numbers as an argument, or use ptir.callback"
_VALUE = "pass the value as an argument, or use ptir.callback"
_SEED = "give it a seed, or draw with ptir.random and a key"

_CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time", "time")
# Module, functions, remedy. Methods of generators and of dates are told by their owners.
_FUNCTIONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("numpy.random", ("ranf", "sample"), _RANDOM),
    (
        "torch",
        (
            *("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint"),
            *("randint_like", "randn", "randn_like", "randperm"),
        ),
        _RANDOM,
    ),
    ("secrets", ("randbelow", "token_bytes", "token_hex", "token_urlsafe"), _RANDOM),
    ("os", ("getrandom", "urandom"), _RANDOM),
    ("uuid", ("uuid1", "uuid4"), _VALUE),
    ("time", (*_CLOCKS, *(f"{clock}_ns" for clock in _CLOCKS)), _VALUE),
    ("builtins", ("input",), _VALUE),
)
_GENERATORS = (("numpy.random", "Generator"), ("numpy.random", "RandomState"))
# Impure without arguments: the system gives the seed.
_SEEDED = (
    *(("numpy.random", name) for name in ("RandomState", "SeedSequence", "default_rng")),
    ("random", "Random"),
)
_NOW = ("now", "today", "utcnow")
_STATE = ("get_state", "getstate", "seed", "set_state", "setstate", "spawn")  # draw nothing
_DRAWS = """
    beta betavariate binomial binomialvariate bytes chisquare choice choices dirichlet exponential
    expovariate f gamma gammavariate gauss geometric getrandbits gumbel hypergeometric integers
    laplace logistic lognormal lognormvariate logseries multinomial multivariate_hypergeometric
    multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal normalvariate
    pareto paretovariate permutation permuted poisson power rand randbits randbytes randint randn
    random random_integers random_sample randrange rayleigh shuffle standard_cauchy
    standard_exponential standard_gamma standard_normal standard_t tomaxint triangular uniform
    vonmises vonmisesvariate wald weibull weibullvariate zipf
"""

NAMES = frozenset(
    (
        *(*_DRAWS.split(), *_NOW, *(name for _, name in _SEEDED)),
        *(name for _, names, _ in _FUNCTIONS for name in names),
    )
)
"""The names that impure functions have as attributes."""
MODULES = frozenset(("datetime", "numpy", "random", *(module for module, *_ in _FUNCTIONS)))
"""The modules that have them."""
_PLACES = sorted(MODULES | {"numpy.random"})


class ImpureFunctions:
    """The impure functions of the modules that were loaded when it was made."""

    def __init__(self) -> None:
        self._remedies = {
            id(function): remedy
            for module, names, remedy in _FUNCTIONS
            for name in names
            if (function := _loaded(module, name)) is not None
        }
        self._seeded = {id(_loaded(module, name)) for module, name in _SEEDED} - {id(None)}
        found = (_loaded(module, name) for module, name in _GENERATORS)
        self.generators: tuple[type, ...] = (random.Random, *filter(None, found))
        """The classes of random number generators."""

    def remedy(self, function: Any, is_empty: bool) -> str:
        """What to do instead of calling ``function``, without arguments if ``is_empty``; "" for a
        function that is pure or not known."""
        if remedy := self._remedies.get(id(function)):
            return remedy
        if id(function) in self._seeded:
            return _SEED if is_empty else ""
        if not isinstance(function, BuiltinFunctionType | MethodType):
            return ""
        owner, name = function.__self__, function.__name__
        if isinstance(owner, self.generators):
            return "" if name in _STATE else _RANDOM
        is_date = isinstance(owner, type) and issubclass(owner, datetime.date)
        return _VALUE if is_date and name in _NOW else ""


def impure_functions() -> ImpureFunctions:
    """Those of the modules that are loaded now."""
    return _impure_functions(*map(sys.modules.get, _PLACES))


@lru_cache(maxsize=1)
def _impure_functions(*_: ModuleType | None) -> ImpureFunctions:
    return ImpureFunctions()


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)
