"""Shell completion of models and backends; Typer completes verbs and options, the shell paths.

`gptrs --install-completion` writes a script for the shell, which runs ``gptrs`` at each Tab. Where
a function here finds nothing, the shell completes paths.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MODELS = Path(__file__).parents[1] / "models"  # importing `gptrs.models` takes too long for a Tab
_ENDINGS = (".gchk", ".gten", ".safetensors", ".json")


def complete_model(incomplete: str) -> list[str]:
    """The models that ship with gptrs or were fetched from huggingface.co before, whose names begin
    so; with them folders and files of models here."""
    names = [*_bundled(), *_fetched()]
    found = [name for name in names if name.startswith(incomplete)]
    return [*found, *_here(incomplete)] if found else []


def complete_backend(incomplete: str) -> list[str]:
    """The backends whose names begin so."""
    from gptrs.backends.discovery import known_backends  # the engine loads when it is needed

    return [name for name in known_backends() if name.startswith(incomplete)]


def _bundled() -> list[str]:
    return sorted(config.parent.name for config in _MODELS.glob("*/config.json"))


def _fetched() -> list[str]:
    """Names of models in the cache of huggingface_hub, where its documentation says that it is."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or os.path.join(home, "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")).expanduser()
    found: list[str] = []
    with suppress(OSError):
        for folder in cache.glob("models--*--*"):
            if any(folder.glob("snapshots/*/config.json")):
                found.append("/".join(folder.name.split("--", 2)[1:]))
    return sorted(found)


def _here(incomplete: str) -> list[str]:
    """Folders, and files that may be models, of the current directory."""
    found: list[str] = []
    with suppress(OSError), os.scandir() as entries:
        for entry in entries:
            if not entry.name.startswith(incomplete) or entry.name.startswith("."):
                continue
            if entry.is_dir():
                found.append(f"{entry.name}/")
            elif entry.name.endswith(_ENDINGS):
                found.append(entry.name)
    return sorted(found)
