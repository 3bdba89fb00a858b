"""Locks and late imports that are safe when another thread forks the process.

A forked child has one thread, and the memory of all others as it was: a lock that another thread of
the parent held stays locked in the child for ever, and the state under it stays inconsistent. Three
mechanisms:

- `new_lock`: locks of this package are recreated in the child.
- A fork waits for `no_fork` and for the locks registered with `hold_at_forks`. They guard state
  that a child could not repair: a half imported module, and the state of LLVM and Numba. Threads
  that hold them wait for no other lock of this package, so there is no deadlock.
- Objects registered with `tell_children` discard in the child the work of the parent's other
  threads.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """A reentrant lock that is free in a forked child, unless the forking thread holds it.

    Reentrant because only such a lock knows its owner.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[T]):  # noqa: N801 - a decorator, as in functools
    """`functools.cached_property`, whose lock (Python 3.11 has one) is recreated in children."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if (lock := getattr(self, "lock", None)) is not None:
            _locks.add(lock)


numba_threads = new_lock()
"""Held by who has Numba launch parallel loops: some threading layers abort when two do."""
no_fork = new_lock()
"""Held during an import inside a function: forks of other threads wait for it."""

_PATIENCE = 30.0  # seconds that a fork waits for a lock before it goes on without
_of_others: list[tuple[str, str]] = []


def hold_at_forks(module: str, path: str) -> None:
    """Make forks wait for the `threading.RLock` ``path`` of ``module``, once that is imported.

    Locks are taken in the order of these calls, after `no_fork`.
    """
    _of_others.append((module, path))


def late_import(module: str) -> Any:
    """The module of this name, imported now if need be. Forks of other threads wait meanwhile: a
    child could not finish a half imported module."""
    with no_fork:
        return import_module(module)


@contextmanager
def late_import_that_logs() -> Generator[None]:
    """Hold `no_fork`, for modules that use `logging` where forks wait for them.

    `logging` holds its own lock at forks too. That has to be taken after ours, or a fork and a
    thread deadlock. Python takes fork locks in the opposite order of the modules' imports.
    """
    global _logging_is_older
    with no_fork:
        if not _logging_is_older:
            import_module("logging")  # slow, so not before it is needed
            _wait_at_forks()
            _logging_is_older = True
        yield


class Told(Protocol):
    """An object with a fork handler."""

    def after_fork(self) -> None:
        """Called in a forked child, whose only thread is the one that forked; locks are free."""
        ...


_told: weakref.WeakSet[Any] = weakref.WeakSet()


def tell_children(told: Told) -> None:
    """Call ``told.after_fork`` in forked children while ``told`` is alive (held weakly)."""
    _told.add(told)


class _Forking(threading.local):
    """The locks held by the fork that this thread is making."""

    def __init__(self) -> None:
        self.held: list[list[Any]] = []


_forking = _Forking()


def _hold() -> None:
    locks: list[Any] = [no_fork]
    _forking.held.append(locks)
    try:
        _acquire([no_fork])
    finally:  # looked up now: the thread waited for may have imported their modules
        for module, path in _of_others:
            with suppress(KeyError, AttributeError):  # not imported, or only half
                locks.append(attrgetter(path)(sys.modules[module]))
        _acquire(locks[1:])


def _acquire(locks: Sequence[Any]) -> None:
    """Take all locks, also when a signal handler raises meanwhile: Python forks all the same."""
    if locks:
        try:
            locks[0].acquire(timeout=_PATIENCE)
        finally:
            _acquire(locks[1:])


def _release() -> None:
    for lock in reversed(_forking.held.pop()):
        with suppress(RuntimeError):  # it was not taken
            lock.release()


def _wait_at_forks() -> None:
    """Register the fork handlers; ours run before those that were registered earlier."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)


def _begin_anew() -> None:
    """In a child: recreate the locks, then run the registered handlers."""
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()  # as the standard library does with its own
    for told in list(_told):
        told.after_fork()


_logging_is_older = "logging" in sys.modules
_wait_at_forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
