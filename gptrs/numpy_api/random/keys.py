"""Keys, and the bits that they stand for: key, split, fold_in, bits.

A key of a key is the first 64 bits of a block of Philox under it: block i of stream 3 for number i
of `split`, block ``data`` of stream 4 for `fold_in`. Distributions use the streams 0 to 2.
"""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.operands import describe
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import as_dtype, ui32, ui64
from gptrs.numpy_api.creation import Extents, asarray, shape_of
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.random.operands import as_key, random_function

__all__ = ["PRNGKey", "bits", "fold_in", "key", "split"]

_SPLIT, _FOLD = 3, 4  # streams


@random_function
def key(seed: Any) -> Tensor:
    """The key of an integer: itself modulo 2⁶⁴, as ui64[]."""
    return _whole("seed", seed)


PRNGKey = key
"""The older name of `key`, as in JAX."""


@random_function
def split(key: Any, num: Extents = 2) -> Tensor:
    """New keys ui64[num], or of the shape ``num``. The first n do not depend on how many follow."""
    shape = shape_of(num)
    return OPS["random_bits"](as_key(key), shape=shape, dtype=ui64, stream=_SPLIT)


@random_function
def fold_in(key: Any, data: Any) -> Tensor:
    """A new key for an integer, such as the number of a step: ``data`` modulo 2⁶⁴."""
    place = _whole("data", data)
    return OPS["random_bits"](as_key(key), place, shape=(), dtype=ui64, stream=_FOLD)


@random_function
def bits(key: Any, shape: Extents = (), dtype: object = ui32) -> Tensor:
    """Unsigned integers whose bits are all random."""
    return OPS["random_bits"](as_key(key), shape=shape_of(shape), dtype=as_dtype(dtype))


def _whole(name: str, value: Any) -> Tensor:
    """An integer of rank 0, as ui64."""
    if isinstance(value, bool | float):
        raise ArgumentError(f"{name} is {describe(value)}, expected an integer")
    if isinstance(value, int):
        return asarray(value % 2**64, dtype=ui64)
    found = as_tensor(value)
    if not found.dtype.is_integer:
        raise DTypeError(f"{name} has type {found.type}, expected an integer")
    if found.ndim:
        raise ShapeError(f"{name} has type {found.type}, expected rank 0", fix="ptir.vmap")
    return found.astype(ui64)
