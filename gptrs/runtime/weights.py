"""The weights of a Hugging Face directory, each read when it is first needed."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError, safe_open

from gptrs import events
from gptrs.errors import LoadError
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array, DType, Type, bf16, f16, f32, shape_text
from gptrs.params import base_param_id
from gptrs.runtime.files import read_json

_LENGTH_BYTES = 8  # at the beginning of a file, little-endian: the header's length
_COMPARED = 2**20  # bytes at a time
_READ = 2**26  # bytes at a time; macOS takes less than 2**31
_DTYPES: dict[str, DType] = {"F32": f32, "F16": f16, "BF16": bf16}
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_FILE_NAME = re.compile(r"[^/\\\x00]+\.safetensors")
_AGAIN = "download the directory again"
_OTHER_CONFIG = "check that config.json belongs to these weights"


@dataclass(frozen=True)
class WeightsOpened:
    """Event: a model's files are open and hold ``count`` parameters of ``size`` bytes."""

    count: int
    size: int


@dataclass(frozen=True)
class WeightRead:
    """Event: a parameter, or ``size`` bytes of a large one, was read."""

    name: str
    size: int


class _File:
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
class _Stored:
    file: _File
    key: str  # its name in the file
    type: Type


class Weights:
    """The tensors of ``directory`` by the names that the model uses.

    ``renames`` turn the names in the files into those; what ``ignored`` matches then is left out.
    ``copies`` are names of tensors that may be there as well as, or instead of, their equals.
    """

    def __init__(
        self,
        directory: Path,
        renames: Iterable[tuple[re.Pattern[str], str]],
        ignored: re.Pattern[str],
        copies: Mapping[str, str],
    ) -> None:
        self._stored: dict[str, _Stored] = {}
        self._names: dict[int, str] = {}
        self._place = directory / _INDEX
        self._used: dict[str, Parameter] = {}
        self._copies: dict[str, _Stored] = {}
        for path, keys in _files(directory).items():
            file = _open(path)
            listed = set(file.tensors)
            if keys is None:
                self._place, keys = path, listed
            if missing := sorted(keys - listed):
                raise LoadError(
                    f"{path} has no tensor {missing[0]!r}, which {self._place} places there",
                    fix=_AGAIN,
                )
            for key in sorted(keys):
                name = key
                for pattern, replacement in renames:
                    name = pattern.sub(replacement, name)
                if not ignored.match(name):
                    self._add(name, file, key)
        for copy, name in copies.items():
            if (stored := self._stored.pop(copy, None)) is None:
                continue
            if name in self._stored:
                self._copies[name] = stored
            else:
                self._stored[name] = stored

    def _add(self, name: str, file: _File, key: str) -> None:
        if (other := self._stored.get(name)) is not None:
            raise LoadError(
                f"{file.path}: {key!r} is tensor {name!r}, and so is {other.key!r} of"
                f" {other.file.path}",
                fix="remove one of them",
            )
        self._stored[name] = _Stored(file, key, _type(file, key))

    def parameter(self, name: str, shape: tuple[int, ...]) -> Parameter:
        """The parameter called ``name``.

        Raises `LoadError` when it is missing or has another shape.
        """
        if name in self._used:
            return self._used[name]
        if (stored := self._stored.get(name)) is None:
            near = get_close_matches(name, self._stored, n=1, cutoff=0)
            raise LoadError(
                f"{self._place} has no tensor {name!r} {shape_text(shape)}"
                f" (it has {len(self._stored)} tensors{', such as ' + near[0] if near else ''})",
                fix=_OTHER_CONFIG,
            )
        if stored.type.shape != shape:
            raise LoadError(
                f"{stored.file.path}: {stored.key!r} has shape {shape_text(stored.type.shape)},"
                f" expected {shape_text(shape)} by config.json",
                fix=_OTHER_CONFIG,
            )
        self._names[base_param_id(name)] = name
        self._used[name] = Parameter.from_source(name, stored.type, self)
        return self._used[name]

    def finish(self) -> None:
        """Check that the model uses every tensor, and report what was opened."""
        if extra := sorted(set(self._stored) - set(self._used)):
            first = self._stored[extra[0]]
            raise LoadError(
                f"{first.file.path}: the model has no place for tensor {first.key!r}"
                f"{f' and {len(extra) - 1} more' if len(extra) > 1 else ''}",
                fix=_OTHER_CONFIG,
            )
        if events.listening():
            size = sum(_bytes(p.type) for p in self._used.values())
            events.emit(WeightsOpened(len(self._used), size))

    def load(self, param_id: int) -> Array:
        name = self._names[param_id]
        return self._read(name, cast("tuple[int, ...]", self._stored[name].type.shape))

    def load_rows(self, param_id: int, first: int, last: int) -> Array:
        name = self._names[param_id]
        count, *row = cast("tuple[int, ...]", self._stored[name].type.shape)
        first, last, _ = slice(first, last).indices(count)
        return self._read(name, (max(last - first, 0), *row), first)

    def _read(self, name: str, shape: tuple[int, ...], first: int = 0) -> Array:
        """The elements of ``shape`` that begin with row ``first``."""
        stored = self._stored[name]
        array = np.empty(shape, stored.type.dtype.numpy)
        skip = first * math.prod(shape[1:]) * array.itemsize
        stored.file.fill(array, stored.key, skip)
        if (copy := self._copies.get(name)) is not None and (
            copy.type != stored.type or not _holds(copy, array, skip)
        ):
            raise LoadError(
                f"{copy.file.path}: {copy.key!r} differs from {stored.key!r}, expected a copy"
                " of it, because tie_word_embeddings is true",
                fix="set tie_word_embeddings to false in config.json to use both",
            )
        if events.listening():
            events.emit(WeightRead(name, array.nbytes))
        return array


