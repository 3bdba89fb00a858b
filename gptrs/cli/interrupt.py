"""Reliable handling of Ctrl-C.

Python raises KeyboardInterrupt at any point, and in a callback of the interpreter (an import lock,
a finalizer) the exception is printed and dropped. So it is recorded too, and `check` raises it
again where the command can end. `deferred` keeps it out of code that must not stop half way;
in a `stoppable` block it ends the block and not the command.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

_heard = False
_deferring = False
_stoppable = False


def listen() -> None:
    """Install the handler: record interrupts, and print nothing about dropped ones."""
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable


def check() -> None:
    """Raise KeyboardInterrupt if there was one."""
    if _heard:
        raise KeyboardInterrupt


@contextmanager
def deferred() -> Generator[None]:
    """An interrupt inside the block is raised at its end."""
    global _deferring
    _deferring = True
    try:
        yield
    finally:
        _deferring = False
    check()


@contextmanager
def stoppable() -> Generator[Callable[[], bool]]:
    """In the block the first interrupt raises nothing: the function that is given says that there
    was one, and the block should end. It is forgotten at the end. A second one raises."""
    global _stoppable, _heard
    _stoppable, _heard = True, False
    try:
        yield lambda: _heard
    finally:
        _stoppable = _heard = False


def forget() -> None:
    """Go on after a KeyboardInterrupt that was caught."""
    global _heard
    _heard = False


def _interrupt(signum: int, frame: object) -> None:
    global _heard
    first, _heard = not _heard, True
    if not _deferring and not (_stoppable and first):
        raise KeyboardInterrupt


def _unraisable(dropped: sys.UnraisableHookArgs) -> None:
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
