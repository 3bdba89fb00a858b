"""Class names of image classifiers: ``id2label`` of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gptrs.errors import LoadError


def read_labels(data: Mapping[str, Any], file: Path) -> tuple[str, ...] | None:
    """The names in ``{"id2label": {"0": "tench", ...}}``, by index; None without that entry.

    Raises `LoadError` naming the file.
    """
    given: object = data.get("id2label")
    if given is None:
        return None
    names = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    if not names or not all(isinstance(name, str) for name in names.values()):
        shown = str(data["id2label"])[:100]
        raise LoadError(f"{file}: id2label is {shown}, expected an object of indices and names")
    if wrong := sorted(set(names) ^ {str(index) for index in range(len(names))}):
        raise LoadError(
            f"{file}: id2label has {len(names)} entries, {wrong[0]!r} is missing or too many,"
            f" expected indices from 0 to {len(names) - 1}"
        )
    return tuple(str(names[str(index)]) for index in range(len(names)))
