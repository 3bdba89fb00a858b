"""The ways to run a program: eager, the reference, and backends, with and without passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pytest

from gptrs.backends.base import Backend
from gptrs.ir.parameter import Parameter
from gptrs.ir.parsing import parse
from gptrs.ir.program import Program
from gptrs.ir.sizes import filled
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.jit.derived import run_of
from gptrs.passes.base import Context, Repeat, Stage, run_passes
from gptrs.passes.pipeline import PIPELINE
from tests.cases.sample import same_bits, several
from tests.fuzz.programs import Example

Arrays: TypeAlias = tuple[Array, ...]


def arguments(example: Example) -> list[Any]:
    """Arrays for inputs, parameters of a model for the others."""
    return [
        Parameter(array, param.name) if param.role == "parameter" else array
        for param, array in zip(example.program.params, example.arrays(), strict=True)
    ]


def run_twice(program: Program, backend: Backend, example: Example) -> Arrays:
    """Twice, as a plan is kept: nothing of the first call may be seen in the second."""
    run = run_of(program, backend.plan(program))
    given = arguments(example)
    first = run(given, example.sizes)
    kept = [array.copy() for array in first]
    again = run(arguments(example), example.sizes)
    for before, copy, after in zip(first, kept, again, strict=True):
        assert same_bits(before, copy), "a call changed the results of the call before it"
        assert same_bits(before, after), "a second call gives something else"
    _check_memory(example, given, first)
    return first


def _check_memory(example: Example, given: Sequence[Any], results: Arrays) -> None:
    borrowed = [
        argument.numpy() if isinstance(argument, Parameter) else argument
        for param, argument in zip(example.program.params, given, strict=True)
        if not param.donated
    ]
    for n, result in enumerate(results):
        for other in (*borrowed, *results[:n]):
            assert not np.may_share_memory(result, other), "a result shares memory"


def eagerly(example: Example) -> Arrays:
    """The printed program run as Python; symbols have no value in eager mode, so they get one."""
    concrete = cast("Program", filled(example.program, example.sizes))
    scope: dict[str, Any] = {}
    exec(compile(str(concrete), "program", "exec", dont_inherit=True), scope)
    function = next(value for value in scope.values() if inspect.isfunction(value))
    results: Any = function(*map(Tensor.of_array, example.arrays()))
    return tuple(result.numpy() for result in several(results))


def parsed(program: Program) -> Program:
    text = str(program)
    read = parse(text)
    assert str(read) == text, f"it prints as\n{read}"
    return read


def through(
    stages: Sequence[Stage], example: Example, backend: Backend, precise: bool
) -> Callable[[], Arrays]:
    def run() -> Arrays:
        context = Context(backend, precise=precise)
        return run_twice(run_passes(example.program, stages, context), backend, example)

    return run


def unrepeated(example: Example, backend: Backend) -> Callable[[], Arrays]:
    run = through(PIPELINE, example, backend, True)

    def without() -> Arrays:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GPTRS_OPT_PRE_ITERS", "0")
            patch.setenv("GPTRS_OPT_POST_ITERS", "0")
            return run()

    return without


def without_one(turn: int) -> tuple[str, tuple[Stage, ...]]:
    """The pipeline without one of its passes, and which one that is."""
    names: list[tuple[int, int | None]] = []
    for n, stage in enumerate(PIPELINE):
        inner = range(len(stage.passes)) if isinstance(stage, Repeat) else (None,)
        names += [(n, m) for m in inner]
    n, m = names[turn % len(names)]
    stage = PIPELINE[n]
    if m is None or not isinstance(stage, Repeat):
        name = getattr(stage, "__name__", "the passes of the backend")
        return f"{name} ({n})", (*PIPELINE[:n], *PIPELINE[n + 1 :])
    kept = Repeat(stage.passes[:m] + stage.passes[m + 1 :], stage.limit)
    name = f"{stage.passes[m].__name__} ({n})"
    return name, (*PIPELINE[:n], kept, *PIPELINE[n + 1 :])
