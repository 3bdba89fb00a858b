"""Elements as words of 32 bits, as WGSL has no smaller ones: conversions on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.ir.types import Array, DType, Type, as_dtype

_SMALL: dict[str, tuple[Any, Any]] = {
    "u8": (np.uint8, np.uint32),
    "u16": (np.uint16, np.uint32),
    "i8": (np.int8, np.int32),
    "i16": (np.int16, np.int32),
}
"""By type in the memory of the host: its NumPy type, and the word that has it."""


def word_bytes(dtype: DType) -> int:
    """The size of an element on the device."""
    return max(dtype.numpy.itemsize, 4)


def as_words(array: Array) -> Array:
    """The elements as bytes of words."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if small := _SMALL.get(IN_MEMORY.get(as_dtype(array.dtype).name, "")):
        flat = flat.view(small[0]).astype(small[1])
    return flat.view(np.uint8)


def of_words(words: Any, type: Type) -> Array:
    """The elements that the bytes of words have."""
    dtype = type.dtype
    small = _SMALL.get(IN_MEMORY.get(dtype.name, ""))
    if small:
        flat = np.frombuffer(words, small[1]).astype(small[0]).view(dtype.numpy)
    else:
        flat = np.frombuffer(words, np.uint8).copy().view(dtype.numpy)
    return flat.reshape(type.shape)
