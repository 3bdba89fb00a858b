"""Speculative decoding: guesses of the next tokens, which the model checks in one call.

A call over the latest token and k guesses gives the logits after each of them. Tokens are sampled
from these in turn, as they would be one by one; the first that differs from its guess ends the
round, and the cache is cut behind it. So the tokens are those without guesses, bit for bit, also of
sampled text with a seed: a guess is accepted as often as its token is sampled, which for a single
guess is as often as can be (Leviathan et al., arXiv:2211.17192, with a distribution of one token).
The rows of a batch go on together, until one of them differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError
from gptrs.text.draft_model import DraftModel, draft_of
from gptrs.text.options import GenerationOptions

NO_GUESS = -1
"""In place of a guess: no token equals it."""
_LONGEST = 3
"""Tokens that are looked for in the text before, at most."""


class Proposer(Protocol):
    """Guesses how texts go on."""

    def guesses(self, texts: Sequence[Sequence[int] | None], most: int) -> NDArray[np.int64]:
        """At most ``most`` guesses for each row, [batch, n]; `NO_GUESS` where there is none.

        ``texts`` are the tokens of each row so far, None for a row that has ended.
        """
        ...


class PromptLookup:
    """What followed the last tokens where they occurred before: in summaries, answers from a text,
    and code. Source: Saxena, Prompt lookup decoding (2023)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, NDArray[np.int64]] = {}
        """The tokens of each row so far, and room for more."""
        self._counts: dict[int, int] = {}

    def guesses(self, texts: Sequence[Sequence[int] | None], most: int) -> NDArray[np.int64]:
        """As `Proposer` says."""
        most = min(most, self._most)
        found = [
            [] if text is None else followers(self._array(row, text), most)
            for row, text in enumerate(texts)
        ]
        table = np.full((len(texts), max(map(len, found))), NO_GUESS, np.int64)
        for row, tokens in zip(table, found, strict=True):
            row[: len(tokens)] = tokens
        return table

    def _array(self, row: int, text: Sequence[int]) -> NDArray[np.int64]:
        """``text`` as an array, of which what was there before is not converted again."""
        room, count = self._known.get(row), self._counts.get(row, 0)
        if room is None or len(room) < len(text):
            larger = np.empty(2 * len(text), np.int64)
            larger[:count] = () if room is None else room[:count]
            room = self._known[row] = larger
        room[count : len(text)] = text[count:]
        self._counts[row] = len(text)
        return room[: len(text)]


def followers(text: NDArray[np.int64], most: int) -> list[int]:
    """At most ``most`` tokens that followed the latest earlier occurrence of the last three tokens
    of ``text``, else of the last two, else of the last one."""
    places = np.flatnonzero(text[:-1] == text[-1])  # where n-grams end
    for size in range(2, _LONGEST + 1):
        longer = places[places >= size - 1]
        longer = longer[text[longer - size + 1] == text[-size]] if len(longer) else longer
        if not len(longer):
            break
        places = longer
    if not len(places):
        return []
    first = int(places[-1]) + 1
    return text[first : first + most].tolist()


def proposer_of(
    options: GenerationOptions, model: Any, cache: Any, starts: NDArray[np.int32], capacity: int
) -> Proposer | None:
    """What guesses tokens by these options; None where nothing does.

    ``starts`` and ``capacity`` are those of the ``cache`` of ``model``. Raises `ArgumentError` for
    a cache that wrong guesses could not be taken out of, and for an unsuitable draft.
    """
    if options.prompt_lookup is None and options.draft is None:
        return None
    option = "prompt_lookup" if options.draft is None else "draft"
    if cache is not None and not hasattr(cache, "cut"):
        raise ArgumentError(
            f"option {option} needs a cache that can be cut, found a {type(cache).__name__}",
            fix="leave the option out, or let init_cache give a gptrs.nn.KVCache",
        )
    if options.draft is None:
        assert options.prompt_lookup is not None
        return PromptLookup(options.prompt_lookup)
    draft = draft_of(options.draft, model.vocab_size)
    return DraftModel(draft, starts, capacity, options.draft_tokens)


def cut(cache: Any, length: int) -> Any:
    """``cache`` with its first ``length`` columns; None where a model needs none."""
    return None if cache is None else cache.cut(length)
