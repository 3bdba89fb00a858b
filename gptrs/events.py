"""Event bus: tracing, passes, plans and loaders emit events; debug and cli listen.

Listeners belong to a context (`contextvars`). Without one, `emit` does nothing. An event is any
frozen dataclass; a listener is a function that handles the types it knows:

    with events.listen(print):
        model = gptrs.load(path)

Work that may take long (`working`) is told to a watcher of the whole process, whatever the context:
progress is shown for all threads and all cells of a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from gptrs.lazy_dataclass import dataclass

Listener = Callable[[object], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("gptrs_listeners", default=())
_silent: ContextVar[bool] = ContextVar("gptrs_silent", default=False)


def listening() -> bool:
    """Whether this context has a listener; checked before building a costly event."""
    return bool(_listeners.get())


def emit(event: object) -> None:
    """Call every listener of this context with ``event``."""
    for listener in _listeners.get():
        listener(event)


@contextmanager
def listen(listener: Listener) -> Generator[None]:
    """Call ``listener`` with every event emitted inside the block, in this context."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def silence() -> Generator[None]:
    """Remove all listeners inside the block, for measurements that should emit no events."""
    token, silent = _listeners.set(()), _silent.set(True)
    try:
        yield
    finally:
        _listeners.reset(token)
        _silent.reset(silent)


@dataclass(eq=False)
class Work:
    """Work that is going on: ``done`` of ``total`` parts (0: not known), called ``unit``."""

    what: str
    total: int = 0
    unit: str = ""
    done: int = 0


class Watcher(Protocol):
    """Told of all `Work` of this process, on the threads that do it."""

    def begin(self, work: Work) -> None: ...

    def end(self, work: Work) -> None: ...


_watchers: list[Watcher] = []  # of which there is one at most


def watch_work(watcher: Watcher | None) -> None:
    """Have ``watcher`` be told of work, in place of another one."""
    _watchers[:] = [] if watcher is None else [watcher]


@contextmanager
def working(what: str, total: int = 0, unit: str = "") -> Generator[Work]:
    """Work in the block; who does it counts ``done``. It is not told inside of `silence`."""
    work = Work(what, total, unit)
    watchers = () if _silent.get() else (*_watchers,)
    try:
        for watcher in watchers:
            watcher.begin(work)
        yield work
    finally:
        for watcher in watchers:
            watcher.end(work)
