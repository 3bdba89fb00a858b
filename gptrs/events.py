"""Where tracing, passes and loaders report what they do. Silent and free when nobody listens.

An event is any frozen dataclass; a listener is a function that looks at the ones it knows:

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
    """Whether an event would reach anybody: ask before building a costly one."""
    return bool(_listeners.get())


def emit(event: object) -> None:
    """Hand ``event`` to every listener of this context."""
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
    """Inside the block nobody is listening: for what is done on the side, to measure."""
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)
