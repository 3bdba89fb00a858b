"""`StoredTensor`: one tensor of a file, read on demand; `TensorFile`, the base of the readers.

All formats produce these entries. The bytes come from a `ByteFile`, from memory
(`gptrs.formats.in_memory`), or from a transposing view (`gptrs.formats.gpt_rs`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from gptrs.errors import LoadError
from gptrs.formats.byte_file import ByteFile
from gptrs.ir.types import Array, DType, Type, bf16, f16, f32
from gptrs.lazy_dataclass import dataclass

MOST_AXES = 64  # of a NumPy array
MOST_NAME = 2**16 - 1  # characters or bytes: longer names make every comparison slow
_COMPARED = 2**20  # bytes at a time
_OF_MODELS = (f32, f16, bf16)


class Bytes(Protocol):
    """A source of tensor bytes: a file, or an array in memory."""

    @property
    def path(self) -> Path:
        """The path that errors name."""
        ...

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on. Raises `OSError` or `LoadError`."""
        ...


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file, called ``key`` there: ``length`` bytes from ``offset`` on."""

    file: Bytes
    key: str
    shape: tuple[int, ...]
    dtype: DType | None
    """None: a dtype that this package does not have."""
    spelled: str
    """The name of the dtype in the file."""
    offset: int
    length: int

    @property
    def type(self) -> Type:
        """Shape and dtype. Raises `LoadError` for dtypes that models do not have."""
        if self.dtype is None or self.dtype not in _OF_MODELS:
            from gptrs.formats.unsupported import ORIGINAL, is_narrow  # for errors alone

            narrow = is_narrow(self.spelled)
            raise LoadError(
                f"{self.file.path}: {self.key!r} has dtype {self.spelled},"
                f"{' as quantised weights have,' * narrow}"
                f" expected one of {', '.join(map(str, _OF_MODELS))}",
                fix=ORIGINAL if narrow else "save the model with one of these dtypes",
            )
        return Type(self.shape, self.dtype)

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def array(self, shape: tuple[int, ...], skip: int = 0) -> Array:
        """The elements of ``shape`` behind the first ``skip`` bytes. Raises `LoadError`, also for
        an unknown dtype."""
        if self.dtype is None:
            raise LoadError(
                f"{self.file.path}: {self.key!r} has dtype {self.spelled}, which is not known here",
                fix="save it with another dtype",
            )
        return self._array(self.dtype.numpy, shape, skip)

    def _array(self, dtype: np.dtype[Any], shape: tuple[int, ...], skip: int) -> Array:
        try:
            return self.file.array(dtype, shape, self.offset + skip)
        except OSError as error:
            raise LoadError(f"{self.file.path}: {self.key!r} cannot be read: {error}") from None

    def read(self) -> Array:
        """All elements. Raises `LoadError`, also for an unknown dtype."""
        return self.part(0, self.elements).reshape(self.shape)

    def part(self, first: int, last: int) -> Array:
        """The elements [first:last] in the order of the file. Raises `LoadError`."""
        item = 1 if self.dtype is None else self.dtype.numpy.itemsize
        return self.array((last - first,), first * item)

    def holds(self, array: Array, skip: int) -> bool:
        """Whether its bytes from ``skip`` on equal those of ``array`` (so NaN equals itself)."""
        expected = array.reshape(-1).view(np.uint8)
        for first in range(0, array.nbytes, _COMPARED):
            wanted = expected[first : first + _COMPARED]
            if not np.array_equal(self._array(wanted.dtype, wanted.shape, skip + first), wanted):
                return False
        return True


class TensorFile:
    """A file of tensors, whose whole index is checked at opening."""

    fix: str
    """The remedy for a damaged file, in errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = ByteFile(path)
        self.tensors: dict[str, StoredTensor] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """The file at ``path``. Raises `LoadError` when it is missing or damaged."""
        try:
            return cls(path)
        except FileNotFoundError:
            raise LoadError(f"{path} does not exist", fix=cls.fix) from None
        except OSError as error:
            raise LoadError(f"{path} cannot be read: {error}", fix=cls.fix) from None