def _holds(stored: _Stored, array: Array, skip: int) -> bool:
    """Whether a stored tensor has, ``skip`` bytes on, the bits of ``array`` (NaN equals itself)."""
    expected = _as_bytes(array)
    part = np.empty(min(_COMPARED, array.nbytes), np.uint8)
    for first in range(0, array.nbytes, _COMPARED):
        wanted = expected[first : first + _COMPARED]
        stored.file.fill(part[: wanted.size], stored.key, skip + first)
        if not np.array_equal(part[: wanted.size], wanted):
            return False
    return True


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


def _bytes(type: Type) -> int:
    return int(type.size) * type.dtype.numpy.itemsize


def _files(directory: Path) -> dict[Path, set[str] | None]:
    """The weight files and the tensors to take from each (None: all)."""
    if (directory / _SINGLE).exists():
        return {directory / _SINGLE: None}
    index = directory / _INDEX
    if not index.exists():
        kinds = "model.safetensors or model.safetensors.index.json"
        found = sorted(p.name for p in directory.iterdir() if p.suffix in (".bin", ".pt", ".pth"))
        raise LoadError(
            f"{directory} has no weights: expected {kinds}"
            f"{f', found {found[0]}, which is a pickle and is never opened' if found else ''}",
            fix="save the model with save_pretrained(..., safe_serialization=True)",
        )
    places: object = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LoadError(
            f"{index}: weight_map is {places!r}, expected names of tensors and files", fix=_AGAIN
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


def _open(path: Path) -> _File:
    try:
        return _File(path)
    except FileNotFoundError:
        raise LoadError(f"{path} does not exist", fix=_AGAIN) from None
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}", fix=_AGAIN) from None
    except SafetensorError as error:
        raise LoadError(f"{path} is no complete safetensors file: {error}", fix=_AGAIN) from None


def _type(file: _File, key: str) -> Type:
    entry = file.tensors[key]
    dtype = _DTYPES.get(entry["dtype"])
    if dtype is None:
        raise LoadError(
            f"{file.path}: {key!r} has dtype {entry['dtype']},"
            f" expected one of {', '.join(_DTYPES)}",
            fix="save the model with one of these dtypes",
        )
    return Type(entry["shape"], dtype)
