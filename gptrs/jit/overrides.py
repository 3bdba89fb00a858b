"""``ptir.overrides``: policies that select the implementation of a composite, from four sources.

Inner sources win, for each composite separately: GPTRS_OVERRIDES, then the checkpoint of the model
that is called, then ``ptir.jit(overrides=...)``, then ``with ptir.overrides(...)``. `in_effect`
merges them into one `Overrides`, whose key is part of the program's key; `gptrs.jit.chooser`
applies it. Policies are texts: ``force=<implementation>`` or ``benchmark(cache=64)``.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeAlias

from gptrs import settings
from gptrs.errors import ArgumentError, PtirError, SettingError, TraceError
from gptrs.ir.dispatch import current
from gptrs.ir.implementation import KERNEL, PORTABLE
from gptrs.ir.implementations.registry import composite_named, registered, suggestion
from gptrs.lazy_dataclass import dataclass

_FORCE = re.compile(r"force\s*=\s*(\w+)")
_BENCHMARK = re.compile(r"benchmark\s*(?:\(\s*(?:cache\s*=\s*(\d{1,9})\s*)?\))?", re.ASCII)
_FORMS = "'force=<implementation>' or 'benchmark(cache=<number of winners kept>)'"
_ENVIRONMENT = "GPTRS_OVERRIDES"


@dataclass(frozen=True)
class Force:
    """Policy: run the implementation of this name."""

    implementation: str

    def __str__(self) -> str:
        return f"force={self.implementation}"


@dataclass(frozen=True)
class Benchmark:
    """Policy: run the fastest implementation; ``cache`` is the number of winners kept."""

    cache: int = 64

    def __str__(self) -> str:
        return f"benchmark(cache={self.cache})"


Policy: TypeAlias = Force | Benchmark
Policies: TypeAlias = tuple[tuple[str, Policy], ...]
"""Pairs of composite and policy, sorted."""


@dataclass(frozen=True)
class Overrides:
    """The policies in effect. ``key`` describes them with the implementations that they may pick:
    calls with equal keys can share programs."""

    policies: Mapping[str, Policy]
    key: str


NONE = Overrides({}, "none")

# Policies of the checkpoint of the model that is being called, and of `overrides` blocks.
_scopes: ContextVar[tuple[Policies, Policies]] = ContextVar("gptrs_overrides", default=((), ()))


def chosen_here() -> tuple[Hashable, ...]:
    """The inputs of `in_effect` besides a function's own policies and GPTRS_OVERRIDES, for the fast
    key."""
    return _scopes.get(), registered()


def in_effect(option: Policies = ()) -> Overrides:
    """The policies in effect for a function decorated with ``option``.

    Raises `SettingError` for a ``GPTRS_OVERRIDES`` that cannot be read.
    """
    text = settings.overrides()
    checkpoint, context = _scopes.get()
    if not (context or checkpoint or option or text):
        return NONE
    return _combined(text, (checkpoint, option, context), registered())


@contextmanager
def overrides(policies: Mapping[str, str]) -> Generator[None]:
    """Inside the block the composites named run as their policies say:
    ``{"softmax": "force=two_pass", "attention": "benchmark(cache=64)"}``.

    ``force`` picks an implementation by name; ``portable`` is the definition, ``kernel`` the
    backend's. ``benchmark`` times all that may run, once, at the shapes of the call that is traced,
    and remembers the winner (the promise of equal bits over batch sizes does not cover it). It
    holds for decorated functions that are called in the block; in eager mode too, where ``force``
    alone has a meaning and ``kernel`` none. Raises `ArgumentError` listing what is known for names
    and policies that are not, `TraceError` inside of a traced function.
    """
    found = parse(policies, "ptir.overrides", ArgumentError)
    if current() is not None:
        raise TraceError(
            "ptir.overrides stands inside a traced function, where it changes nothing",
            fix="put it around the call, or write @ptir.jit(overrides={...})",
        )
    checkpoint, context = _scopes.get()
    token = _scopes.set((checkpoint, _merged(context, found)))
    try:
        yield
    finally:
        _scopes.reset(token)


@contextmanager
def checkpoint_overrides(policies: Policies) -> Generator[None]:
    """Inside the block the policies of a checkpoint hold, where nothing else overrides them."""
    token = _scopes.set((policies, _scopes.get()[1]))
    try:
        yield
    finally:
        _scopes.reset(token)


def parse(policies: object, place: str, error: type[PtirError]) -> Policies:
    """Policies by the name of a composite, read and checked.

    Raises ``error`` naming ``place`` and the text, with the forms or names that are known.
    """
    if not isinstance(policies, Mapping):
        raise error(
            f"{place}: found {policies!r}, expected policies by the name of a composite",
            fix='{"softmax": "force=portable"}',
        )
    found: dict[str, Policy] = {}
    for name, text in policies.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or not isinstance(text, str):
            raise error(
                f"{place}: {name!r}: {text!r} is no pair of strings, a composite and its policy"
            )
        found[name] = _policy(name, text, place, error)
    return tuple(sorted(found.items()))


def _policy(name: str, text: str, place: str, error: type[PtirError]) -> Policy:
    composite = composite_named(name, place, error)
    if forced := _FORCE.fullmatch(text.strip()):
        known = (KERNEL, PORTABLE, *composite.implementations)
        if forced[1] not in known:
            raise error(
                f"{place}: {name} has no implementation {forced[1]!r}",
                fix=suggestion(forced[1], known),
            )
        return Force(forced[1])
    timed = _BENCHMARK.fullmatch(text.strip())
    if timed and timed[1] is None:
        return Benchmark()
    if timed and int(timed[1]) > 0:
        return Benchmark(int(timed[1]))
    raise error(f"{place}: {name}: found {text!r}, expected {_FORMS}")


@lru_cache(maxsize=64)
def _combined(environment: str, others: tuple[Policies, ...], registered: int) -> Overrides:
    """The policies of all places, outermost first. ``registered`` counts implementations: their
    texts are part of the key."""
    policies: dict[str, Policy] = dict(_of_environment(environment))
    for inner in others:
        policies.update(inner)
    if not policies:
        return NONE
    return Overrides(policies, "; ".join(_described(n, p) for n, p in sorted(policies.items())))


def _of_environment(text: str) -> Policies:
    """``softmax: force=two_pass; attention: benchmark(cache=64)``."""
    pairs: dict[str, str] = {}
    for part in filter(str.strip, text.split(";")):
        name, colon, policy = (word.strip() for word in part.partition(":"))
        if not colon or name in pairs:
            problem = "no pair of composite and policy" if not colon else "named twice"
            raise SettingError(
                f"{_ENVIRONMENT}={text!r}: {(name if colon else part.strip())!r} is {problem}",
                fix="write softmax: force=portable; attention: benchmark(cache=64)",
            )
        pairs[name] = policy
    return parse(pairs, _ENVIRONMENT, SettingError)


def _described(name: str, policy: Policy) -> str:
    """A policy with the implementations that it may pick."""
    known = composite_named(name, "overrides").implementations
    if isinstance(policy, Benchmark):
        others = ", ".join(str(known[other]) for other in sorted(known))
        return f"{name}: {policy} of {others}" if others else f"{name}: {policy}"
    chosen = known.get(policy.implementation)
    return f"{name}: force={chosen or policy.implementation}"


def _merged(outer: Policies, inner: Policies) -> Policies:
    return tuple(sorted({**dict(outer), **dict(inner)}.items()))
