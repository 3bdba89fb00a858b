"""Warnings of impure calls in traced functions.

A trace runs Python once: what ``np.random.normal()`` gives becomes a constant of the program. The
functions of user code that the traversal of a call has reached (`gptrs.jit.captures`) are searched
for calls by names that lead to an impure function (`gptrs.jit.named_calls`, found once for each
code object). Only where there are any, the trace runs under `sys.settrace`, which tells calls that
are made from those in branches not taken. A cached call runs none of this.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from gptrs.errors import ImpureCallWarning
from gptrs.jit.captures import Captures
from gptrs.jit.code import is_library, names_in
from gptrs.jit.impure_functions import MODULES, NAMES, impure_functions
from gptrs.jit.named_calls import NamedCall, named_calls


@contextmanager
def impure_calls(captures: Captures, name: str) -> Generator[None]:
    """Warn of the impure calls that user code makes inside the block, which traces the function
    ``name``: an `ImpureCallWarning` for each line, when the block has ended. Under a debugger or a
    coverage tool, which use `sys.settrace` too, nothing is found."""
    watch = _Watch(captures)
    if not watch.calls or sys.gettrace() is not None:
        yield
        return
    sys.settrace(watch)
    try:
        yield
    finally:
        if sys.gettrace() is watch:  # not a debugger that the function started
            sys.settrace(None)
    for place, remedy in watch.found.items():
        _TOLD.tell(place, name, remedy)


class _Place(NamedTuple):
    """A call on a line."""

    file: str
    line: int
    text: str


class _Told:
    """The calls of which a warning was given, under the filters of warnings that are in place."""

    def __init__(self) -> None:
        self._places: set[_Place] = set()
        self._filters: object = None

    def tell(self, place: _Place, name: str, remedy: str) -> None:
        """Warn of a call that the trace of ``name`` makes, if that is new."""
        if self._filters is not warnings.filters:  # a block of `warnings.catch_warnings`
            self._places.clear()
            self._filters = warnings.filters
        if place not in self._places:
            warnings.warn_explicit(
                f"{place.text}() is called while {name} is traced, and in no later call: its result"
                f" is a constant of the program. Fix: {remedy}.",
                ImpureCallWarning,
                place.file,
                place.line,
            )
            self._places.add(place)


_TOLD = _Told()


class _Names(NamedTuple):
    """The names that the code of a function may use."""

    scope: dict[str, Any]
    builtins: Mapping[str, Any]
    cells: Mapping[str, Any]
    imports: bool
    """Whether it imports a module that has impure functions."""


class _Watch:
    """A trace function. ``calls`` are the calls that may be impure, by the id of their code and the
    offset of an instruction, with the remedy if it is known now; ``found`` are the remedies of
    those made."""

    def __init__(self, captures: Captures) -> None:
        self.calls: dict[int, dict[int, tuple[NamedCall, str]]] = {}
        self.found: dict[_Place, str] = {}
        self._codes: list[CodeType] = []  # must not be freed: their ids are keys
        self._impure = impure_functions()
        self._values = captures.reads.values
        generators = self._impure.generators
        self._outside = {id(value) for value in self._values if isinstance(value, generators)}
        for value in list(self._values):
            if type(value) is FunctionType and not is_library(value.__module__ or ""):
                self._search(value.__code__, _names_of(value))

    def _search(self, code: CodeType, names: _Names) -> None:
        """Add the calls in ``code``, and in the functions inside of it."""
        found = {call.offset: (call, remedy) for call, remedy in self._candidates(code, names)}
        if found:
            self.calls[id(code)] = found
            self._codes.append(code)
        for constant in code.co_consts:
            if type(constant) is CodeType:
                self._search(constant, names)

    def _candidates(self, code: CodeType, names: _Names) -> Iterator[tuple[NamedCall, str]]:
        for call in named_calls(code):
            if call.attributes and call.attributes[-1] not in NAMES:
                continue
            known: Mapping[str, Any]
            if call.scope == "global":
                known = names.scope if call.root in names.scope else names.builtins
            else:
                known = names.cells if call.scope == "cell" else {}
            if call.root not in known:  # a local name, which has a value when it is called
                if self._outside or names.imports:
                    yield call, ""
            elif remedy := self._remedy(known[call.root], call):
                yield call, remedy

    def _remedy(self, value: Any, call: NamedCall) -> str:
        """The remedy for ``call``, whose root is ``value``."""
        return self._impure.remedy(self._followed(value, call.attributes), call.is_empty)

    def _followed(self, value: Any, attributes: tuple[str, ...]) -> Any:
        """The attribute of an attribute of ``value``; no property is run."""
        for name in attributes:
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "gptrs":
                return None
            if isinstance(value, (ModuleType, type, *self._impure.generators)):
                value = getattr(value, name, None)
            else:
                value = getattr(value, "__dict__", {}).get(name)
        return value

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if id(frame.f_code) not in self.calls:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._instruction

    def _instruction(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "opcode":
            call, remedy = self.calls[id(frame.f_code)].get(frame.f_lasti, (None, ""))
            if call is not None and (remedy := remedy or self._local(call, frame)):
                self.found[_Place(frame.f_code.co_filename, call.line, str(call))] = remedy
        return self._instruction

    def _local(self, call: NamedCall, frame: FrameType) -> str:
        """The remedy for a call by a local name. A generator that the function has made itself
        draws the same numbers in each trace."""
        root = frame.f_locals.get(call.root)
        owner = getattr(self._followed(root, call.attributes), "__self__", None)
        is_own = isinstance(owner, self._impure.generators) and id(owner) not in self._outside
        return "" if is_own and not isinstance(root, ModuleType) else self._remedy(root, call)


def _names_of(function: FunctionType) -> _Names:
    scope = function.__globals__
    builtins = scope.get("__builtins__", {})
    cells: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    imports = not MODULES.isdisjoint(names_in(function.__code__).modules)
    known = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    return _Names(scope, known, cells, imports)
