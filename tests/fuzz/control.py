"""Strategies for cond, while_loop and scan, and the table of all strategies."""

from __future__ import annotations

from typing import Any, cast

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Type
from tests.fuzz.builder import Builder, UnfitError
from tests.fuzz.composed import COMPOSITES
from tests.fuzz.elementary import COMPUTING, Draw
from tests.fuzz.matrices import MATRICES
from tests.fuzz.placing import PLACING

_SI32 = DTYPES["si32"]
_DEEPEST = 2  # regions in regions


def _several(results: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", results if isinstance(results, tuple) else (results,))


def grow(b: Builder, steps: int) -> None:
    """Add up to so many instructions of the simpler kind to a region."""
    for _ in range(steps):
        b.plot.step(b)


def _flag(b: Builder) -> Tensor:
    return b.of(Type((), DTYPES["i1"]))


def _cond(b: Builder) -> Any:
    if b.depth >= _DEEPEST:
        raise UnfitError
    pred = _flag(b)
    given = [b.value() for _ in range(b.integer(0, 2))]
    types: list[Type] = []

    def then(*inside: Tensor) -> Any:
        inner = b.inside(inside)
        grow(inner, b.integer(1, 4))
        results = [inner.values[-1 - n] for n in range(min(b.integer(1, 2), len(inner.values)))]
        types.extend(result.type for result in results)
        return tuple(results)

    def otherwise(*inside: Tensor) -> Any:
        inner = b.inside(inside)
        grow(inner, b.integer(0, 3))
        return tuple(inner.fitting(types))

    return OPS["cond"](pred, then, otherwise, *given)


def _while_loop(b: Builder) -> Any:
    if b.depth >= _DEEPEST:
        raise UnfitError
    count = OPS["full"](shape=(), value=0, dtype=_SI32)
    parts = [b.value() for _ in range(b.integer(1, 2))]
    limit = b.of(Type((), _SI32), "0..3") if b.chance(2) else b.integer(0, 3)

    def condition(state: tuple[Tensor, ...]) -> Tensor:
        return OPS["less"](state[0], limit)

    def body(state: tuple[Tensor, ...]) -> Any:
        inner = b.inside(state[1:])
        grow(inner, b.integer(1, 4))
        return OPS["add"](state[0], 1), *inner.fitting([part.type for part in parts])

    return _several(OPS["while_loop"](condition, body, (count, *parts)))[1:]


def _scan(b: Builder) -> Any:
    if b.depth >= _DEEPEST:
        raise UnfitError
    parts = [b.value() for _ in range(b.integer(0, 2))]
    xs: tuple[Tensor, ...] = (b.value(least=1),) if b.chance(2) or not parts else ()
    length = None if xs else b.integer(0, 4)

    def body(state: tuple[Tensor, ...], x: tuple[Tensor, ...]) -> Any:
        inner = b.inside((*state, *x))
        grow(inner, b.integer(1, 4))
        ys = tuple(inner.values[-1 - n] for n in range(b.integer(0, min(2, len(inner.values)))))
        return tuple(inner.fitting([part.type for part in parts])), ys

    state, ys = OPS["scan"](body, tuple(parts), xs, length=length, reverse=b.chance(2))
    return (*_several(state), *_several(ys))


CONTROL: dict[str, Draw] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan}
GENERATORS: dict[str, Draw] = {**COMPUTING, **PLACING, **COMPOSITES, **MATRICES, **CONTROL}
NOT_DRAWN = {
    "custom_call": "passes of backends make it, of what they find in a program",
    **dict.fromkeys(("print", "callback", "check"), "an effect is no result to compare"),
}
