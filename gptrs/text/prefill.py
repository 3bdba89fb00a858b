"""Chunked prefill: a prompt is read in chunks, so that memory for it is bounded.

Intermediate values of a model's call grow with its tokens; those of a chunk of 512 fit into caches,
and a prompt of any length takes the memory of one chunk beside the KV cache. Results have the bits
that they have at once: those of a token depend on the tokens before it alone, not on which were
read together. The exception are rotary positions that depend on the length of the text
(`gptrs.text.causal_model.longest_in_chunks`): longer prompts are read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gptrs import events
from gptrs.lazy_dataclass import dataclass
from gptrs.text.causal_model import CausalModel, longest_in_chunks

CHUNK = 512
"""Tokens of all rows that are read at once, unless an option says else. More of them run a few
percent faster at best."""


@dataclass(frozen=True)
class Prefilling:
    """Event: ``done`` of ``total`` columns of a prompt of several chunks were read."""

    done: int
    total: int


Call = Callable[[NDArray[np.int64], Any], tuple[NDArray[Any], Any]]
"""The logits of the last token of each row, and the next cache."""


@runtime_checkable
class Resumable(Protocol):
    """A cache that may hold the begin of a prompt."""

    def resume(self, prompt: Sequence[int]) -> int:
        """Go on with ``prompt``, of which so many tokens need not be read again."""
        ...


def chunk_columns(model: CausalModel, rows: int, columns: int, chunk: int) -> int:
    """How many ``columns`` of a prompt are read at once."""
    if columns > longest_in_chunks(model):
        return columns
    return min(columns, max(1, chunk // rows))


def prefill(
    model: CausalModel, tokens: NDArray[np.int64], cache: Any, chunk: int, call: Call
) -> tuple[NDArray[Any], Any]:
    """The result of ``call`` for the last chunk of ``tokens`` [batch, columns] after the others.

    Between chunks it can be interrupted, and then a session keeps what it has read.
    """
    rows, columns = tokens.shape
    width = chunk_columns(model, rows, columns, chunk)
    first = cache.resume(tokens[0].tolist()) if isinstance(cache, Resumable) else 0
    with events.working("reading the prompt", columns, "tokens") as work:
        while True:
            work.done = first
            logits, cache = call(tokens[:, first : first + width], cache)
            first += width
            if first >= columns:
                return logits, cache
            if events.listening():
                events.emit(Prefilling(first, columns))
