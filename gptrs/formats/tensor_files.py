"""`ModelTensors`: the tensors of a model, and the files of a directory that contain them.

A directory has model.safetensors, shards with an index, or a single file of another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from gptrs.errors import LoadError
from gptrs.formats.json_files import read_json
from gptrs.formats.safetensors_file import DOWNLOAD_AGAIN, SUFFIX, SafetensorsFile
from gptrs.formats.stored_tensor import StoredTensor

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_FILE_NAME = re.compile(r"[^/\\\x00\ud800-\udfff]+\.safetensors")


class ModelTensors:
    """The tensors of a model, in one file or several. ``place`` is the file that lists them.

    For errors: ``shapes_from`` names the source of the expected shapes, ``fix`` is the remedy.
    """

    def __init__(
        self, place: Path, tensors: Iterable[StoredTensor], shapes_from: str, fix: str
    ) -> None:
        self.place = place
        self.shapes_from = shapes_from
        self.fix = fix
        self._tensors = sorted(tensors, key=lambda tensor: tensor.key)

    @classmethod
    def of_directory(cls, path: Path) -> ModelTensors:
        """The tensors of a Hugging Face directory. Raises `LoadError` naming the file."""
        place = path / INDEX
        tensors: list[StoredTensor] = []
        for found, keys in _files(path).items():
            file = SafetensorsFile.open(found)
            if keys is None:
                place, keys = found, set(file.tensors)
            if missing := sorted(keys - set(file.tensors)):
                raise LoadError(
                    f"{found} has no tensor {missing[0]!r}, which {place} places there",
                    fix=DOWNLOAD_AGAIN,
                )
            tensors += [file.tensors[key] for key in keys]
        return cls(place, tensors, "", "").described_by(path / CONFIG)

    def described_by(self, config: Path) -> ModelTensors:
        """The same tensors, whose expected shapes come from the file ``config``."""
        fix = f"check that {config.name} belongs to these weights"
        return ModelTensors(self.place, self._tensors, config.name, fix)

    def __iter__(self) -> Iterator[StoredTensor]:
        return iter(self._tensors)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors by their names in the files."""
        return {tensor.key: tensor.shape for tensor in self}


def _files(directory: Path) -> dict[Path, set[str] | None]:
    """The weight files, and the tensors to read from each (None: all)."""
    if (directory / SINGLE).exists():
        return {directory / SINGLE: None}
    index = directory / INDEX
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
    """The only weight file of a directory, whatever its name."""
    names = sorted(path.name for path in directory.iterdir())
    found = [name for name in names if name.endswith(SUFFIX)]
    if len(found) == 1:
        return directory / found[0]
    if not found:
        from gptrs.formats import unsupported  # for errors alone

        unsupported.check_directory(directory)
    said = f", found {len(found)} others: {', '.join(found)}" if found else ""
    raise LoadError(
        f"{directory} has no weights: expected model.safetensors or model.safetensors.index.json"
        f"{said}",
        fix="name the file to load model.safetensors"
        if found
        else "save the model with save_pretrained(..., safe_serialization=True)",
    )
