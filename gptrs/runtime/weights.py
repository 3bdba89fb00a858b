"""The weights of a Hugging Face directory, each read when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError, safe_open

from gptrs import events
from gptrs.errors import LoadError
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array, DType, Type, bf16, f16, f32, shape_text
from gptrs.params import base_param_id
from gptrs.runtime.files import read_json

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
    """Event: one parameter was read."""

    name: str
    size: int


@dataclass(frozen=True)
class _File:
    path: Path
    size: int  # in bytes, when it was opened
    handle: Any


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
            listed = set(file.handle.keys())
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
        stored = self._stored[name := self._names[param_id]]
        array = self._read(stored)
        if (copy := self._copies.get(name)) is not None and not _equal(array, self._read(copy)):
            raise LoadError(
                f"{copy.file.path}: {copy.key!r} differs from {stored.key!r}, expected a copy"
                " of it, because tie_word_embeddings is true",
                fix="set tie_word_embeddings to false in config.json to use both",
            )
        if events.listening():
            events.emit(WeightRead(name, array.nbytes))
        return array

    def _read(self, stored: _Stored) -> Array:
        file = stored.file
        try:
            # Reading what is gone from a mapped file would end the process with a bus error.
            if (found := file.path.stat().st_size) < file.size:
                raise LoadError(
                    f"{file.path} has {found} bytes, it had {file.size} when it was opened",
                    fix="load the model again when the file is complete",
                )
            return file.handle.get_tensor(stored.key)
        except (SafetensorError, OSError) as error:
            raise LoadError(f"{file.path}: {stored.key!r} cannot be read: {error}") from None


def _equal(a: Array, b: Array) -> bool:
    """Whether two arrays have the same bits (a NaN equals itself)."""
    return (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() == b.tobytes()


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
        return _File(path, path.stat().st_size, safe_open(path, framework="numpy"))
    except FileNotFoundError:
        raise LoadError(f"{path} does not exist", fix=_AGAIN) from None
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}", fix=_AGAIN) from None
    except SafetensorError as error:
        raise LoadError(f"{path} is no complete safetensors file: {error}", fix=_AGAIN) from None


def _type(file: _File, key: str) -> Type:
    view = file.handle.get_slice(key)
    dtype = _DTYPES.get(view.get_dtype())
    if dtype is None:
        raise LoadError(
            f"{file.path}: {key!r} has dtype {view.get_dtype()},"
            f" expected one of {', '.join(_DTYPES)}",
            fix="save the model with one of these dtypes",
        )
    return Type(view.get_shape(), dtype)
