"""Operands of the functions of ``ptir.nn``: floats, one number or one per spatial axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.promotion import DEFAULT_FLOAT
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.function import as_tensor, public

nn_function = public(namespace="nn")
"""The decorator of the functions of ``ptir.nn``."""


def as_float(x: Any) -> Tensor:
    """``x`` as a tensor of floats; integers and bools are f32."""
    x = as_tensor(x)
    return x.astype(DEFAULT_FLOAT) if x.dtype.is_integer or x.dtype.is_bool else x


def maybe_float(x: Any) -> Tensor | None:
    """`as_float` of an operand that may be absent."""
    return None if x is None else as_float(x)


def refuse_inplace(inplace: bool) -> None:
    """Raise `ArgumentError` for torch's ``inplace=True``: tensors are immutable."""
    if inplace:
        raise ArgumentError("inplace is True, but a Tensor is immutable", fix="use the result")


def per_axis(name: str, value: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """One integer for each of ``rank`` spatial axes; a single one counts for all."""
    if isinstance(value, int):
        return (value,) * rank
    given = tuple(int(n) for n in value)
    if len(given) == 1:
        return given * rank
    if len(given) != rank:
        raise ShapeError(f"{name} is {value}, expected one number or {rank}")
    return given


def fixed(shape: Sequence[DimLike], what: str) -> tuple[int, ...]:
    """Extents that have to be numbers: positions are computed of them while tracing."""
    for extent in shape:
        if isinstance(extent, Dim):
            raise ShapeError(f"{what} has a symbolic extent {extent}, expected numbers")
    return tuple(int(n) for n in shape)
