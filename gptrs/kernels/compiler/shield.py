"""Compilation shielded from signal handlers: run in another thread while the main thread waits.

Python runs signal handlers in the main thread, between any two steps of the code that runs there,
and an exception of a handler (KeyboardInterrupt is the usual case) appears at that step. Numba and
llvmlite do not survive this: a package that was imported half is broken for good, locks stay held,
and Numba reports the exception as an error of the function that it compiles. So the main thread has
another thread compile and load kernels, and waits. Handlers run at once; an exception of a handler
is raised when the work is done, or at once when it is the second one: the work goes on then, and
its result is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Lock, Thread, current_thread, main_thread
from typing import Generic, TypeVar

from gptrs.locks import tell_children

T = TypeVar("T")


def shielded(function: Callable[[], T]) -> T:
    """The result of ``function``, or the exception that it raises.

    The main thread starts a thread for it, which takes some 50 us. Others have no signal handlers.
    """
    if current_thread() is not main_thread():
        return function()
    while True:
        work = _ThreadCall(function)
        try:
            Thread(target=copy_context().run, args=(work.run,), name="gptrs-shield").start()
            work.ended.acquire()
        except BaseException as error:
            if work.take() is not None:  # the thread has not begun with it
                if isinstance(error, RuntimeError):  # no thread can be had, or not any more
                    return function()
            elif not work.is_over:
                work.ended.acquire()  # a program that ends now should not end within it
            raise
        if work.error is not None:
            raise work.error
        if work.results:
            return work.results[0]
        # A handler has forked, and this is the child: the other thread is in the parent alone.


class _ThreadCall(Generic[T]):
    """One call of a function by another thread."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._functions = [function]
        self.results: list[T] = []
        self.error: BaseException | None = None
        self.is_over = False
        self.ended = Lock()
        """Let go when it is over."""
        self.ended.acquire()
        tell_children(self)

    def take(self) -> Callable[[], T] | None:
        """The function at the first call, None at others."""
        try:
            return self._functions.pop()
        except IndexError:
            return None

    def run(self) -> None:
        """Call the function, unless it was taken."""
        try:
            if (function := self.take()) is not None:
                self.results.append(function())
        except BaseException as error:
            self.error = error
        finally:
            self._end()

    def after_fork(self) -> None:
        if self.ended.locked():
            self._end()

    def _end(self) -> None:
        self.is_over = True
        self.ended.release()
