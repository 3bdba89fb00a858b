"""In-memory arrays as stored tensors.

For models that do not come from files: `gptrs.from_torch`, replaced parameters at export, constants
of converted checkpoints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array, as_dtype


class InMemoryBytes:
    """The bytes of an array. Errors name ``path``."""

    def __init__(self, path: Path, array: Array) -> None:
        self.path = path
        self._bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on, without a copy."""
        length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._bytes[offset : offset + length].view(dtype).reshape(shape)


def in_memory_tensor(path: Path, key: str, array: Array) -> StoredTensor:
    """``array`` as the tensor called ``key``. It is not copied and must not change."""
    dtype = as_dtype(array.dtype)
    return StoredTensor(
        InMemoryBytes(path, array), key, array.shape, dtype, str(dtype), 0, array.nbytes
    )
