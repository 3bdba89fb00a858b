"""`NewTensor`: a tensor to be written as a stream of pieces, as it need not fit into memory.

Sources are arrays, Parameters (read row by row) and stored tensors (converted piece by piece). All
writers of tensor files take lists of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, cast

import numpy as np

from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.formats.byte_file import as_bytes
from gptrs.formats.stored_tensor import MOST_NAME, StoredTensor
from gptrs.formats.write_events import PieceWritten
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import as_array
from gptrs.ir.types import Array, DType, as_dtype
from gptrs.lazy_dataclass import dataclass

_PIECE = 2**22  # elements at a time
_SHOWN = 60  # letters of a name, in errors


@dataclass(frozen=True)
class NewTensor:
    """A tensor to be written: name, type, and an iterator over its elements in order, as arrays of
    ``dtype``."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    pieces: Callable[[], Iterator[Array]]

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.dtype.numpy.itemsize

    @classmethod
    def of(cls, name: str, value: object) -> NewTensor:
        """``value``, an array or a Tensor. Raises `ArgumentError` for anything else.

        A Parameter that is not loaded is read row by row and not cached.
        """
        if isinstance(value, Parameter):
            shape = cast("tuple[int, ...]", value.shape)
            return cls(name, shape, value.dtype, lambda: _rows(value, shape))
        array = as_array(value)
        if array is None:
            kind = type(value).__name__
            raise ArgumentError(
                f"{name!r} is a {kind}, expected an array or a Tensor",
                fix="make an array of it: numpy.asarray",
            )
        return cls(name, array.shape, as_dtype(array.dtype), lambda: iter((array,)))

    @classmethod
    def stored(cls, name: str, tensor: StoredTensor, dtype: DType) -> NewTensor:
        """A tensor of a file, converted to ``dtype``.

        While it is written, a finite element that becomes infinite raises `ArgumentError`.
        """
        return cls(name, tensor.shape, dtype, lambda: _converted(tensor, dtype))

    def write(self, file: BinaryIO) -> None:
        """Write the elements in order."""
        for piece in self.pieces():
            count = file.write(as_bytes(np.ascontiguousarray(piece)))
            del piece  # freed before the next one is made
            if events.listening():
                events.emit(PieceWritten(count))


def new_tensors(
    values: Mapping[str, object] | Iterable[NewTensor], dtypes: Iterable[DType], kind: str
) -> list[NewTensor]:
    """``values`` as tensors for a file of a ``kind`` that can store ``dtypes``.

    Raises `ArgumentError` for a name or an element type that it cannot store.
    """
    if isinstance(values, Mapping):
        given = cast("Mapping[str, object]", values)
        tensors = [NewTensor.of(name, value) for name, value in given.items()]
    else:
        tensors = list(values)
    allowed = list(dtypes)
    for tensor in tensors:
        _check_name(tensor.name)
        if tensor.dtype not in allowed:
            raise ArgumentError(
                f"{tensor.name!r} has dtype {tensor.dtype}, expected one of"
                f" {', '.join(map(str, allowed))}, which {kind} hold",
                fix="convert it to one of these",
            )
    return tensors


def _check_name(name: str) -> None:
    """Raise `ArgumentError` unless a file can store ``name``."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"the name {name!r} is no UTF-8 text: {error}", fix="give it another name"
        ) from None
    if len(name.encode()) > MOST_NAME:
        raise ArgumentError(
            f"the name {name[:_SHOWN]!r}... has {len(name)} letters, expected at most {MOST_NAME}"
            " bytes of UTF-8",
            fix="give it another name",
        )
    if "\0" in name:
        raise ArgumentError(
            f"the name {name!r} holds a NUL, expected text without one", fix="give it another name"
        )


def _rows(value: Parameter, shape: tuple[int, ...]) -> Iterator[Array]:
    if not shape:
        yield value.numpy()
        return
    step = max(1, _PIECE // max(1, math.prod(shape[1:])))
    for first in range(0, shape[0], step):
        yield value.rows(first, first + step)


def _converted(tensor: StoredTensor, dtype: DType) -> Iterator[Array]:
    for first in range(0, tensor.elements, _PIECE):
        yield _convert(tensor, tensor.part(first, min(first + _PIECE, tensor.elements)), dtype)


def _convert(tensor: StoredTensor, piece: Array, dtype: DType) -> Array:
    if piece.dtype == dtype.numpy:
        return piece
    with np.errstate(over="ignore"):
        made = piece.astype(dtype.numpy)
    for lost in piece[np.isfinite(piece) & ~np.isfinite(made)][:1]:
        raise ArgumentError(
            f"{tensor.file.path}: {tensor.key!r} holds {lost}, which is too large for {dtype}",
            fix="convert to bf16 or f32",
        )
    return made
