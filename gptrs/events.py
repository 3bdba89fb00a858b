"""Event bus: tracing, passes, plans and loaders emit events; debug and cli listen.

Listeners belong to a context (`contextvars`). Without one, `emit` does nothing. An event is any
frozen dataclass; a listener is a function that handles the types it knows:

    with events.listen(print):
        model = gptrs.load(path)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[object], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("gptrs_listeners", default=())


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
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)
