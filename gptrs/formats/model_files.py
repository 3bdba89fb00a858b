"""Opening a model: configuration, tensor index and side information of any supported format.

`open_model` detects the format (Hugging Face directory, GPTRSCHK checkpoint, safetensors file) and
returns `ModelFiles`: configuration entries and `StoredTensor` entries; no elements are read.
`gptrs.loading.load` builds the model from it, `gptrs.loading.convert` writes it in another format.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gptrs.errors import LoadError
from gptrs.formats.json_files import read_json
from gptrs.formats.safetensors_file import SUFFIX, SafetensorsFile
from gptrs.formats.stored_tensor import TensorFile
from gptrs.formats.tensor_files import CONFIG, ModelTensors
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import late_import
from gptrs.models import BUNDLED, Model, find_model, known_models
from gptrs.models.registry import CHECKPOINT_KINDS

if TYPE_CHECKING:
    from gptrs.formats.checkpoint import CheckpointFile

_KINDS = {"gpt2": "gpt"}
_IN_CHECKPOINTS = "config_json: kind"


@dataclass(frozen=True)
class ModelFiles:
    """The opened files of a model. ``config`` has the entries of a ``config.json``."""

    place: Path
    """The directory or the file that was opened."""
    directory: Path
    """The directory of the tokenizer and the preprocessor configuration."""
    config_file: Path
    """The file of the configuration, for errors."""
    kind: object
    """Its ``model_type`` in the files, unchecked: any value, or an unknown name."""
    kind_field: str
    """The name of the field with the ``kind``; empty: there is none."""
    config: dict[str, Any]
    runtime: dict[str, Any]
    """Run options: ``{"functional_overrides": {...}}``."""
    tensors: ModelTensors


def open_model(place: Path, *, as_stored: bool = False) -> ModelFiles:
    """The model in a Hugging Face directory, a checkpoint or a safetensors file without a
    configuration.

    Its configuration and the index of its tensors are read. A checkpoint of gpt.rs gets the names
    and configuration of transformers, unless ``as_stored``. Raises `LoadError` naming the file.
    """
    check_path(place)
    if place.is_dir():
        file = place / CONFIG
        if not file.exists():
            from gptrs.formats import unsupported  # for errors alone

            unsupported.check_directory(place)
        config, runtime = read_config(file)
        kind, tensors = config.get("model_type"), ModelTensors.of_directory(place)
        return ModelFiles(place, place, file, kind, "model_type", config, runtime, tensors)
    from gptrs.formats import checkpoint  # late: not needed for directories

    if place.is_file():
        if checkpoint.is_checkpoint(place):
            return _of_checkpoint(checkpoint.CheckpointFile.open(place), as_stored)
        if place.suffix == SUFFIX:
            fix = "save the whole state_dict of one model of torchvision"
            return _without_config(SafetensorsFile.open(place), fix)
        from gptrs.formats import unsupported  # for errors alone

        unsupported.check_file(place)
        raise LoadError(
            f"{place} is no model directory, no checkpoint (GPTRSCHK) and no {SUFFIX} file",
            fix="give one of these; gptrs convert makes them out of a tensor archive (GPTRSTEN)",
        )
    kind = " or file" * bool(place.suffix)
    raise LoadError(
        f"there is no model directory{kind} {str(place)!r}",
        fix="give the path of a Hugging Face directory, of a checkpoint (GPTRSCHK) or of a"
        f" {SUFFIX} file, or one of: {', '.join(BUNDLED)}",
    )


def open_files(place: Path, *, as_stored: bool = False) -> ModelFiles:
    """`open_model`, or a tensor archive, which has no configuration. Raises `LoadError`."""
    from gptrs.formats import archive  # late: models are no archives

    check_path(place)
    if place.is_file() and archive.is_archive(place):
        fix = "write the archive again, with all tensors of its model"
        return _without_config(archive.ArchiveFile.open(place), fix)
    return open_model(place, as_stored=as_stored)


def check_path(place: Path) -> None:
    """Raise `LoadError` where the system cannot access ``place``."""
    try:
        place.exists()
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise LoadError(
            f"{place} cannot be opened: {error.strerror}",
            fix="give the path of a model that this process may read",
        ) from None


def read_config(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of a ``config.json``, and its run options. Raises `LoadError`."""
    return without_runtime(read_json(file), file)


def without_runtime(given: Mapping[str, Any], file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """`read_config` for the entries ``given`` of ``file``. Raises `LoadError` naming it."""
    config = dict(given)
    runtime: object = config.pop("runtime", None)
    if runtime is not None and not isinstance(runtime, dict):
        raise LoadError(
            f"{file}: runtime is {runtime!r}, expected an object",
            fix='write {"functional_overrides": {...}}, or leave it out',
        )
    return config, cast("dict[str, Any]", runtime or {})


def _of_checkpoint(file: CheckpointFile, as_stored: bool) -> ModelFiles:
    from gptrs.formats import gpt_rs  # late: not needed for directories

    kind, path = CHECKPOINT_KINDS.get(file.kind, file.kind), file.path
    config, found = file.config, [*file.tensors.values()]
    if not as_stored:
        config, found = gpt_rs.with_hf_names(file.kind, config, found, path)
    fix = "write the checkpoint again, with the configuration of its model"
    tensors = ModelTensors(path, found, "its configuration", fix)
    settings = config, file.runtime
    return ModelFiles(path, path.parent, path, kind, _IN_CHECKPOINTS, *settings, tensors)


def _without_config(file: TensorFile, fix: str) -> ModelFiles:
    """A file of tensors alone; files beside it do not belong to it."""
    tensors = ModelTensors(file.path, file.tensors.values(), "its other tensors", fix)
    return ModelFiles(file.path, file.path, file.path, None, "", {}, {}, tensors)


def checkpoint_kind(model_type: str) -> str:
    """The kind of a ``model_type`` in checkpoints."""
    return _KINDS.get(model_type, model_type)


def model_class(kind: object, file: Path, field: str = "model_type") -> type[Model]:
    """The class of the models of a ``kind``, which is the value of ``field`` in ``file``.

    Raises `LoadError` naming both where no model has that name.
    """
    model = find_model(kind)
    if model is not None:
        return model
    known = {*known_models(), *(CHECKPOINT_KINDS if field == _IN_CHECKPOINTS else ())}
    raise LoadError(
        f"{file}: {field} is {kind!r}, expected one of {', '.join(sorted(known))}",
        fix="choose a model of a type that gptrs knows, or install or register the one that it is",
    )


def imported(place: str) -> Any:
    """The object at ``"module:name"``."""
    module, _, name = place.partition(":")
    return getattr(late_import(module), name)
