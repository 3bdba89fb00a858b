"""`LoadedModel`, the base of model handles: files, weights, parameters, memory."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from gptrs.formats.model_files import ModelFiles
from gptrs.formats.overrides import read_overrides
from gptrs.html_tables import facts, fragment
from gptrs.loading.model_parameters import ModelParameters
from gptrs.loading.weights import Weights
from gptrs.nn.cache import CacheLayout
from gptrs.nn.module_tree import module_tree

if TYPE_CHECKING:
    from gptrs.debug.view.view import View
    from gptrs.memory.estimate import ModelMemory

_NAMESPACES = count(1)


class LoadedModel:
    """A model with its files; subclasses add the methods of its task.

    ``place`` is the loaded directory or file, ``directory`` that of its sidecar files; ``files`` is
    the whole of it, and ``weights`` reads the parameters. ``namespace`` is a number that is unique
    in this process.
    """

    is_loaded_model: ClassVar[bool] = True
    cache_layout: CacheLayout | None = None
    """How the KV caches of a language model are stored."""

    def __init__(self, files: ModelFiles, kind: str, module: Any, weights: Weights) -> None:
        self.files = files
        self.place = files.place
        self.directory = files.directory
        self.kind = kind
        self.module = module
        self.config = module.config
        self.weights = weights
        self.namespace = next(_NAMESPACES)
        self.backend: str | None = None

    def set_backend(self, name: str | None) -> None:
        """Run the model on the backend ``name`` from now on; None: on that of each call."""
        self.backend = name

    def parameters(self) -> ModelParameters:
        """The parameters by dotted names; ``parameters()[name] = array`` replaces one, with all
        parameters derived from it."""
        return ModelParameters(self.module, self.namespace, self.weights.names)

    def memory(self) -> ModelMemory:
        """The memory of the model, at sizes that are given later."""
        from gptrs.memory.estimate import ModelMemory  # late: seldom needed

        policies = read_overrides(self.files.runtime, self.files.config_file)
        return ModelMemory(self.module, policies, self.cache_layout)

    def view(self, *, batch: int = 1, tokens: int | None = None, decode: bool = False) -> View:
        """The program of the model, its passes and its plan as an HTML page, as
        `gptrs.jit.function.JitFunction.view` gives it.

        It is that of ``batch`` rows of ``tokens`` tokens (64, if that many fit), or images; with
        ``decode`` that of one more token after them. Raises `ArgumentError` for sizes that the
        model does not take.
        """
        from gptrs.loading.view import view  # late: seldom needed

        policies = read_overrides(self.files.runtime, self.files.config_file)
        return view(self.module, policies, batch, tokens, decode=decode)

    def __repr__(self) -> str:
        count = sum(int(p.size) for p in self.parameters().values())
        return f"<{self.kind} {self.place.name}: {count:,} parameters>"

    def _repr_html_(self) -> str:
        """The file and the layers as a tree for notebooks; nothing is loaded for it."""
        known = facts([("model", self.kind), ("from", str(self.place))])
        return fragment(known, module_tree(self.module))
