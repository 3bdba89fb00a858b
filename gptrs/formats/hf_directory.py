"""Writer of Hugging Face model directories: config.json, safetensors shards, index, other files.

All files are written to a temporary directory first and moved at the end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gptrs.errors import ArgumentError
from gptrs.formats.safetensors_writer import write_safetensors
from gptrs.formats.tensor_files import CONFIG, INDEX, SINGLE
from gptrs.formats.tensor_writer import NewTensor

_WEIGHTS = re.compile(r"model(-\d{5,}-of-\d{5,})?\.safetensors(\.index\.json)?")


def write_directory(
    path: Path,
    config: Mapping[str, object],
    tensors: Iterable[NewTensor],
    shard_size: int,
    others: Mapping[str, bytes],
) -> None:
    """Write ``config.json``, ``tensors`` in files of at most ``shard_size`` bytes (unless one
    tensor has more), and the contents of ``others`` by their names.

    An existing directory keeps its other files; its old weight files are removed. All files are
    written to a temporary directory first, so that nothing changes unless all could be written.
    Raises `ArgumentError`.
    """
    shards = list(_shards(tensors, shard_size))
    files = [SINGLE]
    if len(shards) > 1:
        files = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n, _ in enumerate(shards, 1)]
    with _unfinished(path) as folder:
        for name, shard in zip(files, shards, strict=True):
            write_safetensors(folder / name, shard)
        if len(shards) > 1:
            size = sum(tensor.size for shard in shards for tensor in shard)
            places = {
                tensor.name: name
                for name, shard in zip(files, shards, strict=True)
                for tensor in shard
            }
            index = {"metadata": {"total_size": size}, "weight_map": places}
            (folder / INDEX).write_text(_text(index), encoding="utf-8")
        for name, content in others.items():
            (folder / name).write_bytes(content)
        (folder / CONFIG).write_text(_text(config), encoding="utf-8")


def _text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _shards(tensors: Iterable[NewTensor], shard_size: int) -> Iterator[list[NewTensor]]:
    shard: list[NewTensor] = []
    size = 0
    for tensor in tensors:
        if shard and size + tensor.size > shard_size:
            yield shard
            shard, size = [], 0
        shard.append(tensor)
        size += tensor.size
    yield shard


@contextmanager
def _unfinished(path: Path) -> Generator[Path]:
    """A temporary folder whose files are moved to ``path`` at the end of the block."""
    # Inside an existing ``path``: that may be the root of a file system, or ``.``.
    folder = (path if path.is_dir() else path.parent) / f".unfinished.{os.urandom(8).hex()}"
    try:
        folder.mkdir()
        try:
            yield folder
            if path.is_dir():
                _merge(folder, path)
            else:
                os.rename(folder, path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be written: {error.strerror or error}",
            fix="give a place that can be written to",
        ) from None


def _merge(folder: Path, path: Path) -> None:
    """Move the files of ``folder`` into ``path``, and remove the old weight files there."""
    written = {file.name for file in folder.iterdir()}
    for name in sorted(written):
        os.replace(folder / name, path / name)
    for file in path.iterdir():
        if _WEIGHTS.fullmatch(file.name) and file.name not in written:
            file.unlink()
