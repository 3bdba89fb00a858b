"""The safetensors files of a model: which tensors they hold, and the bytes of each."""

from __future__ import annotations

import json
import os
import re
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from gptrs.errors import LoadError
from gptrs.ir.types import Array, DType, Type, bf16, f16, f32
from gptrs.runtime.files import read_json

SUFFIX = ".safetensors"
DOWNLOAD_AGAIN = "download the model again"
_LENGTH_BYTES = 8  # at the beginning of a file, little-endian: the header's length
_COMPARED = 2**20  # bytes at a time
_READ = 2**26  # bytes at a time; macOS takes less than 2**31
_DTYPES: dict[str, DType] = {"F32": f32, "F16": f16, "BF16": bf16}
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_FILE_NAME = re.compile(r"[^/\\\x00]+\.safetensors")


class TensorFile:
    """A safetensors file, checked and kept open, so that nothing that replaces it is read.

    Its tensors are not mapped: mapped pages count as memory of this process, and touching one that
    the file has lost ends it with a bus error.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        self._size = os.fstat(self._descriptor).st_size
        with safe_open(path, framework="numpy"):
            pass  # checks the header
        length = np.empty(1, "<u8")
        self._fill(length, 0)
        header = np.empty(int(length[0]), np.uint8)
        self._fill(header, _LENGTH_BYTES)
        self._begin = _LENGTH_BYTES + header.size
        self.tensors: dict[str, Any] = json.loads(header.tobytes())
        self.tensors.pop("__metadata__", None)

    @classmethod
    def open(cls, path: Path) -> TensorFile:
        """The file at ``path``. Raises `LoadError` when it is missing or damaged."""
        try:
            return cls(path)
        except FileNotFoundError:
            raise LoadError(f"{path} does not exist", fix=DOWNLOAD_AGAIN) from None
        except OSError as error:
            raise LoadError(f"{path} cannot be read: {error}", fix=DOWNLOAD_AGAIN) from None
        except SafetensorError as error:
            raise LoadError(
                f"{path} is no complete safetensors file: {error}", fix=DOWNLOAD_AGAIN
            ) from None

    def fill(self, out: Array, key: str, skip: int = 0) -> None:
        """Read the bytes of tensor ``key`` that follow the first ``skip`` into ``out``.

        Threads may do so at the same time. Raises `LoadError`.
        """
        try:
            self._fill(out, self._begin + self.tensors[key]["data_offsets"][0] + skip)
        except OSError as error:
            raise LoadError(f"{self.path}: {key!r} cannot be read: {error}") from None

    def _fill(self, out: Array, offset: int) -> None:
        left = _as_bytes(out).data
        while left and (count := _read_at(self._descriptor, left, offset)):
            left, offset = left[count:], offset + count
        found = os.fstat(self._descriptor).st_size
        if left or found < self._size:
            raise LoadError(
                f"{self.path} has {found} bytes, it had {self._size} when it was opened",
                fix="load the model again when the file is complete",
            )


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file, called ``key`` there."""

    file: TensorFile
    key: str
    type: Type

    @classmethod
    def find(cls, file: TensorFile, key: str) -> StoredTensor:
        """Tensor ``key`` of ``file``. Raises `LoadError` for a dtype that models do not have."""
        entry = file.tensors[key]
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise LoadError(
                f"{file.path}: {key!r} has dtype {entry['dtype']},"
                f" expected one of {', '.join(_DTYPES)}",
                fix="save the model with one of these dtypes",
            )
        return cls(file, key, Type(entry["shape"], dtype))

    def holds(self, array: Array, skip: int) -> bool:
        """Whether it has, ``skip`` bytes on, the bits of ``array`` (NaN equals itself)."""
        expected = _as_bytes(array)
        part = np.empty(min(_COMPARED, array.nbytes), np.uint8)
        for first in range(0, array.nbytes, _COMPARED):
            wanted = expected[first : first + _COMPARED]
            self.file.fill(part[: wanted.size], self.key, skip + first)
            if not np.array_equal(part[: wanted.size], wanted):
                return False
        return True


class Checkpoint:
    """The open files of a model: a directory, or one file. ``place`` is what lists the tensors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_file = path.is_file()
        self._tensors: list[tuple[TensorFile, list[str]]] = []
        self.place = path / _INDEX
        for found, keys in ({path: None} if self.is_file else _files(path)).items():
            file = TensorFile.open(found)
            listed = set(file.tensors)
            if keys is None:
                self.place, keys = found, listed
            if missing := sorted(keys - listed):
                raise LoadError(
                    f"{found} has no tensor {missing[0]!r}, which {self.place} places there",
                    fix=DOWNLOAD_AGAIN,
                )
            self._tensors.append((file, sorted(keys)))

    def __iter__(self) -> Iterator[tuple[TensorFile, str]]:
        return ((file, key) for file, keys in self._tensors for key in keys)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors by their names in the files."""
        return {key: tuple(file.tensors[key]["shape"]) for file, key in self}


def _as_bytes(array: Array) -> Array:
    """The memory of ``array``, whose elements lie in order."""
    return array.reshape(-1).view(np.uint8)


_seeking = Lock()


def _read_at(descriptor: int, out: memoryview, offset: int) -> int:
    """Fill the beginning of ``out``, at least 1 byte of it unless the file ends: how many."""
    out = out[:_READ]
    if sys.platform != "win32":
        return os.preadv(descriptor, [out], offset)
    with _seeking:  # where reads have no offset, the descriptor's own is shared
        os.lseek(descriptor, offset, os.SEEK_SET)
        read = os.read(descriptor, len(out))
    out[: len(read)] = read
    return len(read)


def _files(directory: Path) -> dict[Path, set[str] | None]:
    """The weight files and the tensors to take from each (None: all)."""
    if (directory / _SINGLE).exists():
        return {directory / _SINGLE: None}
    index = directory / _INDEX
    if not index.exists():
        return {_only_file(directory): None}
    places: object = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LoadError(
            f"{index}: weight_map is {places!r}, expected names of tensors and files",
            fix=DOWNLOAD_AGAIN,
        )
    files: dict[Path, set[str] | None] = {}
    for key, name in cast("dict[str, object]", places).items():
        if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
            raise LoadError(
                f"{index}: {key!r} is in {name!r}, expected a .safetensors file of this directory",
                fix="download the directory again, from a source that you trust",
            )
        keys = files.setdefault(directory / name, set())
        assert keys is not None
        keys.add(key)
    return files


def _only_file(directory: Path) -> Path:
    """The one weight file of a directory where it has a name of its own."""
    names = sorted(path.name for path in directory.iterdir())
    found = [name for name in names if name.endswith(SUFFIX)]
    if len(found) == 1:
        return directory / found[0]
    pickles = [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
    said = ""
    if found:
        said = f", found {len(found)} others: {', '.join(found)}"
    elif pickles:
        said = f", found {pickles[0]}, which is a pickle and is never opened"
    raise LoadError(
        f"{directory} has no weights: expected model.safetensors or model.safetensors.index.json"
        f"{said}",
        fix="name the file to load model.safetensors"
        if found
        else "save the model with save_pretrained(..., safe_serialization=True)",
    )
