"""Execution modes of a context: ``ptir.eager`` and ``ptir.backend``, before their settings.

One context variable for both, so that a call compares one; unset, GPTRS_EAGER and GPTRS_BACKEND
apply. `chosen_here` is part of the fast key of a call, together with ``ptir.debug_nans``.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple

from gptrs import settings
from gptrs.backends.selection import check_name
from gptrs.ir.nan_watch import mode_here
from gptrs.jit.overrides import Policies, checkpoint_overrides


class Chosen(NamedTuple):
    """The modes that a context sets; None leaves one to its setting."""

    eager: bool | None = None
    backend: str | None = None


@lru_cache
def _one(eager: bool | None, backend: str | None) -> Chosen:
    """One object for each choice: native calls compare it by identity."""
    return Chosen(eager, backend)


_chosen: ContextVar[Chosen] = ContextVar("gptrs_modes", default=_one(None, None))  # noqa: B039


def chosen_here() -> tuple[Hashable, ...]:
    """What `eager`, `backend` and ``ptir.debug_nans`` set in this context, for the fast key."""
    return _chosen.get(), mode_here.get()


def is_eager() -> bool:
    """Whether decorated functions run op by op: `eager` in this context, else ``GPTRS_EAGER``."""
    chosen = _chosen.get().eager
    return settings.eager() if chosen is None else chosen


def backend_name() -> str:
    """The backend of this context: `backend`, else ``GPTRS_BACKEND``."""
    return _chosen.get().backend or settings.backend()


@contextmanager
def eager(enabled: bool = True) -> Generator[None]:
    """Inside the block every op of a decorated function runs at once, on real values."""
    token = _chosen.set(_one(enabled, _chosen.get().backend))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def backend(name: str) -> Generator[None]:
    """Inside the block programs run on the backend called ``name``.

    A function decorated with ``backend=...`` keeps its own. Raises `ArgumentError` for an unknown
    name.
    """
    check_name(name)
    token = _chosen.set(_one(_chosen.get().eager, name))
    try:
        yield
    finally:
        _chosen.reset(token)


def model_scope(policies: Policies, chosen: str | None) -> AbstractContextManager[object]:
    """Inside the block the ``policies`` of a checkpoint hold, and the backend that was ``chosen``
    for a model, if any."""
    if not policies and chosen is None:  # each token of a text comes here
        return nullcontext()
    stack = ExitStack()
    if policies:
        stack.enter_context(checkpoint_overrides(policies))
    if chosen is not None:
        stack.enter_context(backend(chosen))
    return stack
