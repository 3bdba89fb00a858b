"""A causal model whose calls run under the implementation policies of its checkpoint."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gptrs.jit.overrides import Policies, checkpoint_overrides
from gptrs.text.causal_model import CausalModel


class Overridden:
    """A causal model whose calls follow the policies of its checkpoint."""

    def __init__(self, model: CausalModel, policies: Policies) -> None:
        self._model = model
        self._policies = policies

    @property
    def context_length(self) -> int:
        return self._model.context_length

    @property
    def vocab_size(self) -> int:
        return self._model.vocab_size

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> Any:
        return self._model.init_cache(starts, capacity)

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: Any = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, Any]:
        with checkpoint_overrides(self._policies):
            return self._model(tokens, cache, logits=logits)
