"""``gptrs.progress``: lines of progress for compiling, loading and generating.

Input: the `Work` of `gptrs.events`. While some of it goes on for longer than a quarter of a second,
a thread draws the innermost part ten times a second; when all has ended, also by an interrupt, what
was drawn is removed. In notebooks it is on, elsewhere it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Thread

from gptrs.cell_names import running_shell
from gptrs.events import Work, watch_work
from gptrs.locks import new_lock, tell_children
from gptrs.notebook.display import Display, NotebookDisplay, TerminalDisplay

_PATIENCE = 0.25  # seconds after which work is shown
_INTERVAL = 0.1
_LONGEST = 1.0  # seconds that the end of work waits for the removal of its line


def progress(on: bool = True) -> None:
    """Show what long work does while it goes on: compiling, loading, generating.

    A notebook shows a bar, a terminal a line on stderr, both gone at the end; where stderr is
    no terminal, nothing is shown. In notebooks this is on when gptrs is imported;
    ``gptrs.progress(False)`` ends it.
    """
    shell, new = running_shell(), Progress(_display) if on else None
    if shell is not None:
        for old in _shown:
            with suppress(ValueError):  # it began before this IPython
                shell.events.unregister("post_run_cell", old.end_all)
        if new is not None:
            shell.events.register("post_run_cell", new.end_all)
    _shown[:] = [] if new is None else [new]
    watch_work(new)


def _display() -> Display:
    is_notebook = getattr(running_shell(), "kernel", None) is not None
    return NotebookDisplay() if is_notebook else TerminalDisplay()


_shown: list[Progress] = []  # one at most


class Progress:
    """The work of this process, shown by what ``make`` returns, a new one each time."""

    def __init__(self, make: Callable[[], Display]) -> None:
        self._make = make
        self._lock = new_lock()
        self._works: list[Work] = []
        self._drawing: _Drawing | None = None
        tell_children(self)

    def begin(self, work: Work) -> None:
        """``work`` begins on this thread."""
        with self._lock:
            self._works.append(work)
            if self._drawing is None:
                with suppress(RuntimeError):  # no thread can be had, or not any more
                    self._drawing = _Drawing(self._works, self._make())

    def end(self, work: Work) -> None:
        """``work`` has ended. With the last one, its line is gone on return."""
        with self._lock:
            with suppress(ValueError):  # `end_all` ended it
                self._works.remove(work)
            drawing = None
            if not self._works:
                drawing, self._drawing = self._drawing, None
        if drawing is not None:
            drawing.end()

    def end_all(self, *_: object) -> None:
        """Called after a cell: an interrupt can come between any two steps of Python, and leave
        work that nobody ends."""
        for work in [*self._works]:
            self.end(work)

    def after_fork(self) -> None:
        """In a child process: the thread that draws is the parent's."""
        self._works.clear()
        self._drawing = None


class _Drawing:
    """The thread that draws the work of a list until it is told to end."""

    def __init__(self, works: Sequence[Work], display: Display) -> None:
        self._works, self._display = works, display
        self._ended = Event()
        # In this context, which says to which cell the output belongs.
        run = copy_context().run
        self._thread = Thread(target=run, args=(self._draw,), name="gptrs-progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Remove what was drawn."""
        self._ended.set()
        self._thread.join(_LONGEST)

    def _draw(self) -> None:
        wait, drawn = _PATIENCE, False
        while not self._ended.wait(wait):
            if works := [*self._works]:
                self._display.show(described(works), share_of(works[-1]))
                drawn = True
            wait = _INTERVAL
        if drawn:
            self._display.clear()


def described(works: Sequence[Work]) -> str:
    """``generating › compiling gpt2 › compiling 3 of 14 kernels``."""
    return " › ".join(map(_text, works))


def _text(work: Work) -> str:
    if not work.done:
        return work.what
    if not work.unit:
        return f"{work.what} {100 * (share_of(work) or 0.0):.0f} %"
    of = f" of {work.total}" if work.total else ""
    return f"{work.what} {work.done}{of} {work.unit}"


def share_of(work: Work) -> float | None:
    """How much of it is done, from 0 to 1; None where that is not known."""
    return min(work.done / work.total, 1.0) if work.total else None
