"""Fixes of dtype errors, in the names of the caller's operands.

A type rule raises with the Tensor of wrong dtype (`wrong_dtype`). On the way out each op replaces
that operand by its own name for it (`name_operand`), and the outermost op writes the fix in the
names that its caller has (`tell_operand`). Called by `gptrs.ir.checks` and `gptrs.ir.op`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from gptrs.errors import DTypeError
from gptrs.ir.operands import describe
from gptrs.ir.tensor import Tensor
from gptrs.ir.traced import argument_name, cast_text
from gptrs.ir.types import DType, Type


def wrong_dtype(problem: str, operand: Tensor, wanted: DType | str) -> DTypeError:
    """The error of a type rule in which ``operand`` should have the dtype ``wanted``."""
    error = DTypeError(problem, fix=cast_text("x", wanted))
    error.operand, error.wanted = operand, str(wanted)
    return error


def name_operand(error: DTypeError, names: Sequence[str], operands: Sequence[Any]) -> None:
    """Replace the Tensor in the error by the operand name of the op."""
    for label, operand in _labelled(names, operands):
        if operand is error.operand:
            error.operand = label
            return


def tell_operand(error: DTypeError, names: Sequence[str], operands: Sequence[Any]) -> None:
    """Write into `fix` the cast that the caller needs; ``operands`` are as the caller passed
    them."""
    if not error.wanted:
        return
    given = dict(_labelled(names, operands))
    label = error.operand if isinstance(error.operand, str) else argument_name(error.operand)
    if label not in given:  # computed from operands: take the only one of this dtype
        found = [n for n, o in given.items() if str(_dtype(o)) == error.found]
        if len(found) != 1:
            return
        (label,) = found
    operand = given[label]
    error.found = error.found or str(_dtype(operand))
    name = argument_name(operand)
    error.fix = cast_text(name or label, error.wanted)
    if not name:
        error.fix += f", where {label} is {describe(operand)}"
    error.operand = name


def _labelled(names: Iterable[str], operands: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Operands with their names; the parts of a tuple with their index."""
    for name, operand in zip(names, operands, strict=False):
        if isinstance(operand, tuple | list):
            for place, part in enumerate(cast("Sequence[Any]", operand)):
                yield f"{name}[{place}]", part
        else:
            yield name, operand


def _dtype(operand: object) -> DType | None:
    if isinstance(operand, np.ndarray):
        return Type.of(cast("Any", operand)).dtype
    return operand.dtype if isinstance(operand, Tensor) else None
