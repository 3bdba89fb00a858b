"""`DraftModel`: guesses of a smaller model, token by token, for speculative decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError
from gptrs.nn.cache import ROLLBACK
from gptrs.text.causal_model import CausalModel
from gptrs.text.prefill import CHUNK, prefill

_PADDING = 128
"""By so many tokens vocabularies of one family differ, which are padded to round numbers."""


class DraftModel:
    """The likeliest tokens of a ``draft`` after texts of at most ``capacity`` tokens.

    It keeps a cache of its own over the batch of ``starts`` (the column where each row begins),
    from which wrong guesses are cut. Source: Leviathan et al., arXiv:2211.17192.
    """

    def __init__(
        self, draft: CausalModel, starts: NDArray[np.int32], capacity: int, most: int
    ) -> None:
        self._model, self._starts, self._most = draft, starts, min(most, ROLLBACK)
        self._capacity = min(capacity, draft.context_length)
        self._cache: Any = None
        self._fed: NDArray[np.int64] = np.empty((len(starts), 0), np.int64)
        self._sure = 0
        """Columns that texts had at the last call; later ones were guesses."""

    def guesses(self, texts: Sequence[Sequence[int] | None], most: int) -> NDArray[np.int64]:
        """As `gptrs.text.speculation.Proposer` says: one call of the draft for each guess."""
        rows = [(row, text) for row, text in enumerate(texts) if text is not None]
        row, text = rows[0]
        total = len(text) + int(self._starts[row])
        most = min(most, self._most, self._capacity - total)
        if most < 1:
            return np.empty((len(texts), 0), np.int64)
        tail = np.zeros((len(texts), total - self._sure), np.int64)
        for row, text in rows:
            given = text[max(self._sure - int(self._starts[row]), 0) :]
            tail[row, tail.shape[1] - len(given) :] = given
        known = self._cut(tail, [row for row, _ in rows])
        self._sure = total
        logits, self._cache = prefill(
            self._model, tail[:, known:], self._cache, CHUNK, self._logits
        )
        found = [_likeliest(logits)]
        for _ in range(most - 1):
            logits, self._cache = self._logits(found[-1], self._cache)
            found.append(_likeliest(logits))
        return np.concatenate(found, 1)

    def _cut(self, tail: NDArray[np.int64], rows: list[int]) -> int:
        """Cut the cache behind the columns that are as in ``tail`` in all ``rows``; how many of
        these it still has. The last column is left to be fed."""
        if self._cache is None:
            self._cache = self._model.init_cache(self._starts, self._capacity)
            return 0
        guessed = self._fed[:, self._sure :]
        both = min(guessed.shape[1], tail.shape[1] - 1)
        same = (guessed[rows, :both] == tail[rows, :both]).all(0)
        known = both if same.all() else int(same.argmin())
        self._fed = self._fed[:, : self._sure + known]
        self._cache = self._cache.cut(self._fed.shape[1])
        return known

    def _logits(self, tokens: NDArray[np.int64], cache: Any) -> tuple[NDArray[Any], Any]:
        """The logits [batch, 1, vocab] after these tokens, and the next cache."""
        here = np.minimum(tokens, self._model.vocab_size - 1)  # padding of vocabularies
        logits, cache = self._model(here, cache, logits="last")
        self._fed = np.concatenate([self._fed, tokens], 1)
        return np.asarray(logits), cache


def _likeliest(logits: NDArray[Any]) -> NDArray[np.int64]:
    """The likeliest token of each row, [batch, 1]."""
    return logits[:, 0].argmax(-1)[:, None]


def draft_of(draft: Any, vocab_size: int) -> CausalModel:
    """The model of an option ``draft``: that of a loaded language model, or a module.

    Raises `ArgumentError` for other things, and for another vocabulary.
    """
    model = getattr(draft, "generator", draft)
    if not all(hasattr(model, name) for name in ("init_cache", "vocab_size", "context_length")):
        raise ArgumentError(
            f"option draft is a {type(draft).__name__}, expected a language model",
            fix="load it: draft=gptrs.load(...)",
        )
    if abs(model.vocab_size - vocab_size) > _PADDING:
        raise ArgumentError(
            f"option draft has a vocabulary of {model.vocab_size} tokens, expected the"
            f" {vocab_size} of the model",
            fix="take a smaller model of the same family",
        )
    return model
