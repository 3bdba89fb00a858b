"""What loaded models have in common, whatever they take and say."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class LoadedModel:
    """A model with the place that it came from; what it does is said by the classes made of it."""

    def __init__(self, directory: Path, kind: str, module: Any) -> None:
        self.directory = directory
        self.kind = kind
        self.module = module
        self.config = module.config

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.module.parameters().values())
        return f"<{self.kind} {self.directory.name}: {count:,} parameters>"
