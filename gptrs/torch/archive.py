"""``.pt2`` files of ``torch.export.save``, read without pickle.

The archive is a zip: the graph as JSON, weights as raw bytes with their strides in JSON. Subclasses
of tensors, custom objects and weights of torch before 2.9 are pickles in it: those files are
refused, as a pickle runs code when it is read. Example inputs, which are pickled as well, are not
needed and never read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch._export.serde import schema, serialize
from torch.export import ExportedProgram
from torch.export.pt2_archive import _package as package
from torch.export.pt2_archive import constants as names

from gptrs.errors import LoadError
from gptrs.torch.exported import ExportedModel

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false


def load_archive(path: Path) -> ExportedModel:
    """The program in ``path`` as a function of arrays. Raises as `read_archive`."""
    return ExportedModel(read_archive(path))


def read_archive(path: Path) -> ExportedProgram:
    """The program in ``path``, the only one there. Raises `LoadError` naming the file."""
    if not path.is_file():
        raise LoadError(f"there is no file {path}")
    try:
        reader: Any = package.PT2ArchiveReader(str(path))
        files = reader.get_file_names()
    except (AssertionError, RuntimeError) as error:
        raise LoadError(
            f"{path} is no archive of torch.export: {_first_line(error)}",
            fix="write it with torch.export.save(torch.export.export(module, arguments), path)",
        ) from None
    prefix, suffix = names.MODELS_FILENAME_FORMAT.split("{}")
    models = [name for name in files if name.startswith(prefix) and name.endswith(suffix)]
    if len(models) != 1:
        raise LoadError(
            f"{path} has {len(models)} exported programs, expected one",
            fix="compiled packages of AOTInductor hold none: save what torch.export returned",
        )
    model = models[0].removeprefix(prefix).removesuffix(suffix)
    try:
        _refuse_pickles(reader, model, files, path)
        graph = serialize._bytes_to_dataclass(schema.ExportedProgram, reader.read_bytes(models[0]))
        weights, fixed = (
            package._load_state_dict(reader, model),
            package._load_constants(reader, model),
        )
        return serialize.ExportedProgramDeserializer(None).deserialize(graph, weights, fixed, b"")
    except LoadError:
        raise
    except Exception as error:  # torch says what is wrong with a file by errors of all kinds
        raise LoadError(
            f"{path} cannot be read: {type(error).__name__}: {_first_line(error)}",
            fix="save it again with this version of torch",
        ) from error


def _refuse_pickles(reader: Any, model: str, files: list[str], path: Path) -> None:
    """Raises `LoadError` where a weight or a constant of ``model`` is a pickle."""
    for folder, form in (
        (names.WEIGHTS_DIR, names.WEIGHTS_CONFIG_FILENAME_FORMAT),
        (names.CONSTANTS_DIR, names.CONSTANTS_CONFIG_FILENAME_FORMAT),
    ):
        if f"{folder}{model}.pt" in files:
            _refuse(path, f"{folder}{model}.pt")
        for name, entry in json.loads(reader.read_string(form.format(model)))["config"].items():
            raw = (names.WEIGHT_FILENAME_PREFIX, names.TENSOR_CONSTANT_FILENAME_PREFIX)
            if entry["use_pickle"] or not entry["path_name"].startswith(raw):
                _refuse(path, name)


def _refuse(path: Path, name: str) -> None:
    raise LoadError(
        f"{path}: {name} is stored as a pickle, which may run code",
        fix="if you trust the file: gptrs.from_torch(torch.export.load(path))",
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
