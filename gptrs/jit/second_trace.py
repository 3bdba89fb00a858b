"""GPTRS_DEBUG: a second trace of a function, compared with the first.

Between the two, the state that the first has changed (`gptrs.jit.outer_state`) is put back, so that
both start alike: programs that differ then are not deterministic. The lines that change state are
found on the way, by `sys.settrace`. Afterwards the state is as the first trace left it, and so are
random number generators; what the second one prints is left out.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from threading import get_ident
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from gptrs import events
from gptrs.debug.diff import first_difference
from gptrs.errors import (
    Location,
    NondeterminismWarning,
    SideEffectWarning,
    is_internal,
    shown,
    warn,
)
from gptrs.ir.call_stack import recorded_calls
from gptrs.ir.promotion import strictness
from gptrs.ir.traced import described
from gptrs.jit.arguments import Arguments
from gptrs.jit.code import is_library
from gptrs.jit.options import Options
from gptrs.jit.outer_state import Change, Contents, OuterState, Watched
from gptrs.jit.trace import Traced, trace

_RETURN = "return the new value, or change it in a function that ptir.callback calls"
_DETERMINE = (
    "pass what changes as an argument, draw with ptir.random and a key, bring sets into an order"
)


class SecondTrace:
    """The state before the first trace of ``function``; `compare` makes the second."""

    def __init__(
        self, function: FunctionType, arguments: Arguments, name: str, options: Options
    ) -> None:
        self._function, self._arguments = function, arguments
        self._name, self._options = name, options
        self._state = OuterState(function, arguments)

    def compare(self, first: Traced) -> None:
        """Trace once more. Warn of what the ``first`` trace changed outside of the function, and of
        the first difference between the two."""
        watched = self._state.watched
        after = [each.now() for each in watched]
        changes = [(each, change) for each in watched for change in each.changes()]
        lines = _Lines([each for each, _ in changes])
        generators = _states(self._state.objects)
        for each in watched:
            each.write(each.before)
        try:
            with _unheard(), lines.found_by_tracing():
                found = self._again(first)
        finally:
            for each, contents in zip(watched, after, strict=True):
                each.write(contents)
            for write, state in generators:
                write(state)
        for each, change in changes:
            _warn(self._described(change), SideEffectWarning, lines.where.get(each))
        if found is not None:
            text, where = found
            _warn(f"{text}. Fix: {_DETERMINE}.", NondeterminismWarning, where)

    def _again(self, first: Traced) -> tuple[str, Location | None] | None:
        """The difference of a second trace from the ``first``, and its line."""
        try:
            with strictness(self._options.strict_dtypes), recorded_calls(), events.silence():
                second = trace(self._function, self._arguments, self._name, quiet=True)
        except Exception as error:
            raised = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
            return f"a second trace of {self._name}, unlike the first, raised {raised}", None
        differ = f"two traces of {self._name} differ, and later calls run the first"
        if (lines := first_difference(first.program, second.program)) is not None:
            old, new = (line.text.strip() or "nothing" for line in lines)
            new = "the same with other elements" if old == new else new
            return f"{differ}: {old}, then {new}", lines[0].where or lines[1].where
        for old, new in zip(first.results, second.results, strict=False):
            if isinstance(old, bool | int | float | complex | str) and shown(old) != shown(new):
                return f"{differ}: a result is {shown(old)}, then {shown(new)}", None
        return None

    def _described(self, change: Change) -> str:
        if change.leaked is None:
            later = f"while {self._name} is traced, and in no later call"
            return f"{change.what} changes {later}. Fix: {_RETURN}."
        return (
            f"{change.what} keeps a traced value ({described(change.leaked)}) when {self._name} has"
            " been traced: it has no elements, and its use is an error. Fix: return it from the"
            " function."
        )


def _warn(text: str, category: type[Warning], where: Location | None) -> None:
    """Warn at the line ``where``, or at that of the call."""
    if where is None:
        warn(text, category)
    else:
        warnings.warn_explicit(text, category, where.file, where.line)


class _Lines:
    """A trace function that finds the lines of user code which change the holders ``watched``."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        self.where: dict[Watched, Location] = {}
        self._pending: dict[Watched, Contents] = {}
        self._watched = watched
        self._last: Location | None = None

    @contextmanager
    def found_by_tracing(self) -> Generator[None]:
        """Inside the block `sys.settrace` is in use, if something is to be found and no debugger
        or coverage tool uses it."""
        if not self._watched or sys.gettrace() is not None:
            yield
            return
        self._pending = {each: each.now() for each in self._watched}
        sys.settrace(self)
        try:
            yield
        finally:
            if sys.gettrace() is self:
                sys.settrace(None)

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if _is_library(frame):
            return None
        return self._line(frame, event, argument)

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        for each, before in list(self._pending.items()):
            if self._last is not None and each.is_changed(before):
                self.where[each] = self._last
                del self._pending[each]
        at: FrameType | None = frame
        if event == "return":
            at = frame.f_back
            while at is not None and _is_library(at):
                at = at.f_back
        if at is not None:
            self._last = Location(at.f_code.co_filename, at.f_lineno, at.f_code.co_qualname)
        return self._line


def _is_library(frame: FrameType) -> bool:
    return is_internal(frame) or is_library(str(frame.f_globals.get("__name__", "")))


def _states(objects: Sequence[object]) -> list[tuple[Callable[[Any], object], Any]]:
    """The states of the random number generators of Python and NumPy, and of those among
    ``objects``, with the functions that set them."""
    found: list[tuple[Callable[[Any], object], Any]] = [(random.setstate, random.getstate())]
    found.append((np.random.set_state, np.random.get_state(legacy=False)))
    for each in objects:
        if isinstance(each, random.Random) and not isinstance(each, random.SystemRandom):
            found.append((each.setstate, each.getstate()))
        elif isinstance(each, np.random.RandomState):
            found.append((each.set_state, each.get_state(legacy=False)))
        elif isinstance(each, np.random.Generator):
            bits = each.bit_generator
            found.append((lambda state, bits=bits: setattr(bits, "state", state), bits.state))
    return found


class _Muted:
    """A stream without what this thread writes."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._thread = stream, get_ident()

    def write(self, text: str) -> int:
        return len(text) if get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _unheard() -> Generator[None]:
    """Inside the block, what this thread prints is left out."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None:
                muted = _Muted(stream)
                setattr(sys, name, muted)
                stack.callback(_put_back, name, muted, stream)
        yield


def _put_back(name: str, muted: _Muted, stream: Any) -> None:
    if getattr(sys, name) is muted:  # not replaced meanwhile
        setattr(sys, name, stream)
