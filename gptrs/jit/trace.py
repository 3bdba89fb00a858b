"""Tracing: a function runs on tracers for its arguments, and its ops are recorded as a program.

First step of `gptrs.jit.lower`. Input: a call's `Arguments`. Output: `Traced`, the program with its
parameter slots and the tree of its results. Parameters that the code reaches become slots, captured
arrays become constants (with a `CaptureWarning` above 1 MB), and so do the results of impure
functions (with an `ImpureCallWarning`). `Entry` is the value of the program
cache: traced and lowered program, plan, and the function that runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from gptrs import events, tree
from gptrs.backends.base import Plan
from gptrs.debug.lowering import TraceStopped
from gptrs.errors import CaptureWarning, warn
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.tensor import Tensor, as_array
from gptrs.ir.types import Array, Type
from gptrs.jit.arguments import Arguments
from gptrs.jit.derived import Run, run_of
from gptrs.jit.impure_calls import impure_calls
from gptrs.lazy_dataclass import dataclass

_LARGE_CAPTURE = 1 << 20  # bytes; a captured array above this is probably a forgotten argument


@dataclass(frozen=True)
class Traced:
    """A function traced for one key: its program, and how results and parameters connect to it."""

    program: Program
    slots: tuple[int | Parameter, ...]  # an index among the call's parameters, or a fixed parameter
    structure: tree.Structure
    results: tuple[Any, ...]  # a Result, or a value that does not depend on the inputs
    alive: tuple[object, ...]  # objects whose ids are in the key


@dataclass(frozen=True)
class Entry:
    """A traced function in the program cache."""

    traced: Traced
    lowered: Program
    plan: Plan
    run: Run
    """Runs the plan on the arguments of the traced program."""
    choices: tuple[str, ...]
    """The implementations that the overrides selected."""

    @classmethod
    def of(
        cls, traced: Traced, lowered: Program, plan: Plan, choices: tuple[str, ...] = ()
    ) -> Entry:
        return cls(traced, lowered, plan, run_of(lowered, plan, stay=True), choices)


@dataclass(frozen=True)
class Result:
    """The index of a result among the program's; ``weak`` as in `Tensor`."""

    index: int
    weak: bool


def trace(
    function: Callable[..., Any], arguments: Arguments, name: str, *, quiet: bool = False
) -> Traced:
    """Run ``function`` on tracers and record its program; ``quiet`` without warnings."""
    slots: list[int | Parameter] = []

    def on_parameter(parameter: Parameter) -> str:
        place = arguments.captures.index_of(parameter)
        slots.append(parameter if place is None else place)
        return parameter.name

    on_constant = None if quiet else _on_constant
    recorder = Recorder(name, on_parameter=on_parameter, on_constant=on_constant)
    watch = nullcontext() if quiet else impure_calls(arguments.captures, name)
    inputs = [
        recorder.input(leaf.type, leaf.path, donated=leaf.donated, weak=leaf.tensor.weak)
        for leaf in arguments.inputs
    ]
    values: list[Tensor] = []
    results: list[Any] = []
    with interpreter(recorder), watch:
        try:
            returned = arguments.call(function, inputs)
        except BaseException:
            if events.listening():
                events.emit(TraceStopped(recorder.finish(())))
            raise
        leaves, structure = tree.flatten(
            returned, is_leaf=lambda x: isinstance(x, Tensor), label="the result"
        )
        for leaf in leaves:
            if not isinstance(leaf, Tensor) and (array := as_array(leaf)) is not None:
                leaf = Tensor.of_array(array)
            if isinstance(leaf, Tensor):
                results.append(Result(len(values), leaf.weak))
                values.append(leaf)
            else:
                results.append(leaf)
        program = recorder.finish(values)
    return Traced(program, tuple(slots), structure, tuple(results), tuple(arguments.captures.alive))


def _on_constant(array: Array) -> None:
    if array.nbytes > _LARGE_CAPTURE:
        warn(
            f"an array of {array.nbytes / 1e6:.1f} MB ({Type.of(array)}) was captured and became a"
            " constant of the program. Fix: pass it as an argument, or make it a gptrs.Parameter.",
            CaptureWarning,
        )
