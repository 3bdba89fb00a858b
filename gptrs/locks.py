"""Locks in a process that forks.

A forked child has one thread, and the memory of all the others as they were: a lock that another
thread of the parent held stays locked in the child for ever, and what that thread was doing stays
half done. Hence three mechanisms:

- Locks of this package are made by `new_lock`, and made anew in the child.
- A fork waits for `no_fork` and for the locks named to `hold_at_forks`: they guard what a child
  could not mend, which is a module that is half imported, and the state of LLVM and Numba. Threads
  that hold them wait for no other lock of this package, so nobody waits in a circle.
- Objects given to `tell_children` drop in the child what other threads of the parent were doing.
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
    """A reentrant lock that a forked child finds free, unless the thread that forked has it.

    Reentrant, as only such a lock knows whose it is.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class cached_property(functools.cached_property[T]):  # noqa: N801 - a decorator, as in functools
    """`functools.cached_property`, whose lock (Python 3.11 has one) is as those of `new_lock`."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if (lock := getattr(self, "lock", None)) is not None:
            _locks.add(lock)


numba_threads = new_lock()
"""Held by who has Numba launch parallel loops: some threading layers abort when two do."""
no_fork = new_lock()
"""Held by a thread that imports modules late, in a function: forks of other threads wait."""

_PATIENCE = 30.0  # seconds that a fork waits for a lock; then it is made all the same
_of_others: list[tuple[str, str]] = []


def hold_at_forks(module: str, path: str) -> None:
    """Have forks wait for the `threading.RLock` ``path`` of ``module``, once that is imported.

    Locks are taken in the order of these calls, after `no_fork`.
    """
    _of_others.append((module, path))


@contextmanager
def late_import_that_logs() -> Generator[None]:
    """Hold `no_fork`, for modules that use `logging` where forks wait for them.

    `logging` holds its own lock at forks too. That has to be taken after ours, or a fork has the
    one and a thread the other for which each waits. Python takes them in the order opposite to that
    in which the modules were imported.
    """
    global _logging_is_older
    with no_fork:
        if not _logging_is_older:
            import_module("logging")  # slow, so not before it is needed
            _wait_at_forks()
            _logging_is_older = True
        yield


class Told(Protocol):
    """What is told of forks."""

    def after_fork(self) -> None:
        """Called in a forked child, whose only thread is the one that forked; locks are free."""
        ...


_told: weakref.WeakSet[Any] = weakref.WeakSet()


def tell_children(told: Told) -> None:
    """Call ``told.after_fork`` in forked children, as long as somebody else keeps ``told``."""
    _told.add(told)


class _Forking(threading.local):
    """What the fork that this thread is making holds."""

    def __init__(self) -> None:
        self.held: list[list[Any]] = []


_forking = _Forking()


def _hold() -> None:
    locks: list[Any] = [no_fork]
    _forking.held.append(locks)
    try:
        _acquire([no_fork])
    finally:  # look the others up now: the thread waited for may have imported their modules
        for module, path in _of_others:
            with suppress(KeyError, AttributeError):  # not imported, or only half
                locks.append(attrgetter(path)(sys.modules[module]))
        _acquire(locks[1:])


def _acquire(locks: Sequence[Any]) -> None:
    """Take all of them, also when a signal handler raises meanwhile: Python forks all the same."""
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
    """Have forks wait from now on, before any lock is taken for which others let forks wait."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)


def _begin_anew() -> None:
    """What a child does first."""
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()  # as the standard library does with its own
    for told in list(_told):
        told.after_fork()


_logging_is_older = "logging" in sys.modules
_wait_at_forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
