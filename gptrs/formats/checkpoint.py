"""Checkpoint ``GPTRSCHK``, version 2: the configuration and the tensors of a model in one file.

Little-endian, between version and index_len (the rest is in `gptrs.formats.tensor_index`)::

    config_len u32   config_json[config_len]
    config_json: {"kind": "gpt", "config": {...}, "runtime": {...}}

``config`` has the entries of a ``config.json``; ``runtime``, which may be absent, has
``functional_overrides``.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.binary_fields import AGAIN, Fields
from gptrs.formats.byte_file import begins_with
from gptrs.formats.json_text import NotTaken, decoded, parse
from gptrs.formats.stored_tensor import TensorFile
from gptrs.formats.tensor_index import (
    HEAD_BYTES,
    STORABLE,
    check_head,
    read_index,
    write_indexed,
)
from gptrs.formats.tensor_writer import NewTensor, new_tensors

MAGIC = b"GPTRSCHK"
SUFFIX = ".gchk"
_LENGTH_BYTES = 4  # of config_len, and of index_len
_MOST_CONFIG = 2**24  # bytes: parsed, JSON takes many times its length
_SHOWN = 100  # letters of a value, in errors


class CheckpointFile(TensorFile):
    """A checkpoint, whose configuration and index are checked.

    ``kind`` is the kind of the model, ``config`` its configuration, ``runtime`` its run options.
    """

    fix = AGAIN

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        check_head(self.file, MAGIC, "a checkpoint")
        length = self._read_config(HEAD_BYTES)
        self.tensors = read_index(self.file, HEAD_BYTES + length, ids=True)

    def _read_config(self, start: int) -> int:
        """Read ``config_json``. Returns the number of bytes of it and its length field."""
        fields, begin = Fields.of(self.file, start, _LENGTH_BYTES), start + _LENGTH_BYTES
        length = fields.number("I", "config_len")
        most = max(0, min(self.file.size - begin - _LENGTH_BYTES, _MOST_CONFIG))
        if length > most:
            raise fields.wrong("config_len", length, f"at most {most}")
        try:
            given = parse(decoded(self.file.read(begin, length), self.file.memory))
        except NotTaken as error:
            raise LoadError(f"{self.path}: config_json: {error}", fix=AGAIN) from None
        except (ValueError, RecursionError) as error:
            raise fields.wrong("config_json", f"no JSON ({error})", "a JSON object") from None
        if not isinstance(given, dict):
            raise fields.wrong("config_json", f"a {type(given).__name__}", "a JSON object")
        entries = cast("dict[str, object]", given)
        kind = entries.get("kind")
        if not isinstance(kind, str):
            raise fields.wrong("config_json: kind", repr(kind)[:_SHOWN], "a string")
        self.kind = kind
        self.config = _object(fields, "config", entries.get("config"))
        self.runtime = _object(fields, "runtime", entries.get("runtime", {}))
        return _LENGTH_BYTES + length


def _object(fields: Fields, name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise fields.wrong(f"config_json: {name}", repr(value)[:_SHOWN], "an object")
    return cast("dict[str, Any]", value)


def is_checkpoint(path: Path) -> bool:
    """Whether the file begins with the magic of checkpoints. Raises `LoadError` if unreadable."""
    return begins_with(path, MAGIC)


def write_checkpoint(
    path: str | os.PathLike[str],
    kind: str,
    config: Mapping[str, object],
    tensors: Mapping[str, object] | Iterable[NewTensor],
    *,
    runtime: Mapping[str, object] | None = None,
) -> None:
    """Write a model of the ``kind``: its configuration, and arrays or Tensors by their names.

    The write is atomic, and at most one tensor is in memory, of Parameters from files only a part.
    Raises `ArgumentError` for names, types and configurations that a checkpoint cannot hold, and
    where nothing can be written.
    """
    given = new_tensors(tensors, STORABLE, "checkpoints")
    entries = {"kind": kind, "config": dict(config)}
    if runtime:
        entries["runtime"] = dict(runtime)
    try:
        text = json.dumps(entries, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"the configuration is no JSON: {error}",
            fix="give numbers that are finite, strings, booleans, None, lists and dicts",
        ) from None
    if len(text) > _MOST_CONFIG:
        raise ArgumentError(
            f"the configuration has {len(text)} bytes, expected at most {_MOST_CONFIG}",
            fix="leave out of it what the model does not read",
        )
    config_json = struct.pack("<I", len(text)) + text
    write_indexed(Path(path), MAGIC, config_json, given, ids=True)
