"""Sidecar files of a model: tokenizer, generation, preprocessor and chat template files.

Conversion and export copy them unchanged beside the written model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.atomic_write import atomic_write
from gptrs.formats.byte_file import ByteFile

NAMES = (
    *("generation_config.json", "preprocessor_config.json"),
    *("chat_template.jinja", "chat_template.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "tokenizer.model"),
)
"""Their names, as in Hugging Face directories."""
_MOST = 2**28  # bytes of one


def read_sidecar_files(source: Path, folder: Path, *, force: bool) -> dict[str, bytes]:
    """The sidecar files in ``source`` that ``folder`` lacks: name → contents.

    Raises `ArgumentError` where ``folder`` has a different file of that name, unless ``force``, and
    `LoadError` for an unreadable file.
    """
    found: dict[str, bytes] = {}
    for name in NAMES:
        if not (source / name).is_file():
            continue
        content = _read(source / name)
        if (folder / name).is_file():
            if _read(folder / name) == content:
                continue
            if not force:
                raise ArgumentError(
                    f"{folder / name} is there already, and differs from {source / name}",
                    fix="write to another folder, or give --force",
                )
        found[name] = content
    return found


def write_sidecar_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write each file atomically. Raises `ArgumentError`."""
    for name, content in files.items():
        with atomic_write(folder / name) as file:
            file.write(content)


def _read(path: Path) -> bytes:
    try:
        file = ByteFile(path)
        if file.size > _MOST:
            raise LoadError(
                f"{path} has {file.size} bytes, expected at most {_MOST}",
                fix="move it away, and give the real one",
            )
        return bytes(file.read(0, file.size))
    except OSError as error:
        raise LoadError(
            f"{path} cannot be read: {error}", fix="make it readable, or move it away"
        ) from None
