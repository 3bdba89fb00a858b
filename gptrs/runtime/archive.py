"""The tensor archive ``GPTRSTEN``, version 2: named tensors in one file.

Little-endian, tensors row-major::

    magic[8] = "GPTRSTEN"   version u32 = 2
    index_len u32           index[index_len]
    data ...
    index: tensor_count u32, then per tensor
      name_len u32, name (UTF-8), rank u32, dims u64 × rank, dtype_tag u32, reserved u8,
      offset_abs u64, byte_len u64

Tags: 0 f32, 1 f16, 2 bf16, 3 si32. The writer begins each tensor at a multiple of 64 bytes; the
reader takes any place, and looks at no reserved byte.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError, LoadError
from gptrs.ir.tensor import as_array
from gptrs.ir.types import Array, DType, as_dtype, bf16, f16, f32, shape_text, si32
from gptrs.runtime.replacing import replacing

MAGIC = b"GPTRSTEN"
_VERSION = 2
_TAGS: dict[int, DType] = {0: f32, 1: f16, 2: bf16, 3: si32}
_TAG_OF = {dtype: tag for tag, dtype in _TAGS.items()}
_ALIGNMENT = 64  # bytes: a cache line
_HEAD = struct.Struct("<8sII")
_LEAST_ENTRY = 29  # bytes, of a tensor with no name and rank 0
_MOST_AXES = 64  # of a NumPy array
_MOST_BYTES = 2**63 - 1  # that NumPy counts, with each extent 0 taken as 1
_U32 = 2**32 - 1
_AGAIN = "copy or write the file again"


@dataclass(frozen=True)
class _Entry:
    name: str
    shape: tuple[int, ...]
    dtype: DType
    offset: int
    length: int


def read_archive(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The tensors of an archive by their names, in their order.

    All of the index is checked before memory is taken for a tensor. Raises `LoadError` naming the
    file, the field, what was found and what was expected.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            entries = _read_index(path, file, size)
            return {entry.name: _read_tensor(path, file, entry) for entry in entries}
    except FileNotFoundError:
        raise LoadError(f"{path} does not exist", fix="give the path of an archive") from None
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}") from None


def write_archive(path: str | os.PathLike[str], tensors: Mapping[str, object]) -> None:
    """Write arrays or Tensors by their names, whole or not at all.

    Raises `ArgumentError` for a name or an element type that an archive cannot hold, and where
    nothing can be written.
    """
    arrays: list[Array] = []
    entries: list[_Entry] = []
    names = {name: _encoded(name) for name in tensors}
    fixed = sum(_LEAST_ENTRY + len(name) for name in names.values())
    for name, value in tensors.items():
        array = as_array(value)
        if array is None:
            kind = type(value).__name__
            raise ArgumentError(f"{name!r} is a {kind}, expected an array or a Tensor")
        if (dtype := as_dtype(array.dtype)) not in _TAG_OF:
            known = ", ".join(map(str, _TAG_OF))
            raise ArgumentError(
                f"{name!r} has dtype {dtype}, expected one of {known}, which archives hold",
                fix="convert it to one of these",
            )
        fixed += 8 * array.ndim
        arrays.append(np.ascontiguousarray(array).reshape(array.shape))
        entries.append(_Entry(name, array.shape, dtype, 0, array.nbytes))
    index_length = 4 + fixed
    if index_length > _U32:
        raise ArgumentError(f"the index has {index_length} bytes, expected at most {_U32}")
    end = _HEAD.size + index_length
    offsets: list[int] = []
    for entry in entries:
        offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        end = offsets[-1] + entry.length
    with replacing(Path(path)) as file:
        file.write(_HEAD.pack(MAGIC, _VERSION, index_length))
        file.write(struct.pack("<I", len(entries)))
        for entry, offset in zip(entries, offsets, strict=True):
            file.write(_entry_bytes(entry, names[entry.name], offset))
        for array, offset in zip(arrays, offsets, strict=True):
            file.write(bytes(offset - file.tell()))
            file.write(_as_bytes(array).data)


def _encoded(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the name {name!r} is no UTF-8 text: {error}") from None


def _entry_bytes(entry: _Entry, name: bytes, offset: int) -> bytes:
    rank = len(entry.shape)
    return struct.pack(
        f"<I{len(name)}sI{rank}QIBQQ",
        *(len(name), name, rank, *entry.shape, _TAG_OF[entry.dtype], 0, offset, entry.length),
    )


class _Index:
    """The bytes of an index, read from the beginning to the end."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def wrong(self, field: str, found: object, expected: str) -> LoadError:
        return LoadError(f"{self._path}: {field} is {found}, expected {expected}", fix=_AGAIN)

    def take(self, count: int, field: str) -> bytes:
        if count > self.left:
            raise LoadError(
                f"{self._path}: the index has {self.left} bytes left for {field},"
                f" expected at least {count}",
                fix=_AGAIN,
            )
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, form: str, field: str) -> int:
        """A number: ``B``, ``I`` or ``Q`` of 1, 4 or 8 bytes."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), field))[0]


def _read_index(path: Path, file: BufferedReader, size: int) -> list[_Entry]:
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise LoadError(
            f"{path} has {len(head)} bytes, expected at least the {_HEAD.size} of a header",
            fix=_AGAIN,
        )
    magic, version, length = _HEAD.unpack(head)
    index = _Index(path, b"")
    if magic != MAGIC:
        raise index.wrong("magic", magic, f"{MAGIC}, as a tensor archive begins")
    if version != _VERSION:
        raise index.wrong("version", version, str(_VERSION))
    start = _HEAD.size + length
    if start > size:
        raise index.wrong("index_len", length, f"at most {size - _HEAD.size}, the rest of the file")
    index = _Index(path, file.read(length))
    count = index.number("I", "tensor_count")
    if count * _LEAST_ENTRY > index.left:
        expected = f"at most {index.left // _LEAST_ENTRY}, which fit in the index"
        raise index.wrong("tensor_count", count, expected)
    entries: dict[str, _Entry] = {}
    for number in range(count):
        entry = _read_entry(index, f"tensor {number}", start, size)
        if entry.name in entries:
            raise index.wrong(
                f"tensor {number}: name", repr(entry.name), "a name that is not taken"
            )
        entries[entry.name] = entry
    if index.left:
        raise index.wrong("index_len", length, f"{length - index.left}, the bytes of its tensors")
    _check_overlap(index, list(entries.values()))
    return list(entries.values())


def _read_entry(index: _Index, which: str, start: int, size: int) -> _Entry:
    """The next tensor, checked by itself; data lie from ``start`` to ``size``."""
    length = index.number("I", f"{which}: name_len")
    raw = index.take(length, f"{which}: name")
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise index.wrong(f"{which}: name", raw, "UTF-8 text") from None
    which = f"{which} {name!r}"
    rank = index.number("I", f"{which}: rank")
    if rank > _MOST_AXES:
        raise index.wrong(f"{which}: rank", rank, f"at most {_MOST_AXES}")
    shape = tuple(index.number("Q", f"{which}: dims") for _ in range(rank))
    tag = index.number("I", f"{which}: dtype_tag")
    if tag not in _TAGS:
        known = ", ".join(f"{tag} ({dtype})" for tag, dtype in _TAGS.items())
        raise index.wrong(f"{which}: dtype_tag", tag, f"one of {known}")
    index.number("B", f"{which}: reserved")
    offset = index.number("Q", f"{which}: offset_abs")
    length = index.number("Q", f"{which}: byte_len")
    item = _TAGS[tag].numpy.itemsize
    if math.prod(max(extent, 1) for extent in shape) * item > _MOST_BYTES:
        raise index.wrong(f"{which}: dims", shape_text(shape), "a size that memory can have")
    if length != (expected := math.prod(shape) * item):
        what = f"{_TAGS[tag]}{shape_text(shape)}"
        raise index.wrong(f"{which}: byte_len", length, f"{expected}, the bytes of {what}")
    if not start <= offset <= size - length:
        expected = f"{start} to {size - length}, so that {length} bytes lie inside the file"
        if start > size - length:
            expected = f"{length} bytes after the index, which ends at {start} of {size}"
        raise index.wrong(f"{which}: offset_abs", offset, expected)
    return _Entry(name, shape, _TAGS[tag], offset, length)


def _check_overlap(index: _Index, entries: list[_Entry]) -> None:
    end, last = 0, ""
    for entry in sorted((e for e in entries if e.length), key=lambda e: e.offset):
        if entry.offset < end:
            field = f"tensor {entry.name!r}: offset_abs"
            raise index.wrong(field, entry.offset, f"at least {end}, where {last!r} ends")
        end, last = entry.offset + entry.length, entry.name


def _read_tensor(path: Path, file: BufferedReader, entry: _Entry) -> Array:
    array: np.ndarray[Any, Any] = np.empty(entry.shape, entry.dtype.numpy)
    file.seek(entry.offset)
    found = file.readinto(_as_bytes(array).data)
    if found != entry.length:
        raise LoadError(
            f"{path}: tensor {entry.name!r} ends after {found} of {entry.length} bytes",
            fix="read it again when the file is complete",
        )
    return array


def _as_bytes(array: Array) -> Array:
    """The memory of ``array``, whose elements lie in order."""
    return array.reshape(-1).view(np.uint8)
