"""Tracebacks of IPython without internal frames: they end in the user's cell.

Python adds each frame that an exception leaves to its traceback, so that those of this package can
only be taken out where it is printed. IPython prints with one object, which gets a method that
takes them out first. GPTRS_TRACEBACK=1 keeps all frames.
"""

from __future__ import annotations

import functools
import sysconfig
from types import FrameType, TracebackType
from typing import Any

from gptrs import settings
from gptrs.errors import is_internal

_MAGICS = "gptrs.notebook.cells"
"""The module whose frames call the code of a cell with a magic."""
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})


def shorten_tracebacks(shell: Any) -> None:
    """Take internal frames out of the tracebacks that ``shell`` prints from now on."""
    printer = shell.InteractiveTB
    original = printer.structured_traceback
    if getattr(original, "is_shortened", False):
        return

    @functools.wraps(original)
    def structured_traceback(
        etype: Any = None, evalue: Any = None, etb: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if isinstance(evalue, BaseException) and not settings.full_traceback():
            _shorten(evalue, set())
            etb = user_entries(evalue, etb)
        return original(etype, evalue, etb, *args, **kwargs)

    structured_traceback.is_shortened = True  # type: ignore[attr-defined]
    printer.structured_traceback = structured_traceback


def _shorten(error: BaseException, seen: set[int]) -> None:
    """The same for the errors that led to ``error``, and of groups for their parts."""
    seen.add(id(error))
    parts: tuple[BaseException, ...] = getattr(error, "exceptions", ())  # of a group
    for other in (error.__cause__, error.__context__, *parts):
        if other is not None and id(other) not in seen:
            other.__traceback__ = user_entries(other, other.__traceback__)
            _shorten(other, seen)


def user_entries(error: BaseException, first: TracebackType | None) -> TracebackType | None:
    """The entries of the traceback of ``error``, which begins with ``first``, without internal
    frames, without those of libraries that they call, and without IPython's that call the code of a
    magic. All of it where nothing would be left.

    The lines of models and layers tell where an error is, and nothing about an interrupt.
    """
    is_interrupt = isinstance(error, KeyboardInterrupt)
    kept: list[TracebackType] = []
    within = False  # in a call of this package, which has not called code of the user again
    entry = first
    while entry is not None:
        frame = entry.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        if is_internal(frame) or (is_interrupt and module.startswith("gptrs.")):
            within = True
            if module == _MAGICS:
                del kept[1:]  # the first is the frame that IPython skips itself
        elif not within or not _is_of_library(frame):
            within = False
            kept.append(entry)
        entry = entry.tb_next
    made = None if kept else first
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made


def _is_of_library(frame: FrameType) -> bool:
    if str(frame.f_globals.get("__name__", "")).startswith("namedtuple_"):
        return True  # a constructor that the standard library wrote
    return frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen"))
