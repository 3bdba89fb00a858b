"""``custom_call``: a subprogram that a backend runs by a kernel of its own.

Inserted by the passes of a backend (`gptrs.backends.faer.custom_calls`). The subprogram stays as
the definition, so that any backend can run the instruction.
"""

from __future__ import annotations

from typing import Any

from gptrs.errors import ShapeError
from gptrs.ir.kinds import OpKind
from gptrs.ir.primitives import primitive
from gptrs.ir.program import Program
from gptrs.ir.sizes import evaluate
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array

__all__ = ["custom_call"]


@primitive(kind=OpKind.CALL)
def custom_call(operands: tuple[Tensor, ...], *, target: str, definition: Program) -> Any:
    """The results of ``definition`` for ``operands``, by the backend's kernel called ``target``.

    A backend that does not know the target runs the definition.
    """
    given = [operand.type for operand in operands]
    expected = [param.type for param in definition.params]
    if given != expected:
        raise ShapeError(
            f"{target} takes {', '.join(map(str, expected))}, found {', '.join(map(str, given))}"
        )
    return tuple(result.type for result in definition.results)


@custom_call.numpy
def _(operands: tuple[Array, ...], *, target: str, definition: Program) -> tuple[Array, ...]:
    return evaluate(definition, operands)
