"""A part of a program that a backend has a kernel for."""

from __future__ import annotations

from gptrs.errors import ShapeError
from gptrs.ir.op import primitive
from gptrs.ir.program import Program
from gptrs.ir.sizes import evaluate
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type


@primitive
def custom_call(operands: tuple[Tensor, ...], *, target: str, definition: Program) -> Type:
    """What ``definition`` computes of ``operands``, by the kernel that a backend calls ``target``.

    A backend that does not know the target runs the definition.
    """
    given = [operand.type for operand in operands]
    expected = [param.type for param in definition.params]
    if given != expected:
        raise ShapeError(
            f"{target} takes {', '.join(map(str, expected))}, found {', '.join(map(str, given))}"
        )
    (result,) = definition.results
    return result.type


@custom_call.numpy
def _(operands: tuple[Array, ...], *, target: str, definition: Program) -> Array:
    (result,) = evaluate(definition, operands)
    return result
