"""Call sites: for each recorded instruction, the user's calls that led to it.

Inside of `recorded_calls`, which a trace is, the line of an instruction is a `CallSite`: the user's
line (`gptrs.errors.Location`) with the chain of calls from the traced function down to it, by
frame. Passes copy the line from instruction to instruction, so the chain is still there after all
of them. `gptrs.debug.view` and `gptrs.debug.profile` group programs by it. It takes an eighth of
the time of a trace. Layers are known by their paths: a program keeps no model alive, and serves
models that are loaded later.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from gptrs.errors import Location, is_internal, user_location
from gptrs.ir.operand_trees import is_module
from gptrs.lazy_dataclass import dataclass

_COMPREHENSIONS = frozenset(["<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"])


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a user's function while it was traced; two calls are equal when identical."""

    function: str
    """Its qualified name."""
    file: str
    line: int
    """The first line of its definition."""
    kind: str
    """The class of the layer or model whose method it is; empty for other functions."""
    path: str
    """The path of the layer in the outermost model that called it, as `Module.modules` names it."""


class CallSite(Location):
    """A line of the user's code, with the calls that led to it, the traced function first."""

    calls: tuple[Call, ...] = ()


class _Recording:
    """The calls below one frame. Frames and layers are kept, so that no two of them are taken for
    one."""

    def __init__(self, outermost: FrameType | None) -> None:
        self._outermost = outermost
        self._calls: dict[FrameType, Call] = {}
        self._paths: dict[int, str] = {}  # of layers, by id
        self._models: list[Any] = []

    def site(self, frame: FrameType | None) -> CallSite | None:
        """The user's line at or above ``frame``."""
        site: CallSite | None = None
        frames: list[FrameType] = []
        while frame is not None and frame is not self._outermost:
            if not is_internal(frame):
                code = frame.f_code
                if site is None:
                    site = CallSite(code.co_filename, frame.f_lineno, code.co_qualname)
                if code.co_name not in _COMPREHENSIONS:
                    frames.append(frame)
            frame = frame.f_back
        if site is not None:
            site.calls = tuple(self._call(each) for each in reversed(frames))
        return site

    def _call(self, frame: FrameType) -> Call:
        found = self._calls.get(frame)
        if found is None:
            code = frame.f_code
            first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            name = code.co_qualname.replace("<locals>.", "")
            layer = (type(first).__name__, self._path(first)) if is_module(first) else ("", "")
            found = Call(name, code.co_filename, code.co_firstlineno, *layer)
            self._calls[frame] = found
        return found

    def _path(self, layer: Any) -> str:
        """Callers come first, so a layer that has no path is the outermost one of its model."""
        if id(layer) not in self._paths:
            self._models.append(layer)
            for path, inner in layer.modules().items():
                self._paths.setdefault(id(inner), path)
        return self._paths[id(layer)]


_recording: ContextVar[_Recording | None] = ContextVar("gptrs_recorded_calls", default=None)


@contextmanager
def recorded_calls() -> Generator[None]:
    """Instructions that are recorded inside the block carry a `CallSite`; its calls are those below
    the caller of this function."""
    outermost: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while outermost is not None and outermost.f_globals.get("__name__") == "contextlib":
        outermost = outermost.f_back
    token = _recording.set(_Recording(outermost))
    try:
        yield
    finally:
        _recording.reset(token)


def call_location() -> Location | None:
    """`user_location`; inside of `recorded_calls` as a `CallSite`."""
    recording = _recording.get()
    if recording is None:
        return user_location()
    frame: FrameType = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    return recording.site(frame)
