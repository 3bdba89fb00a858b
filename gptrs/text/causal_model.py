"""`CausalModel`, the interface of a language model for generation."""

from __future__ import annotations

import sys
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray


class CausalModel(Protocol):
    """The interface of a model for generation."""

    @property
    def context_length(self) -> int:
        """How many tokens a row can hold."""
        ...

    @property
    def vocab_size(self) -> int:
        """Token ids are below this."""
        ...

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> Any:
        """An empty cache of ``capacity`` columns; row b's tokens begin at column ``starts[b]``."""
        ...

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: Any = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, Any]:
        """Logits [batch, sequence or 1, vocab] after ``tokens`` int64 [batch, sequence], and the
        cache that holds them too; the one passed in is donated: it must not be used again."""
        ...


class WrappedModel:
    """A model with the sizes of ``model``, whose caches or calls differ."""

    def __init__(self, model: CausalModel) -> None:
        self.model = model

    @property
    def context_length(self) -> int:
        """How many tokens a row can hold."""
        return self.model.context_length

    @property
    def vocab_size(self) -> int:
        """Token ids are below this."""
        return self.model.vocab_size

    @property
    def longest_in_chunks(self) -> int:
        """As the function of this name says."""
        return longest_in_chunks(self.model)


def longest_in_chunks(model: CausalModel) -> int:
    """The longest prompt in tokens of which ``model`` may be given one part after the other.

    Models whose positions depend on the length of the text have a property ``longest_in_chunks``;
    for others there is no limit.
    """
    return getattr(model, "longest_in_chunks", sys.maxsize)
