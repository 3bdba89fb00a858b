"""The pass manager: context and stages of a pipeline, and the runner of passes.

`run_passes` applies stages in order, to regions too; verifies each changed program (memoised by
instruction); repeats the passes of a `Repeat` to a fixed point; runs the target's own passes at
`BACKEND`; and emits `PassRan` for each pass when `gptrs.events` has a listener.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Protocol, TypeAlias

from gptrs import events
from gptrs.errors import VerifyError
from gptrs.ir.program import Instruction, Program, verify
from gptrs.ir.rewrite import Fuel
from gptrs.lazy_dataclass import dataclass


class Target(Protocol):
    """The interface of a backend to passes: its own passes, and the composites that it claims."""

    @property
    def passes(self) -> Sequence[Stage]:
        """The backend's own part of the pipeline, run in the place of `BACKEND`."""
        ...

    def claims(self, instruction: Instruction) -> bool:
        """Whether the backend has a kernel for this composite instruction."""
        ...


@dataclass(frozen=True)
class Context:
    """The input of a pass besides the program: target, fuel, precision, overrides."""

    target: Target
    fuel: Fuel = field(default_factory=Fuel)
    precise: bool = False
    """Whether rewrites that change rounding are disabled."""
    in_region: bool = False
    """Whether the program is a branch or a loop's body, whose parameters must stay as they are."""
    choose: Callable[[Instruction], Program | None] | None = None
    """The implementation that an override picks for a composite; None leaves it whole."""

    def claims(self, instruction: Instruction) -> bool:
        """Whether the target has a kernel for this composite instruction."""
        return self.target.claims(instruction)


Pass: TypeAlias = Callable[[Program, Context], Program]
"""Returns the program itself when nothing changes."""


@dataclass(frozen=True)
class Repeat:
    """Passes that run in turn until none changes the program, at most ``limit()`` times."""

    passes: tuple[Pass, ...]
    limit: Callable[[], int]


@dataclass(frozen=True)
class Hook:
    """The place of the target's own passes in a pipeline."""


BACKEND = Hook()
Stage: TypeAlias = Pass | Repeat | Hook


@dataclass(frozen=True)
class PassRan:
    """Event: a pass turned ``before`` into ``after`` in ``seconds``."""

    name: str
    before: Program
    after: Program
    seconds: float
    rewrites: tuple[str, ...]
    """The rewrites that it spent fuel on, in order."""
    again: Callable[[Fuel], Program]
    """The pass on ``before`` with other fuel."""


def run_passes(
    program: Program, stages: Sequence[Stage], context: Context, *, check: bool = True
) -> Program:
    """Apply ``stages`` in order, to branches and loop bodies too. With ``check`` each changed
    program is verified.

    Raises `VerifyError` naming the pass whose program is not well formed.
    """
    return _Runner(context, check).run(program, stages)


class _Runner:
    def __init__(self, context: Context, check: bool) -> None:
        self._context = context
        self._inner = replace(context, in_region=True)
        self._check = check
        self._verified: set[Instruction] = set()  # instructions are immutable: checked once

    def run(self, program: Program, stages: Sequence[Stage]) -> Program:
        for stage in stages:
            if isinstance(stage, Hook):
                program = self.run(program, self._context.target.passes)
            elif isinstance(stage, Repeat):
                program = self._repeat(program, stage)
            else:
                program = self._once(program, stage)
        return program

    def _repeat(self, program: Program, stage: Repeat) -> Program:
        for _ in range(stage.limit()):
            before = program
            program = self.run(program, stage.passes)
            if program is before:
                break
        return program

    def _once(self, program: Program, each: Pass) -> Program:
        start = time.perf_counter()
        spent = len(self._context.fuel.log)
        after = self._apply(each, program, self._context.fuel)
        if self._check and after is not program:
            try:
                verify(after, self._verified)
                if [r.type for r in after.results] != [r.type for r in program.results]:
                    raise VerifyError(f"{program.name}: the types of the results changed")
            except VerifyError as error:
                raise VerifyError(f"pass {each.__name__}: {error}") from error
        if events.listening():
            seconds = time.perf_counter() - start
            rewrites = tuple(self._context.fuel.log[spent:])
            again = partial(self._apply, each, program)
            events.emit(PassRan(each.__name__, program, after, seconds, rewrites, again))
        return after

    def _apply(self, each: Pass, program: Program, fuel: Fuel) -> Program:
        context, inner = (replace(c, fuel=fuel) for c in (self._context, self._inner))
        return _everywhere(each, program, context, inner)


def _everywhere(each: Pass, program: Program, context: Context, inner: Context) -> Program:
    """``program`` after a pass, applied to its branches and loop bodies too."""
    after = each(program, context)
    if not after.has_control:
        return after
    body: list[Instruction] = []
    for instruction in after.body:
        if instruction.op.control:
            attrs = {
                name: _everywhere(each, value, inner, inner)
                if isinstance(value, Program)
                else value
                for name, value in instruction.attrs.items()
            }
            if any(attrs[name] is not value for name, value in instruction.attrs.items()):
                instruction = replace(instruction, attrs=attrs)
        body.append(instruction)
    return after.with_body(body, after.results)
