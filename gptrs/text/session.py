"""`PrefixCache`: a model whose KV cache is kept between texts, so that only new tokens are read.

A conversation is sent whole at each turn; all but its end was in the cache before. The longest
common prefix of the tokens stays, the cache is cut behind it (its write position moves back), and
the rest is prefilled. Results have the bits that they have without it: a row's result does not
depend on whether its tokens came one by one or all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gptrs import events, ptir
from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass
from gptrs.nn.cache import KVCache
from gptrs.nn.cache_memory import zeros
from gptrs.text.causal_model import CausalModel, WrappedModel
from gptrs.text.speculation import cut

_LEAST = 256  # columns of a cache: it is copied as it grows, to twice as many


@dataclass(frozen=True)
class PrefixReused:
    """Event: ``tokens`` of a prompt were in the cache, and are not read again."""

    tokens: int


class _Text:
    """What `PrefixCache.init_cache` gives in place of a cache: a text that goes on."""

    def __init__(self, capacity: int, prefix: PrefixCache) -> None:
        self.capacity = capacity
        self.begun = False
        self._prefix = prefix

    def cut(self, length: int) -> _Text:
        """The text with its first ``length`` tokens."""
        self._prefix.cut(length)
        return self

    def resume(self, prompt: Sequence[int]) -> int:
        """Begin with ``prompt``, of which so many tokens are in the cache."""
        self.begun = True
        return self._prefix.resume(list(prompt), self.capacity)


class PrefixCache(WrappedModel):
    """A `CausalModel` of one text after the other, with the cache of ``model``.

    Batches go to the model as they are. Only a `KVCache` is kept; a model with another kind of
    cache reads each prompt whole. Not for two threads at once.
    """

    def __init__(self, model: CausalModel) -> None:
        super().__init__(model)
        self._text: _Text | None = None
        self._cache: Any = None
        self.tokens: list[int] = []
        """The tokens in the cache."""
        self.reused = 0
        """How many tokens of the latest prompt were there before."""

    def clear(self) -> None:
        """Give the cache up, with its memory."""
        self._text, self._cache, self.tokens = None, None, []

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> Any:
        """The begin of another text, or an empty cache for a batch."""
        if len(starts) != 1:
            return self.model.init_cache(starts, capacity)
        self._text = _Text(capacity, self)
        return self._text

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: Any = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, Any]:
        """As the model's call. The first one of a text may leave out what is in the cache.

        Raises `ArgumentError` for a text after which another was begun.
        """
        if not isinstance(cache, _Text):
            return self.model(tokens, cache, logits=logits)
        if cache is not self._text:
            raise ArgumentError(
                "another text was begun in this session before this one ended",
                fix="read one to its end first, or make two sessions",
            )
        if not cache.begun:
            tokens = tokens[:, cache.resume(tokens[0].tolist() if logits == "last" else []) :]
        kept = self._with_room(len(self.tokens) + tokens.shape[1], cache.capacity)
        ids, self._cache, self.tokens = self.tokens, None, []  # an interrupt leaves nothing
        result, made = self.model(tokens, kept, logits=logits)
        ids += tokens[0].tolist()
        self._cache, self.tokens = made, ids
        return result, cache

    def cut(self, length: int) -> None:
        """Leave the first ``length`` tokens in the cache."""
        self._cache, self.tokens = cut(self._cache, length), self.tokens[:length]

    def resume(self, prompt: list[int], capacity: int) -> int:
        """Cut the cache to what it has in common with ``prompt``, whose last token is left for the
        model to read, and make room for the rest; the number of tokens that stay."""
        common = 0
        whole = len(prompt) > self.longest_in_chunks  # other positions than in the cache
        if type(self._cache) is KVCache and not whole:
            common = _common(self.tokens, prompt[:-1])
            if not self._cache.reaches(common):  # layers with a window have dropped what precedes
                self._cache, common = None, 0
            else:
                self._cache = self._cache.cut(common)
        else:
            self._cache = None
        self.tokens, self.reused = self.tokens[:common], common
        if common and events.listening():
            events.emit(PrefixReused(common))
        self._cache = self._with_room(len(prompt), capacity)
        return common

    def _with_room(self, needed: int, capacity: int) -> Any:
        """The cache with ``needed`` columns or more, a new one if there is none."""
        cache = self._cache
        if cache is None:
            starts = np.zeros(1, np.int32)
            made = self.model.init_cache(starts, min(max(_LEAST, 2 * needed), capacity))
            return made if type(made) is KVCache else self.model.init_cache(starts, capacity)
        if type(cache) is not KVCache or (found := _capacity(cache)) >= needed:
            return cache
        return _grown(cache, min(max(2 * found, needed), self.context_length), len(self.tokens))


def _common(one: list[int], other: list[int]) -> int:
    """The length of the longest common prefix."""
    count = min(len(one), len(other))
    different = np.flatnonzero(np.array(one[:count]) != np.array(other[:count]))
    return int(different[0]) if len(different) else count


def _capacity(cache: KVCache) -> int:
    return int(cache.keys.shape[3])


def _grown(cache: KVCache, capacity: int, length: int) -> KVCache:
    """A copy of the first ``length`` columns of ``cache`` in one of ``capacity``."""
    copies: list[Any] = []
    for kept in (cache.keys, cache.values):
        old = np.asarray(kept)  # [layers, batch, heads, capacity, head size]
        shape = (*old.shape[:3], capacity, old.shape[4])
        new = zeros(shape, kept.dtype)
        new[:, :, :, :length] = old[:, :, :, :length]
        copies.append(ptir.tensor(new))
    return replace(cache, keys=copies[0], values=copies[1])
