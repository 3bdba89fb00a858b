"""`TracedCall`: a traced program with the arguments of one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np

from gptrs.backends.base import Backend
from gptrs.backends.reference import ReferenceBackend
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.sizes import filled
from gptrs.ir.types import Array
from gptrs.jit.options import Options
from gptrs.jit.overrides import Overrides
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.base import Context
from gptrs.passes.dce import eliminate_dead_code

Given: TypeAlias = tuple[Array | Parameter, ...]


@dataclass(frozen=True)
class TracedCall:
    """A traced program, its arguments, and how its function is compiled."""

    name: str
    program: Program
    given: Given
    """One for each parameter of the program."""
    sizes: Mapping[str, int]
    backend: Backend
    options: Options
    overrides: Overrides

    def kept(self) -> TracedCall:
        """The same with arrays of its own in place of the donated ones, which a run overwrites."""
        given = tuple(
            np.array(array, order="C") if param.donated and isinstance(array, np.ndarray) else array
            for param, array in zip(self.program.params, self.given, strict=True)
        )
        return replace(self, given=given)

    def live(self) -> TracedCall:
        """The same without instructions that no result depends on."""
        program = eliminate_dead_code(self.program, Context(ReferenceBackend()))
        return replace(self, program=program)

    def concrete(self) -> TracedCall:
        """The same with numbers in place of symbols."""
        if not self.sizes:
            return self
        return replace(self, program=cast("Program", filled(self.program, self.sizes)), sizes={})

    def arrays(self) -> list[Array]:
        """The arguments with the elements of parameters."""
        return [x.numpy() if isinstance(x, Parameter) else x for x in self.given]


def with_all_results(program: Program) -> Program:
    """``program`` returning the results of all its instructions, in order."""
    return program.with_body(program.body, [r for i in program.body for r in i.results])
