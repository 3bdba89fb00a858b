"""``gptrs.export``: models in memory, or weights that torch saved, written in any format.

Collects the current tensors as `ModelFiles` and hands them to `gptrs.loading.convert.write_model`.
The weights are checked by building the model first.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.in_memory import in_memory_tensor
from gptrs.formats.kinds import Format, Names
from gptrs.formats.model_files import ModelFiles, open_model
from gptrs.formats.safetensors_file import SUFFIX
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.formats.tensor_files import CONFIG, ModelTensors
from gptrs.formats.unsupported import check_file
from gptrs.ir.types import as_dtype
from gptrs.loading.convert import (
    SHARD_SIZE,
    Converted,
    check_names,
    check_target,
    with_config,
    write_model,
)
from gptrs.loading.from_torch import Place, torch_files
from gptrs.loading.load import model_of
from gptrs.loading.loaded_model import LoadedModel


def export(
    model: object,
    path: Place,
    *,
    config: object = None,
    to: Format | str | None = None,
    dtype: object = None,
    shard_size: int = SHARD_SIZE,
    force: bool = False,
    names: Names | str | None = None,
) -> Converted:
    """Write ``model`` to ``path``: a checkpoint (``.gchk``), a Hugging Face directory (no ending),
    a ``.safetensors`` file or a tensor archive (``.gten``), unless ``to`` says another `Format`.

    ``model`` is a result of `gptrs.load` or `gptrs.from_torch`, whose replaced parameters are
    written with their current values, or an argument of `gptrs.from_torch`, with its ``config``.
    Tensors keep their original names, and their bits, unless ``dtype`` is f32, f16 or bf16. With
    the ``names`` ``"gpt.rs"``, a checkpoint of a GPT-2 is one that gpt.rs reads. The write is
    atomic; existing files are overwritten only with ``force``. Raises `ArgumentError` or
    `LoadError`.
    """
    if isinstance(model, LoadedModel):
        if config is not None:
            raise ArgumentError("a loaded model has a configuration", fix="leave out config=")
        files = _present(model)
    else:
        files = torch_files(model, config, None)
        model_of(files)  # raises where the tensors do not fit
    return _write(files, Path(path), to, dtype, shard_size, force, names)


def export_file(
    source: Place,
    path: Place,
    *,
    config: Place | None = None,
    to: Format | str | None = None,
    dtype: object = None,
    shard_size: int = SHARD_SIZE,
    force: bool = False,
    names: Names | str | None = None,
) -> Converted:
    """`export` of the weights that torch saved in ``source``: a safetensors file, or a directory of
    transformers.

    Its configuration is the file ``config``, else the ``config.json`` beside it; tensors that are
    named as torchvision's need none. Pickles are never opened. Raises `ArgumentError` or
    `LoadError`.
    """
    files = _saved(Path(source), None if config is None else Path(config))
    model_of(files)
    return _write(files, Path(path), to, dtype, shard_size, force, names)


def _write(
    files: ModelFiles,
    path: Path,
    to: str | None,
    dtype: object,
    shard_size: int,
    force: bool,
    names: str | None,
) -> Converted:
    if to is not None and to not in list(Format):
        raise ArgumentError(f"to is {to!r}, expected one of {', '.join(Format)}")
    wanted = None if dtype is None else as_dtype(dtype)
    asked = None if to is None else Format(to)
    form = check_target(files.place, path, to=asked, dtype=wanted, force=force)
    given = check_names(names, path, form)
    files = with_config(files, None, form)
    return write_model(
        files, path, form, dtype=wanted, shard_size=shard_size, force=force, names=given
    )


def _present(model: LoadedModel) -> ModelFiles:
    """The files of ``model``, with replaced parameters in place of the stored ones."""
    tensors, names = model.files.tensors, model.weights.names
    parameters = {parameter.name: parameter for parameter in model.parameters().values()}
    if unknown := sorted(set(parameters) - set(names.values())):
        raise ArgumentError(
            f"the model has a parameter {unknown[0]!r}, which {model.place} does not have",
            fix="replace parameters with model.parameters()[name] = array",
        )
    now: list[StoredTensor] = []
    for tensor in tensors:
        parameter = parameters.get(names.get(tensor.key, ""))
        if parameter is not None and not model.weights.made(parameter):
            array = model.weights.part(tensor.key, parameter.numpy())
            tensor = in_memory_tensor(model.place, tensor.key, array)
        now.append(tensor)
    changed = ModelTensors(tensors.place, now, tensors.shapes_from, tensors.fix)
    return replace(model.files, tensors=changed)


def _saved(source: Path, config: Path | None) -> ModelFiles:
    """The files that torch saved, with their configuration. Raises `LoadError`."""
    if source.is_file() and source.suffix != SUFFIX:
        check_file(source)
        raise LoadError(
            f"{source} ends in {source.suffix!r}, expected {SUFFIX} or a directory",
            fix="gptrs convert reads checkpoints (GPTRSCHK) and tensor archives (GPTRSTEN)",
        )
    files = open_model(source)
    beside = source.parent / CONFIG
    if config is None and not files.kind_field and beside.is_file():
        # Files beside a tensor file with a config.json belong to it.
        config, files = beside, replace(files, directory=source.parent)
    return files if config is None else with_config(files, config, Format.DIRECTORY)
