"""Arrays of this process where a file's tensors are expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array, as_dtype


class HeldBytes:
    """The bytes of an array. ``path`` is what errors name."""

    def __init__(self, path: Path, array: Array) -> None:
        self.path = path
        self._bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on, which are not copied."""
        length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._bytes[offset : offset + length].view(dtype).reshape(shape)


def held_tensor(path: Path, key: str, array: Array) -> StoredTensor:
    """``array``, whose elements nobody changes, as the tensor called ``key``."""
    dtype = as_dtype(array.dtype)
    return StoredTensor(
        HeldBytes(path, array), key, array.shape, dtype, str(dtype), 0, array.nbytes
    )
