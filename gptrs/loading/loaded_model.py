"""What loaded models have in common, whatever they take and say."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from gptrs.formats.model_files import ModelFiles
from gptrs.formats.overrides import read_overrides
from gptrs.loading.model_parameters import ModelParameters
from gptrs.loading.weights import Weights

if TYPE_CHECKING:
    from gptrs.memory.estimate import ModelMemory

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

    def memory(self) -> ModelMemory:
        """The memory that it takes, at sizes that are given later."""
        from gptrs.memory.estimate import ModelMemory  # mostly nobody asks

        policies = read_overrides(self.files.runtime, self.files.config_file)
        return ModelMemory(self.module, policies)

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.parameters().values())
        return f"<{self.kind} {self.place.name}: {count:,} parameters>"
