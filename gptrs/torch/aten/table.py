"""The table of ATen's operators: what each means in PTIR, under torch's own name and overload.

    @aten("flip.default")
    def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
        return ptir.flip(x, axis=tuple(dims))

A function takes the operands of torch's schema: Tensors where torch has tensors, sizes that may be
symbolic, and dtypes of PTIR. Arguments about memory (``device``, ``layout``, ``pin_memory``,
``memory_format``, ``requires_grad``) are left out. Its results are cast to the dtypes that torch
says, so that it need not. What it cannot do it refuses by `UnsupportedError`: torch itself then
runs the operator.

`Operands` says what is done to the dtypes of the operands before: nothing, torch's promotion of
elementwise operators, or a cast of the first to the dtype of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeVar

from gptrs import ptir as namespace
from gptrs.errors import PtirError
from gptrs.lazy_dataclass import dataclass

F = TypeVar("F", bound=Callable[..., Any])
ptir: Any = namespace
"""The public namespace: its functions take torch's arguments, of which the checker knows those of
the ops alone."""


class UnsupportedError(PtirError):
    """The operator has no form in PTIR for these operands."""


class Operands(Enum):
    """How the operands of an operator are cast."""

    AS_GIVEN = auto()
    PROMOTED = auto()
    """All to their common dtype."""
    TO_FLOAT = auto()
    """All to their common dtype; integers to the default float."""
    TO_RESULT = auto()
    """The first to the dtype of the result."""
    CHOSEN = auto()
    """All but the first to the dtype of the result."""


@dataclass(frozen=True)
class Meaning:
    """What an operator means: a function, and how its operands are cast."""

    function: Callable[..., Any]
    operands: Operands


TABLE: dict[str, Meaning] = {}
"""By name and overload, as in ``"add.Tensor"``; those of other namespaces as
``"prims.convert_element_type.default"``."""


def aten(*names: str, operands: Operands = Operands.AS_GIVEN) -> Callable[[F], F]:
    """Enter a function under ``names``; a name alone stands for its overload ``default``."""

    def enter(function: F) -> F:
        for name in names:
            full = name if "." in name.removeprefix("prims.") else f"{name}.default"
            assert full not in TABLE, f"{full} is in the table"
            TABLE[full] = Meaning(function, operands)
        return function

    return enter


def enter_all(
    functions: dict[str, Callable[..., Any]], operands: Operands = Operands.AS_GIVEN
) -> None:
    """Enter each function under its name; a name may list several, with spaces between them."""
    for names, function in functions.items():
        aten(*names.split(), operands=operands)(function)
