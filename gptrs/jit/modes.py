"""Execution modes of a context: ``ptir.eager`` and ``ptir.backend``, before their settings.

A context variable each; unset, GPTRS_EAGER and GPTRS_BACKEND apply. `chosen_here` is part of the
fast key of a call.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar

from gptrs import settings
from gptrs.backends.discovery import get_backend

_eager: ContextVar[bool | None] = ContextVar("gptrs_eager", default=None)
_backend: ContextVar[str | None] = ContextVar("gptrs_backend", default=None)


def chosen_here() -> tuple[Hashable, ...]:
    """The values that `eager` and `backend` set in this context, for the fast key."""
    return _eager.get(), _backend.get()


def is_eager() -> bool:
    """Whether decorated functions run op by op: `eager` in this context, else ``GPTRS_EAGER``."""
    chosen = _eager.get()
    return settings.eager() if chosen is None else chosen


def backend_name() -> str:
    """The backend of this context: `backend`, else ``GPTRS_BACKEND``."""
    return _backend.get() or settings.backend()


@contextmanager
def eager(enabled: bool = True) -> Generator[None]:
    """Inside the block every op of a decorated function runs at once, on real values."""
    token = _eager.set(enabled)
    try:
        yield
    finally:
        _eager.reset(token)


@contextmanager
def backend(name: str) -> Generator[None]:
    """Inside the block programs run on the backend called ``name``.

    A function decorated with ``backend=...`` keeps its own. Raises `ArgumentError` for an unknown
    name.
    """
    get_backend(name)
    token = _backend.set(name)
    try:
        yield
    finally:
        _backend.reset(token)
