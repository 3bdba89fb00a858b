"""Bits of bytes as elements: packbits, unpackbits."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gptrs.errors import ArgumentError, DTypeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import normal_axis
from gptrs.numpy_api.arithmetic import truth
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.manipulation import moveaxis
from gptrs.numpy_api.padding import pad

__all__ = ["packbits", "unpackbits"]

Order = Literal["big", "little"]


def _places(name: str, bitorder: Order) -> Tensor:
    """The place in a byte of each of 8 elements."""
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{name}: bitorder is {bitorder!r}, expected 'big' or 'little'")
    places = np.arange(8, dtype=np.uint8)
    return Tensor.of_array(places if bitorder == "little" else places[::-1].copy())


@public(other_names={"a": "x"})
def packbits(x: Any, axis: int | None = None, bitorder: Order = "big") -> Tensor:
    """Eight elements along ``axis`` (of all in a row without one) as the bits of a ui8, set where
    they differ from 0; missing ones are 0."""
    bits = truth(x)
    bits, axis = (bits.reshape(-1), 0) if axis is None else (bits, normal_axis(axis, bits.ndim))
    bits = moveaxis(bits, axis, -1).astype("ui8")
    missing = -bits.shape[-1] % 8
    bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    groups = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 8, 8)
    packed = OPS["reduce_sum"](groups << _places("packbits", bitorder), axes=-1)
    return moveaxis(packed.astype("ui8"), -1, axis)


@public(other_names={"a": "x"})
def unpackbits(
    x: Any, axis: int | None = None, count: int | None = None, bitorder: Order = "big"
) -> Tensor:
    """The bits of each ui8 as eight elements 0 or 1 (ui8) along ``axis``, or of all in a row;
    ``count`` of them, or as many less if it is negative."""
    x = as_tensor(x)
    if x.dtype.name != "ui8":
        raise DTypeError(f"unpackbits: x is {x.dtype}, expected ui8", fix="x.astype('ui8')")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    row = moveaxis(x, axis, -1)
    bits = (row[..., None] >> _places("unpackbits", bitorder)) & 1
    bits = bits.reshape(*row.shape[:-1], row.shape[-1] * 8)
    if count is not None:
        missing = count - bits.shape[-1] if count > 0 else 0
        bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, max(missing, 0))])[..., :count]
    return moveaxis(bits, -1, axis)
