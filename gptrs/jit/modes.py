"""How decorated functions run in this context: traced or eagerly, and on which backend."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gptrs import settings
from gptrs.backends.discovery import get_backend

_eager: ContextVar[bool | None] = ContextVar("gptrs_eager", default=None)
_backend: ContextVar[str | None] = ContextVar("gptrs_backend", default=None)


@dataclass(frozen=True)
class _Settings:
    """What `settings` says, and the texts that it said it of."""

    texts: tuple[object, object]
    eager: bool
    backend: str


_last = _Settings((None, None), settings.eager.default, settings.backend.default)
_names = tuple(os.environ.encodekey(s.name) for s in (settings.eager, settings.backend))


def is_eager() -> bool:
    """Whether decorated functions run op by op: `eager` in this context, else ``GPTRS_EAGER``."""
    chosen = _eager.get()
    return settings.eager() if chosen is None else chosen


def backend_name() -> str:
    """The backend of this context: `backend`, else ``GPTRS_BACKEND``."""
    return _backend.get() or settings.backend()


def mode() -> str | None:
    """`backend_name`, or None where `is_eager`, in a tenth of the time.

    Settings are read again when a text in the environment has changed. The dict behind
    `os.environ` shows that without the error that `os.environ` makes and catches for a variable
    that is not set.
    """
    global _last
    texts: Any = getattr(os.environ, "_data", None)
    if texts is None:  # not the one of the standard library
        return None if is_eager() else backend_name()
    eager, backend = _names
    now = texts.get(eager), texts.get(backend)
    last = _last
    if last.texts != now:
        last = _Settings(now, settings.eager(), settings.backend())
        if (texts.get(eager), texts.get(backend)) == now:  # no other thread changed it
            _last = last
    chosen = _eager.get()
    if last.eager if chosen is None else chosen:
        return None
    return _backend.get() or last.backend


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
