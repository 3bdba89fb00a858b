"""The table of ONNX's operators: what each means in PTIR, under its own name.

    @onnx("Flatten")
    def flatten(x: Tensor, axis: int = 1) -> Tensor: ...

A function takes an operator's operands in order, and its attributes by name, with their
defaults; an operand that is left out is None. What was an attribute in an older opset and is an
operand since (the ``axes`` of ``Squeeze``) has one name for both. ``since`` and ``until`` tell
meanings apart that changed with the opset. Operands that are ``known`` (shapes, axes, numbers of
repetitions) are NumPy arrays, of integers and symbolic dimensions. A function that has a parameter
``outputs`` is told the number of its results.

What is not here and has a definition by other operators in ONNX is computed by that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from gptrs import ptir as namespace
from gptrs.errors import PtirError
from gptrs.lazy_dataclass import dataclass

F = TypeVar("F", bound=Callable[..., Any])
ptir: Any = namespace
"""The public namespace, whose functions take what the operators of a file have."""
_NEWEST = 1 << 30


class UnsupportedOperatorError(PtirError):
    """An operator, or a form of it, that has no meaning here."""


class OperandsNeededError(Exception):
    """The operands at these places have to be known; ``otherwise`` says what is wrong if not."""

    def __init__(self, places: tuple[int, ...], otherwise: UnsupportedOperatorError) -> None:
        super().__init__(otherwise.problem)
        self.places = places
        self.otherwise = otherwise


@dataclass(frozen=True)
class Meaning:
    """What an operator means in the opsets from ``since`` to ``until``."""

    function: Callable[..., Any]
    since: int
    until: int
    known: frozenset[int]
    """The places of the operands that have to be known when it is traced."""
    counts_outputs: bool
    """Whether the function takes ``outputs``."""


TABLE: dict[str, list[Meaning]] = {}
"""By the operator's name."""


def onnx(
    *names: str, since: int = 1, until: int = _NEWEST, known: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Enter a function under ``names``."""

    def enter(function: F) -> F:
        parameters = list(inspect.signature(function).parameters)
        places = frozenset(parameters.index(name) for name in known)
        meaning = Meaning(function, since, until, places, "outputs" in parameters)
        for name in names:
            TABLE.setdefault(name, []).append(meaning)
        return function

    return enter


def enter_all(functions: dict[str, Callable[..., Any]]) -> None:
    """Enter each function under its name."""
    for name, function in functions.items():
        TABLE.setdefault(name, []).append(Meaning(function, 1, _NEWEST, frozenset(), False))


def meaning_of(name: str, opset: int) -> Meaning | None:
    """What the operator means in ``opset``; None for one that is not in the table."""
    for meaning in TABLE.get(name, ()):
        if meaning.since <= opset <= meaning.until:
            return meaning
    return None
