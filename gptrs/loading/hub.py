"""Model names → local paths: bundled models, paths, and models of huggingface.co.

The latter are fetched by ``huggingface_hub``, an optional dependency, into its cache.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from gptrs.errors import ArgumentError, LoadError
from gptrs.extras import needed_for
from gptrs.formats.model_files import imported
from gptrs.formats.safetensors_file import SUFFIX
from gptrs.models import BUNDLED

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_MOST_ID = 96  # letters of a name there
_WANTED = ["*.json", f"*{SUFFIX}", "merges.txt", "*.jinja"]
# Folders have other formats of the same model; additional_chat_templates alone is of use.
_SUBFOLDERS = ["[!a]*/*", "a[!d]*/*", "?/*"]
_SECONDS = 3.0  # to wait for the first answer


def place_of(model: str | os.PathLike[str]) -> Path:
    """The directory or file of ``model``; a name of huggingface.co is downloaded.

    Raises `ArgumentError` for other types, and as `fetch_model` does.
    """
    name = os.fspath(model) if isinstance(model, str | os.PathLike) else model
    if not isinstance(name, str):
        raise ArgumentError(
            f"the model is a {type(model).__name__}, expected a path or a name",
            fix=f"give the path of a Hugging Face directory, or one of: {', '.join(BUNDLED)}",
        )
    if (bundled := BUNDLED.get(name)) is not None:
        return bundled
    return fetch_model(name) if is_hub_id(name) else Path(model)


def is_hub_id(path: str) -> bool:
    """Whether ``path`` has the form of a hub name, ``openai-community/gpt2``, and does not
    exist."""
    if len(path) > _MOST_ID or not _ID.fullmatch(path) or path.endswith((SUFFIX, ".gchk", ".gten")):
        return False
    return not Path(path).exists()


def fetch_model(name: str) -> Path:
    """The local directory of the model ``name``; cached files are not downloaded again.

    Raises `LoadError` at once where ``huggingface_hub`` is not installed, there is no network, or
    there is no such model.
    """
    absent = f"there is no model directory {name!r}, and "
    with needed_for(
        f"{absent}fetching it from huggingface.co", instead="give the path of a directory"
    ):
        download = imported("huggingface_hub:snapshot_download")  # slow to import
    try:
        found = download(
            name, allow_patterns=_WANTED, ignore_patterns=_SUBFOLDERS, etag_timeout=_SECONDS
        )
    except Exception as error:  # the library's own, and those of what it fetches with
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise LoadError(
            f"{absent}it cannot be fetched from huggingface.co: {lines[0]}",
            fix="check the name and the network, or give the path of a directory",
        ) from None
    return Path(found)
