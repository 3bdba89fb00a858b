"""Tensor archive ``GPTRSTEN``, version 2: named tensors in one file.

The byte layout is in `gptrs.formats.tensor_index`, which checkpoints share.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gptrs.formats.binary_fields import AGAIN
from gptrs.formats.byte_file import begins_with
from gptrs.formats.stored_tensor import TensorFile
from gptrs.formats.tensor_index import (
    HEAD_BYTES,
    STORABLE,
    check_head,
    read_index,
    write_indexed,
)
from gptrs.formats.tensor_writer import NewTensor, new_tensors
from gptrs.ir.types import Array

MAGIC = b"GPTRSTEN"
SUFFIX = ".gten"


class ArchiveFile(TensorFile):
    """A tensor archive, whose index is checked."""

    fix = AGAIN

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_head(self.file, MAGIC, "a tensor archive")
        self.tensors = read_index(self.file, HEAD_BYTES, ids=False)


def is_archive(path: Path) -> bool:
    """Whether the file begins with the magic of archives. Raises `LoadError` if unreadable."""
    return begins_with(path, MAGIC)


def read_archive(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The tensors of an archive by their names, in their order.

    The whole index is checked before memory is taken for a tensor. Raises `LoadError` naming the
    file, the field, what was found and what was expected.
    """
    tensors = ArchiveFile.open(Path(path)).tensors
    return {name: tensor.read() for name, tensor in tensors.items()}


def write_archive(
    path: str | os.PathLike[str], tensors: Mapping[str, object] | Iterable[NewTensor]
) -> None:
    """Write arrays or Tensors by their names, atomically.

    Raises `ArgumentError` for a name or an element type that an archive cannot hold, and where
    nothing can be written.
    """
    given = new_tensors(tensors, STORABLE, "archives")
    write_indexed(Path(path), MAGIC, b"", given, ids=False)
