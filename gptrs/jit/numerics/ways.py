"""The ways to run a program: by name, each a function from a program and its arguments to results.

A way takes the traced program and does the rest itself: passes, plan, run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from gptrs.backends.base import Backend, Plan
from gptrs.backends.discovery import get_backend
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ArgumentError, shown
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.types import Array
from gptrs.jit.chooser import chooser
from gptrs.jit.derived import Run, run_of
from gptrs.jit.lower import passes_over
from gptrs.jit.numerics.torch_ops import through_torch
from gptrs.jit.numerics.traced_call import TracedCall
from gptrs.jit.numerics.widen import run_widened
from gptrs.jit.options import Options
from gptrs.jit.overrides import Overrides
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import BACKEND, Context, run_passes
from gptrs.passes.choose_implementations import choose_implementations
from gptrs.passes.legalize import legalize

Arguments: TypeAlias = Sequence[Array | Parameter]
Sizes: TypeAlias = Mapping[str, int]

NAMES = ("jit", "unoptimised", "precise", "reference", "eager", "float64", "torch")


@dataclass(frozen=True)
class Way:
    """A way to run programs.

    ``rounds``: it may round otherwise than NumPy's meaning. ``interprets``: it runs instruction by
    instruction, so that one alone is as in its program. ``widens``: its floats are f64.
    """

    name: str
    _run: Callable[[Program, Arguments, Sizes], tuple[Array, ...]]
    rounds: bool = True
    interprets: bool = False
    widens: bool = False

    def run(
        self, program: Program, given: Arguments, sizes: Sizes | None = None
    ) -> tuple[Array, ...]:
        """The results of ``program``. Arguments that it donates are copied."""
        own = [
            np.array(array, order="C") if param.donated and isinstance(array, np.ndarray) else array
            for param, array in zip(program.params, given, strict=True)
        ]
        return self._run(program, own, sizes or {})


def eager_way() -> Way:
    """The NumPy meaning of every instruction: the bits of eager mode."""

    def run(program: Program, given: Arguments, sizes: Sizes) -> tuple[Array, ...]:
        return ReferencePlan(program).run(given, sizes)

    return Way("eager", run, rounds=False, interprets=True)


def compiled_way(
    name: str, backend: Backend, options: Options, overrides: Overrides, *, passes: bool = True
) -> Way:
    """Passes and the plan of ``backend``; without ``passes`` only what a plan cannot do without.
    Programs that are run again are not compiled again."""
    made: dict[Program, Run] = {}

    def compiled(program: Program, sizes: Sizes) -> Run:
        choose = chooser(overrides, backend, sizes, options.is_precise)
        if passes:
            lowered = passes_over(program, backend, options, choose).programs[-1]
        else:
            context = Context(backend, precise=options.is_precise, choose=choose)
            lowered = run_passes(program, (choose_implementations, legalize, BACKEND), context)
        plan: Plan = backend.plan(lowered, precise=options.is_precise)
        return run_of(lowered, plan)

    def run(program: Program, given: Arguments, sizes: Sizes) -> tuple[Array, ...]:
        if program not in made:
            made[program] = compiled(program, sizes)
        return made[program](given, sizes)

    return Way(name, run, rounds=not options.is_precise)


def way_named(name: Any, call: TracedCall) -> Way:
    """The way called ``name`` for ``call``. Raises `ArgumentError` for a name that is none."""
    backend, options, overrides = call.backend, call.options, call.overrides
    match name:
        case "jit":
            return compiled_way(name, backend, options, overrides)
        case "unoptimised":
            return compiled_way(name, backend, options, overrides, passes=False)
        case "precise":
            return compiled_way(name, backend, replace(options, precise=True), overrides)
        case "reference":
            return compiled_way(name, get_backend("reference"), options, overrides)
        case "eager":
            return eager_way()
        case "float64":
            return Way(name, run_widened, interprets=True, widens=True)
        case "torch":
            return Way(name, through_torch, interprets=True)
        case _:
            raise ArgumentError(
                f"{shown(name)} is no way to run a function",
                fix=f"use one of {', '.join(NAMES)}, or a function that takes NumPy arrays",
            )
