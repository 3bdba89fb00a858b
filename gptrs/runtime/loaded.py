"""What loaded models have in common, whatever they take and say."""

from __future__ import annotations

from itertools import count
from typing import Any

from gptrs.runtime.model_files import ModelFiles
from gptrs.runtime.parameters import ModelParameters
from gptrs.runtime.weights import Weights

_NAMESPACES = count(1)


class LoadedModel:
    """A model with the place that it came from; what it does is said by the classes made of it.

    ``place`` is the directory or the file that was loaded, ``directory`` where its other files are;
    ``files`` have all of it, and ``weights`` give the parameters out of them. ``namespace`` is a
    number that no other model of this process has.
    """

    def __init__(self, files: ModelFiles, kind: str, module: Any, weights: Weights) -> None:
        self.files = files
        self.place = files.place
        self.directory = files.directory
        self.kind = kind
        self.module = module
        self.config = module.config
        self.weights = weights
        self.namespace = next(_NAMESPACES)

    def parameters(self) -> ModelParameters:
        """The parameters by their dotted names; ``parameters()[name] = array`` replaces one, and
        what was derived from it."""
        return ModelParameters(self.module, self.namespace, self.weights.names)

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.parameters().values())
        return f"<{self.kind} {self.place.name}: {count:,} parameters>"
