"""Rows: what an OpInfo is called here, and how closely results agree."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gptrs.ir.dispatch import OPS
from tests.cases.sample import LIBM, ORDER

F = ("f32", "f64")
I = ("si32", "si64", "si8", "ui8")  # noqa: E741 - beside F and B
B = ("i1",)
R = (*F, *I)
SUMMED: dict[str, Any] = {"ulps": 64, "magnitude": 8, "why": ORDER}
NAMED: dict[str, Any] = {"ulps": 16, "magnitude": 1, "why": LIBM}


class NotOursError(Exception):
    """A sample asks for what no op here does."""


@dataclass(frozen=True)
class Row:
    """``call`` takes what a sample has, with our tensors. ``ulps``, ``magnitude`` and ``why`` are
    as in `tests.cases.sample.Case`."""

    info: str
    call: Callable[..., Any]
    dtypes: tuple[str, ...] = F
    ulps: int = 0
    magnitude: float = 0.0
    why: str = ""
    special: bool = True
    """Whether special values take the place of some elements in samples of their own."""
    compiled: int = 2
    """Of how many of the first dtypes a sample is compiled as well."""
    numpy: Callable[..., Any] | None = None
    """NumPy's function, where torch gives something else..."""
    differs: str = ""
    """...namely this."""


def unless(condition: object, why: str) -> None:
    if condition:
        raise NotOursError(why)


def op(name: str) -> Callable[..., Any]:
    return lambda *operands: OPS[name](*operands)


def plain(names: dict[str, str], dtypes: tuple[str, ...] = F, **more: Any) -> tuple[Row, ...]:
    return tuple(Row(info, op(name), dtypes, **more) for info, name in names.items())


def same(*names: str) -> dict[str, str]:
    return {name: name for name in names}
