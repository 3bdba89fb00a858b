"""Conversion between model formats: directories, checkpoints, safetensors files, archives.

Input: any source that `gptrs.formats.model_files.open_files` opens. Tensors are streamed to the
writer of the target format, optionally converted to another float dtype; sidecar files are copied.
Callers: ``gptrs convert``, `gptrs.loading.export`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gptrs import events
from gptrs.errors import ArgumentError, LoadError
from gptrs.formats import archive, checkpoint, safetensors_file
from gptrs.formats.atomic_write import check_replaceable
from gptrs.formats.hf_directory import write_directory
from gptrs.formats.kinds import Format, Names
from gptrs.formats.model_files import (
    ModelFiles,
    checkpoint_kind,
    open_files,
    read_config,
)
from gptrs.formats.safetensors_file import DTYPES
from gptrs.formats.safetensors_writer import write_safetensors
from gptrs.formats.sidecar_files import read_sidecar_files, write_sidecar_files
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.formats.tensor_index import STORABLE
from gptrs.formats.tensor_writer import NewTensor
from gptrs.formats.torchvision import torchvision_kind, torchvision_naming
from gptrs.formats.write_events import Writing
from gptrs.ir.types import DType, bf16, f16, f32
from gptrs.lazy_dataclass import dataclass
from gptrs.loading.hub import place_of
from gptrs.models import find_model

_DTYPE_ENTRIES = {f32: "float32", f16: "float16", bf16: "bfloat16"}
SHARD_SIZE = 5 * 10**9
"""The default size of a shard in bytes."""
_BY_SUFFIX = {
    checkpoint.SUFFIX: Format.CHECKPOINT,
    safetensors_file.SUFFIX: Format.SAFETENSORS,
    archive.SUFFIX: Format.ARCHIVE,
    "": Format.DIRECTORY,
}


@dataclass(frozen=True)
class Converted:
    """The result of a conversion: number and bytes of tensors, names of unused tensors that the
    format cannot store, copied files, and a note on numerical differences of the program that reads
    it."""

    count: int
    size: int
    left_out: tuple[str, ...]
    copied: tuple[str, ...]
    note: str = ""


def format_of(path: Path) -> Format:
    """The format by the suffix of ``path``; a directory without one.

    Raises `ArgumentError`.
    """
    if path.is_dir():
        return Format.DIRECTORY
    if path.suffix not in _BY_SUFFIX:
        known = ", ".join(suffix for suffix in _BY_SUFFIX if suffix)
        raise ArgumentError(
            f"{path} ends in {path.suffix!r}, expected {known}, or nothing for a directory",
            fix=f"say what to write with --to: {', '.join(Format)}",
        )
    return _BY_SUFFIX[path.suffix]


def convert(
    source: str | Path,
    destination: str | Path,
    *,
    to: Format | None = None,
    dtype: DType | None = None,
    config: str | Path | None = None,
    shard_size: int = SHARD_SIZE,
    force: bool = False,
    names: Names | str | None = None,
) -> Converted:
    """Write the model at ``source`` to ``destination``, atomically.

    Floats are converted to ``dtype`` (f32, f16 or bf16); without one every bit is kept. A source
    without a configuration takes the ``config.json`` at ``config``. Sidecar files, such as the
    tokenizer, are copied into the directory, or beside the checkpoint. Existing files are
    overwritten only with ``force``. With the ``names`` ``"gpt.rs"``, a checkpoint of a
    GPT-2 is one that gpt.rs reads. Raises `ArgumentError` or `LoadError` naming the file.
    """
    place, path = place_of(source), Path(destination)
    form = check_target(place, path, to=to, dtype=dtype, force=force)
    given = check_names(names, path, form)
    files = with_config(open_files(place), None if config is None else Path(config), form)
    return write_model(
        files, path, form, dtype=dtype, shard_size=shard_size, force=force, names=given
    )


def check_names(names: str | None, path: Path, form: Format) -> Names | None:
    """``names`` for what is written to ``path``. Raises `ArgumentError`."""
    if names is None:
        return None
    if names not in list(Names):
        raise ArgumentError(f"names is {names!r}, expected one of {', '.join(Names)}")
    if form is not Format.CHECKPOINT:
        raise ArgumentError(
            f"{path} is to be a {form}, and the names of {names} are for checkpoints",
            fix=f"write to a place that ends in {checkpoint.SUFFIX}, or leave out --names",
        )
    return Names(names)


def check_target(
    source: Path, path: Path, *, to: Format | None, dtype: DType | None, force: bool
) -> Format:
    """The format in which a model of ``source`` is to be written to ``path``.

    Raises `ArgumentError` where it cannot be.
    """
    form = format_of(path) if to is None else to
    if dtype not in (None, *_DTYPE_ENTRIES):
        raise ArgumentError(
            f"dtype is {dtype}, expected f32, f16 or bf16", fix="leave it out to keep every bit"
        )
    _check_place(source, path, form, force)
    return form


def write_model(
    files: ModelFiles,
    path: Path,
    form: Format,
    *,
    dtype: DType | None = None,
    shard_size: int = SHARD_SIZE,
    force: bool = False,
    names: Names | None = None,
) -> Converted:
    """`convert` for opened files that have the configuration that ``form`` needs."""
    note = ""
    if names is Names.GPT_RS:
        from gptrs.loading.for_gpt_rs import for_gpt_rs  # late: seldom needed

        files, note = for_gpt_rs(files, dtype)
    tensors, left_out = _tensors(files, form, dtype)
    others = _others(files, path, form, force)
    size = sum(tensor.size for tensor in tensors)
    if events.listening():
        events.emit(Writing(size))
    settings = _settings(files, dtype)
    match form:
        case Format.DIRECTORY:
            settings["model_type"] = files.kind
            if files.runtime:
                settings["runtime"] = files.runtime
            write_directory(path, settings, tensors, shard_size, others)
        case Format.CHECKPOINT:
            kind = checkpoint_kind(str(files.kind))
            checkpoint.write_checkpoint(path, kind, settings, tensors, runtime=files.runtime)
            write_sidecar_files(path.parent, others)
        case Format.SAFETENSORS:
            write_safetensors(path, tensors)
        case Format.ARCHIVE:
            archive.write_archive(path, tensors)
    return Converted(len(tensors), size, left_out, tuple(others), note)


def _check_place(source: Path, path: Path, form: Format, force: bool) -> None:
    if not path.exists():
        return
    if source.exists() and path.samefile(source):
        raise ArgumentError(f"{path} is what is read", fix="write to another place")
    if form is not Format.DIRECTORY:
        check_replaceable(path)
    elif not path.is_dir():
        raise ArgumentError(
            f"{path} is no directory, which is what to write",
            fix="give another place, or another format with --to",
        )
    if not force and (path.is_file() or any(path.iterdir())):
        raise ArgumentError(f"{path} is there already", fix="give another place, or --force")


def _others(files: ModelFiles, path: Path, form: Format, force: bool) -> dict[str, bytes]:
    """The sidecar files to copy; formats of tensors alone have none."""
    if form not in (Format.DIRECTORY, Format.CHECKPOINT):
        return {}
    folder = path if form is Format.DIRECTORY else path.parent
    return read_sidecar_files(files.directory, folder, force=force)


def _settings(files: ModelFiles, dtype: DType | None) -> dict[str, object]:
    """The configuration to write."""
    settings: dict[str, object] = dict(files.config)
    for name in ("dtype", "torch_dtype"):
        if dtype is not None and name in settings:
            settings[name] = _DTYPE_ENTRIES[dtype]
    return settings


def with_config(files: ModelFiles, config: Path | None, form: Format) -> ModelFiles:
    """``files`` with a configuration, if ``form`` needs one."""
    if files.kind_field:
        if config is not None:
            raise ArgumentError(
                f"{files.config_file} has a configuration, and --config gives another",
                fix="leave out --config",
            )
    elif config is not None:
        given, runtime = read_config(config)
        files = replace(
            files,
            config_file=config,
            kind=given.get("model_type"),
            kind_field="model_type",
            config=given,
            runtime=runtime,
            tensors=files.tensors.described_by(config),
        )
    elif form in (Format.DIRECTORY, Format.CHECKPOINT):
        try:
            kind = torchvision_kind(files.tensors)
        except LoadError:
            raise ArgumentError(
                f"{files.config_file} has no configuration, which a {form} needs",
                fix="give the config.json of its model: --config FILE",
            ) from None
        files = replace(files, kind=kind, kind_field="model_type", config={"model_type": kind})
    if files.kind_field and not isinstance(files.kind, str):
        raise LoadError(
            f"{files.config_file}: {files.kind_field} is {files.kind!r}, expected a string",
            fix="say in it what the model is",
        )
    return files


def _tensors(
    files: ModelFiles, form: Format, dtype: DType | None
) -> tuple[list[NewTensor], tuple[str, ...]]:
    """The tensors to write, and the names of unused ones that the format cannot store."""
    is_unread = _unread(files)
    holds = STORABLE if form in (Format.CHECKPOINT, Format.ARCHIVE) else tuple(DTYPES.values())
    made: list[NewTensor] = []
    left_out: list[str] = []
    for tensor in files.tensors:
        new = _converted(tensor, dtype)
        if new is not None and new.dtype in holds:
            made.append(new)
        elif is_unread(tensor.key):
            left_out.append(tensor.key)
        else:
            raise ArgumentError(
                f"{tensor.file.path}: {tensor.key!r} has dtype {tensor.spelled}, expected one of"
                f" {', '.join(map(str, holds))}, which a {form} holds",
                fix="save it with one of these; --dtype converts floats",
            )
    return made, tuple(left_out)


def _converted(tensor: StoredTensor, dtype: DType | None) -> NewTensor | None:
    if tensor.dtype is None:
        return None
    wanted = dtype if dtype is not None and tensor.dtype.is_float else tensor.dtype
    return NewTensor.stored(tensor.key, tensor, wanted)


def _unread(files: ModelFiles) -> Callable[[str], bool]:
    """A predicate for tensor names that the model ignores; false for unknown models."""
    model = find_model(files.kind)
    if model is None:
        return lambda key: False
    naming = torchvision_naming(str(files.kind), files.tensors)
    renames = model.renames if naming is None else naming.renames

    def is_unread(key: str) -> bool:
        for pattern, replacement in renames:
            key = pattern.sub(replacement, key)
        return model.ignored.match(key) is not None

    return is_unread
