"""Programs for tests: recorded from functions, printed, parsed and run as Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parsing import parse
from gptrs.ir.program import Program, verify
from gptrs.ir.types import Type
from tests.cases.sample import several


def record(function: Callable[..., Any], *types: str, name: str = "f") -> Program:
    """The program of ``function`` for parameters of these types."""
    recorder = Recorder(name)
    params = [recorder.input(Type.parse(text), f"x{i}") for i, text in enumerate(types)]
    with interpreter(recorder):
        results = function(*params)
    return recorder.finish(several(results))


def retrace(text: str) -> Program:
    """The program of the function that ``text`` defines when it is run as Python."""
    scope: dict[str, Any] = {}
    exec(compile(text, "program", "exec", dont_inherit=True), scope)
    function = next(value for value in scope.values() if inspect.isfunction(value))
    recorder = Recorder(function.__name__)
    params = [recorder.input(Type.parse(t), n) for n, t in function.__annotations__.items()]
    with interpreter(recorder):
        return recorder.finish(several(function(*params)))


def assert_round_trip(program: Program) -> Program:
    """What is read from the text of ``program``, which prints as the same text."""
    text = str(program)
    read = parse(text)
    verify(read)
    assert str(read) == text
    assert [p.type for p in read.params] == [p.type for p in program.params]
    for before, after in zip(program.params, read.params, strict=True):
        assert (before.role, before.donated) == (after.role, after.donated)
    return read
