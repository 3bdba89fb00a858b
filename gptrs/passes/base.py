"""What a pass is, and the runner that times, verifies and reports the passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gptrs import events
from gptrs.errors import VerifyError
from gptrs.ir.program import Instruction, Program, verify


class Target(Protocol):
    """What passes may ask of the backend that the program is for."""

    def claims(self, instruction: Instruction) -> bool:
        """Whether the backend has a kernel for this composite as it stands."""
        ...


Pass = Callable[[Program, Target], Program]


@dataclass(frozen=True)
class PassRan:
    """Event: a pass made ``after`` of ``before`` in ``seconds``."""

    name: str
    before: Program
    after: Program
    seconds: float


def run_passes(
    program: Program, passes: Sequence[Pass], target: Target, *, check: bool = True
) -> Program:
    """Apply ``passes`` in order. With ``check`` each result is verified.

    Raises `VerifyError` naming the pass that made a program that is not well formed.
    """
    for each in passes:
        start = time.perf_counter()
        after = each(program, target)
        if check and after is not program:
            try:
                verify(after)
                if [r.type for r in after.results] != [r.type for r in program.results]:
                    raise VerifyError(f"{program.name}: the types of the results changed")
            except VerifyError as error:
                raise VerifyError(f"pass {each.__name__}: {error}") from error
        if events.listening():
            seconds = time.perf_counter() - start
            events.emit(PassRan(each.__name__, program, after, seconds))
        program = after
    return program
