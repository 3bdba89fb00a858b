"""A line of progress: in the output of a notebook's cell, or on a terminal."""

from __future__ import annotations

import shutil
import sys
from abc import ABC, abstractmethod
from typing import Any

from gptrs.html_tables import bar, fragment, styled

_WIPE = "\r\x1b[K"  # back to the begin of the line, and erase it


class Display(ABC):
    """One line, written again and again."""

    @abstractmethod
    def show(self, text: str, share: float | None) -> None:
        """Write ``text`` in place of what was shown; ``share``, from 0 to 1, is done."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the line."""


class NotebookDisplay(Display):
    """A bar and the text; an output of the cell that has nothing in it afterwards."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float | None) -> None:
        html = fragment(bar(share) if share is not None else "", " ", styled("dim", f"{text} …"))
        self._write({"text/html": html, "text/plain": f"{text} ..."})

    def clear(self) -> None:
        self._write({"text/html": "", "text/plain": ""})

    def _write(self, data: dict[str, str]) -> None:
        if self._handle is None:
            import IPython.display as ipython  # loaded already where this is used

            display: Any = getattr(ipython, "display")  # noqa: B009 - which has no full types
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class TerminalDisplay(Display):
    """A line on stderr, if that is a terminal."""

    def show(self, text: str, share: float | None) -> None:
        percent = "" if share is None else f"{100 * share:3.0f} % "
        columns = shutil.get_terminal_size().columns
        self._write(f"{_WIPE}{f'{percent}{text} …'[: columns - 1]}")

    def clear(self) -> None:
        self._write(_WIPE)

    def _write(self, text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(text)
            sys.stderr.flush()
