"""Reliable handling of Ctrl-C.

Python raises KeyboardInterrupt at any point, and in a callback of the interpreter (an import lock,
a finalizer) the exception is printed and dropped. So it is recorded too, and `check` raises it
again where the command can end. `deferred` keeps it out of code that must not stop half way.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

_heard = False
_deferring = False


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


def _interrupt(signum: int, frame: object) -> None:
    global _heard
    _heard = True
    if not _deferring:
        raise KeyboardInterrupt


def _unraisable(dropped: sys.UnraisableHookArgs) -> None:
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
