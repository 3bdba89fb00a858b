"""What loaded models have in common, whatever they take and say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gptrs.runtime.parameters import ModelParameters


class LoadedModel:
    """A model with the place that it came from; what it does is said by the classes made of it.

    ``place`` is the directory or the file that was loaded, ``directory`` where its other files are.
    """

    def __init__(self, place: Path, directory: Path, kind: str, module: Any) -> None:
        self.place = place
        self.directory = directory
        self.kind = kind
        self.module = module
        self.config = module.config

    @property
    def config_file(self) -> Path:
        """What has its configuration, for errors."""
        return self.place / "config.json" if self.place.is_dir() else self.place

    def parameters(self) -> ModelParameters:
        """The parameters by their dotted names; ``parameters()[name] = array`` replaces one, and
        what was derived from it."""
        return ModelParameters(self.module)

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.parameters().values())
        return f"<{self.kind} {self.place.name}: {count:,} parameters>"
