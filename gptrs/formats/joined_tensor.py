"""Tensors of one shape as the parts of one tensor: the matrices of experts, stored one by one.

The parts stay where they are; a read of the whole reads from those that it covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gptrs.errors import LoadError
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.ir.types import Array, shape_text


class JoinedBytes:
    """The bytes of tensors of one length, one after the other. Errors name the first one's file."""

    def __init__(self, parts: Sequence[StoredTensor]) -> None:
        self._parts = tuple(parts)
        self._length = parts[0].length

    @property
    def path(self) -> Path:
        return self._parts[0].file.path

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on; those of a single part are not copied."""
        count = math.prod(shape) * dtype.itemsize
        number, skip = divmod(offset, max(1, self._length))
        if skip + count <= self._length:
            part = self._parts[min(number, len(self._parts) - 1)]
            return part.file.array(dtype, shape, part.offset + skip)
        made = np.empty(count, np.uint8)
        done = 0
        while done < count:
            number, skip = divmod(offset + done, self._length)
            some = min(self._length - skip, count - done)
            part = self._parts[number]
            made[done : done + some] = part.file.array(made.dtype, (some,), part.offset + skip)
            done += some
        return made.view(dtype).reshape(shape)


def joined_tensor(groups: Sequence[Sequence[StoredTensor]]) -> StoredTensor:
    """The tensor [count, rows, columns] whose matrix i has the rows of all tensors in
    ``groups[i]``. Raises `LoadError` unless they are matrices of one shape and dtype."""
    parts = [part for group in groups for part in group]
    first = parts[0]
    for part in parts:
        if len(part.shape) != 2 or (part.shape, part.spelled) != (first.shape, first.spelled):
            raise LoadError(
                f"{part.file.path}: {part.key!r} is {part.spelled}{shape_text(part.shape)}, and"
                f" {first.key!r} is {first.spelled}{shape_text(first.shape)}, expected matrices of"
                " one shape and dtype",
                fix="save the experts of a layer alike",
            )
    rows, columns = first.shape
    others = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return StoredTensor(
        JoinedBytes(parts),
        f"{first.key}{others}",
        (len(groups), len(groups[0]) * rows, columns),
        first.dtype,
        first.spelled,
        0,
        len(parts) * first.length,
    )
