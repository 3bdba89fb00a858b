"""The tensor index that checkpoints (``GPTRSCHK``) and tensor archives (``GPTRSTEN``) share.

Little-endian, tensors row-major::

    magic[8]   version u32 = 2
    ... (checkpoints only)
    index_len u32   index[index_len]
    data ...
    index: tensor_count u32, then per tensor
      name_len u32, name (UTF-8), stored_base_id u128 (checkpoints only), rank u32,
      dims u64 × rank, dtype_tag u32, reserved u8, offset_abs u64, byte_len u64

Tags: 0 f32, 1 f16, 2 bf16, 3 si32. ``stored_base_id`` is 0 or `gptrs.params.base_param_id` of the
name. The writer aligns each tensor to 64 bytes; the reader accepts any offset, and ignores the
reserved byte. Names have at most 65,535 bytes, and the number of tensors is bounded by the size of
the file (`gptrs.formats.byte_file.memory_for`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gptrs.errors import ArgumentError
from gptrs.formats.atomic_write import atomic_write
from gptrs.formats.binary_fields import Fields
from gptrs.formats.byte_file import ByteFile, memory_for
from gptrs.formats.stored_tensor import MOST_AXES, MOST_NAME, StoredTensor
from gptrs.formats.tensor_writer import NewTensor
from gptrs.ir.types import DType, bf16, f16, f32, shape_text, si32
from gptrs.params import base_param_id

_TAGS: dict[int, DType] = {0: f32, 1: f16, 2: bf16, 3: si32}
_TAG_OF = {dtype: tag for tag, dtype in _TAGS.items()}
_VERSION = 2
HEAD_BYTES = 12  # of magic and version
STORABLE = tuple(_TAG_OF)
"""The dtypes that the format can store."""
_ALIGNMENT = 64  # bytes: a cache line
_ENTRY = 29  # bytes, of a tensor with no name, no id and rank 0
_ID = 16  # bytes
_LENGTH = 4  # bytes, of index_len
_TENSOR = 2**10  # bytes of memory at most, in all of a model's data structures
_SHOWN = 200  # letters of a name, in errors
_MOST_BYTES = 2**63 - 1  # NumPy's limit, with each extent 0 counted as 1
_U32 = 2**32 - 1


def check_head(file: ByteFile, magic: bytes, kind: str) -> None:
    """Raise `LoadError` unless ``file`` begins with ``magic`` and the version; ``kind`` names
    it."""
    head = Fields.of(file, 0, HEAD_BYTES)
    if (found := head.take(len(magic), "magic")) != magic:
        raise head.wrong("magic", found, f"{magic}, as {kind} begins")
    if (version := head.number("I", "version")) != _VERSION:
        raise head.wrong("version", version, str(_VERSION))


def read_index(file: ByteFile, start: int, *, ids: bool) -> dict[str, StoredTensor]:
    """The tensors by the index, whose length is at ``start`` and whose entries may have ids.

    Raises `LoadError` naming the file, the field, what was found and what was expected.
    """
    head = Fields.of(file, start, _LENGTH)
    length, start = head.number("I", "index_len"), start + _LENGTH
    if length > (left := file.size - start):
        raise head.wrong("index_len", length, f"at most {left}, the rest of the file")
    index = Fields(file.path, "the index", file.read(start, length))
    count = index.number("I", "tensor_count")
    least = _ENTRY + _ID * ids
    if count * least > index.left:
        expected = f"at most {index.left // least}, which fit in the index"
        raise index.wrong("tensor_count", count, expected)
    if count > (most := _most_tensors(length, file.size)):
        expected = f"at most {most}, which take little more memory than a file of this size"
        raise index.wrong("tensor_count", count, expected)
    tensors: dict[str, StoredTensor] = {}
    for number in range(count):
        tensor = _read_entry(file, index, f"tensor {number}", start + length, ids)
        if tensor.key in tensors:
            found = repr(tensor.key[:_SHOWN])
            raise index.wrong(f"tensor {number}: name", found, "a name that is not taken")
        tensors[tensor.key] = tensor
    if index.left:
        raise index.wrong("index_len", length, f"{length - index.left}, the bytes of its tensors")
    _check_overlap(index, list(tensors.values()))
    return tensors


def _most_tensors(index_length: int, size: int) -> int:
    """The number of tensors that a file of ``size`` bytes may have, so that the memory of their
    entries is proportional to it. Names exist twice: in the index, and as text."""
    return (memory_for(size) - 2 * index_length) // _TENSOR


def _read_entry(file: ByteFile, index: Fields, which: str, start: int, ids: bool) -> StoredTensor:
    """The next entry, checked by itself; the data begin at ``start``."""
    name = _read_name(index, which)
    which = f"{which} {name[:_SHOWN]!r}"
    if ids:
        stored = index.large_number(f"{which}: stored_base_id")
        if stored not in (0, base_param_id(name)):
            expected = f"0 or {base_param_id(name):#034x}, the id of that name"
            raise index.wrong(f"{which}: stored_base_id", f"{stored:#034x}", expected)
    rank = index.number("I", f"{which}: rank")
    if rank > MOST_AXES:
        raise index.wrong(f"{which}: rank", rank, f"at most {MOST_AXES}")
    shape = tuple(index.number("Q", f"{which}: dims") for _ in range(rank))
    tag = index.number("I", f"{which}: dtype_tag")
    if tag not in _TAGS:
        known = ", ".join(f"{tag} ({dtype})" for tag, dtype in _TAGS.items())
        raise index.wrong(f"{which}: dtype_tag", tag, f"one of {known}")
    dtype = _TAGS[tag]
    index.number("B", f"{which}: reserved")
    offset = index.number("Q", f"{which}: offset_abs")
    length = index.number("Q", f"{which}: byte_len")
    item = dtype.numpy.itemsize
    if math.prod(max(extent, 1) for extent in shape) * item > _MOST_BYTES:
        raise index.wrong(f"{which}: dims", shape_text(shape), "a size that memory can have")
    if length != (expected := math.prod(shape) * item):
        what = f"{dtype}{shape_text(shape)}"
        raise index.wrong(f"{which}: byte_len", length, f"{expected}, the bytes of {what}")
    last = file.size - length
    if not start <= offset <= last:
        expected = f"{start} to {last}, so that {length} bytes lie inside the file"
        if start > last:
            expected = f"{length} bytes after the index, which ends at {start} of {file.size}"
        raise index.wrong(f"{which}: offset_abs", offset, expected)
    return StoredTensor(file, name, shape, dtype, str(dtype), offset, length)


def _read_name(index: Fields, which: str) -> str:
    length = index.number("I", f"{which}: name_len")
    raw = index.take(length, f"{which}: name")
    if length > MOST_NAME:
        raise index.wrong(f"{which}: name_len", length, f"at most {MOST_NAME}")
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise index.wrong(f"{which}: name", raw[:_SHOWN], "UTF-8 text") from None
    if "\0" in name:
        raise index.wrong(f"{which}: name", repr(name[:_SHOWN]), "text without NUL")
    return name


def _check_overlap(index: Fields, tensors: list[StoredTensor]) -> None:
    end, last = 0, ""
    for tensor in sorted((t for t in tensors if t.length), key=lambda t: t.offset):
        if tensor.offset < end:
            field = f"tensor {tensor.key[:_SHOWN]!r}: offset_abs"
            raise index.wrong(field, tensor.offset, f"at least {end}, where {last[:_SHOWN]!r} ends")
        end, last = tensor.offset + tensor.length, tensor.key


def write_indexed(
    path: Path, magic: bytes, between: bytes, tensors: Sequence[NewTensor], *, ids: bool
) -> None:
    """Write a file atomically; ``between`` are the bytes between version and index_len.

    Raises `ArgumentError` where nothing can be written, for a repeated name, and for an index that
    is too long.
    """
    length = _index_length(tensors, ids)
    head = magic + struct.pack("<I", _VERSION) + between
    with atomic_write(path) as file:
        file.write(head + struct.pack("<II", length, len(tensors)))
        _write_tensors(file, len(head) + _LENGTH + length, tensors, ids)


def _write_tensors(file: BinaryIO, end: int, tensors: Sequence[NewTensor], ids: bool) -> None:
    """Write the entries of the index, which ends at ``end``, and the data."""
    offsets: list[int] = []
    for tensor in tensors:
        offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
        end = offsets[-1] + tensor.size
        file.write(_entry(tensor, offsets[-1], ids))
    for tensor, offset in zip(tensors, offsets, strict=True):
        file.write(bytes(offset - file.tell()))
        tensor.write(file)


def _index_length(tensors: Sequence[NewTensor], ids: bool) -> int:
    names = {tensor.name for tensor in tensors}
    if len(names) < len(tensors):
        given = [tensor.name for tensor in tensors]
        twice = next(name for name in given if given.count(name) > 1)
        raise ArgumentError(f"the name {twice!r} is there twice", fix="give each tensor its own")
    length = 4 + sum(
        _ENTRY + _ID * ids + len(tensor.name.encode()) + 8 * len(tensor.shape) for tensor in tensors
    )
    if length > _U32:
        raise ArgumentError(
            f"the index has {length} bytes, expected at most {_U32}",
            fix="write the tensors to several files",
        )
    size = length + sum(tensor.size for tensor in tensors)
    if len(tensors) > (most := _most_tensors(length, size)):
        raise ArgumentError(
            f"there are {len(tensors)} tensors, expected at most {most} as small as these",
            fix="write them to several files, or as rows of one tensor",
        )
    return length


def _entry(tensor: NewTensor, offset: int, ids: bool) -> bytes:
    name, rank = tensor.name.encode(), len(tensor.shape)
    stored = base_param_id(tensor.name).to_bytes(_ID, "little") if ids else b""
    return struct.pack(
        f"<I{len(name)}s{len(stored)}sI{rank}QIBQQ",
        *(len(name), name, stored, rank, *tensor.shape),
        *(_TAG_OF[tensor.dtype], 0, offset, tensor.size),
    )
