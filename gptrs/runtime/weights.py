"""The weights of a Hugging Face directory, each read when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gptrs import events
from gptrs.errors import LoadError
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import DTYPES, Array, DType, Type, shape_text
from gptrs.params import base_param_id
from gptrs.runtime.files import read_json

_DTYPES: dict[str, DType] = {
    **{"F64": DTYPES["f64"], "F32": DTYPES["f32"], "F16": DTYPES["f16"], "BF16": DTYPES["bf16"]},
}
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


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
class _Stored:
    file: Path
    key: str  # its name in the file
    type: Type


class Weights:
    """The tensors of ``directory`` by the names that the model uses.

    ``renames`` turn the names in the files into those; what ``ignored`` matches then is left out.
    """

    def __init__(
        self,
        directory: Path,
        renames: Iterable[tuple[re.Pattern[str], str]],
        ignored: re.Pattern[str],
    ) -> None:
        self._stored: dict[str, _Stored] = {}
        self._names: dict[int, str] = {}
        self._files: dict[Path, Any] = {}
        self._used: dict[str, Parameter] = {}
        for file, keys in _files(directory).items():
            handle = self._files[file] = _open(file)
            listed = set(handle.keys())
            for key in sorted(listed if keys is None else keys):
                if key not in listed:
                    raise LoadError(
                        f"{file} has no tensor {key!r}, which {directory / _INDEX} places there",
                        fix="download the directory again",
                    )
                name = key
                for pattern, replacement in renames:
                    name = pattern.sub(replacement, name)
                if ignored.match(name):
                    continue
                if name in self._stored:
                    raise LoadError(f"{file}: {key!r} and {self._stored[name].key!r} are one tensor")
                self._stored[name] = _Stored(file, key, _type(file, key, handle))
                self._names[base_param_id(name)] = name

    def parameter(self, name: str, shape: tuple[int, ...]) -> Parameter:
        """The parameter called ``name``. Raises `LoadError` when it is missing or has another shape."""
        if name in self._used:
            return self._used[name]
        if (stored := self._stored.get(name)) is None:
            near = [n for n in self._stored if n.rpartition(".")[2] == name.rpartition(".")[2]]
            raise LoadError(
                f"{self._place()} has no tensor {name!r} {shape_text(shape)}"
                f" (it has {len(self._stored)} tensors{', such as ' + near[0] if near else ''})",
                fix="check that config.json belongs to these weights",
            )
        if stored.type.shape != shape:
            raise LoadError(
                f"{stored.file}: {stored.key!r} has shape {shape_text(stored.type.shape)},"
                f" config.json asks for {shape_text(shape)}"
            )
        self._used[name] = Parameter.from_source(name, stored.type, self)
        return self._used[name]

    def finish(self, unused: frozenset[str] = frozenset()) -> None:
        """Check that the model uses every tensor but ``unused``, and report what was opened."""
        if extra := sorted(set(self._stored) - set(self._used) - unused):
            raise LoadError(
                f"{self._stored[extra[0]].file}: the model has no place for tensor {extra[0]!r}"
                f"{f' and {len(extra) - 1} more' if len(extra) > 1 else ''}",
                fix="check that config.json belongs to these weights",
            )
        if events.listening():
            size = sum(_bytes(p.type) for p in self._used.values())
            events.emit(WeightsOpened(len(self._used), size))

    def load(self, param_id: int) -> Array:
        stored = self._stored[name := self._names[param_id]]
        try:
            array: Array = self._files[stored.file].get_tensor(stored.key)
        except Exception as error:
            raise LoadError(f"{stored.file}: {stored.key!r} cannot be read: {error}") from None
        if events.listening():
            events.emit(WeightRead(name, array.nbytes))
        return array

    def _place(self) -> str:
        return ", ".join(map(str, self._files))


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
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LoadError(f"{index}: weight_map is {places!r}, expected names of tensors and files")
    files: dict[Path, set[str] | None] = {}
    for key, name in places.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or Path(name).name != name or not isinstance(key, str):
            raise LoadError(f"{index}: {key!r} is in {name!r}, expected a file of this directory")
        keys = files.setdefault(directory / name, set())
        assert keys is not None
        keys.add(key)
    return files


def _open(file: Path) -> Any:
    from safetensors import SafetensorError, safe_open  # only what loads models needs it

    try:
        return safe_open(file, framework="numpy")
    except FileNotFoundError:
        raise LoadError(f"{file} does not exist", fix="download the directory again") from None
    except (SafetensorError, OSError) as error:
        raise LoadError(
            f"{file} is no complete safetensors file: {error}", fix="download it again"
        ) from None


def _type(file: Path, key: str, handle: Any) -> Type:
    view = handle.get_slice(key)
    dtype = _DTYPES.get(view.get_dtype())
    if dtype is None:
        raise LoadError(
            f"{file}: {key!r} has dtype {view.get_dtype()}, expected one of {', '.join(_DTYPES)}"
        )
    return Type(view.get_shape(), dtype)
