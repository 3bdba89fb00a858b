"""A model in plain NumPy whose logits depend on every token of a row, and its tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers

from gptrs.text.tokenizer import Tokenizer

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
END = len(LETTERS)
VOCAB = len(LETTERS) + 1


def byte_tokenizer() -> Tokenizer:
    made: Any = tokenizers.Tokenizer(
        models.BPE(vocab={letter: token for token, letter in enumerate(LETTERS)}, merges=[])
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    return Tokenizer(made)


TOKENIZER = byte_tokenizer()
Rule = Callable[[list[int]], NDArray[np.float32]]


def by_hash(row: list[int]) -> NDArray[np.float32]:
    """Logits that any change of the row's tokens, their order or their number changes."""
    return np.random.default_rng([len(row), *row]).normal(size=VOCAB).astype(np.float32)


def saying(*texts: str) -> Rule:
    """Logits that continue each of ``texts`` by its next letter, and end the text after it."""
    spelled = [TOKENIZER.encode(text) for text in texts]

    def rule(row: list[int]) -> NDArray[np.float32]:
        logits = np.zeros(VOCAB, np.float32)
        rests = [ids[len(row) :] for ids in spelled if ids[: len(row)] == row]
        logits[[*rests[0], END][0] if rests else END] = 1
        return logits

    return rule


@dataclass
class FakeCache:
    columns: NDArray[np.int64]  # [batch, capacity]
    starts: NDArray[np.int32]
    length: int = 0
    donated: bool = False

    def cut(self, length: int) -> FakeCache:
        """The cache with its first ``length`` columns."""
        assert not self.donated
        assert length <= self.length
        self.length = length
        return self


class FakeModel:
    """A CausalModel that counts its calls and refuses a cache that was given away."""

    vocab_size = VOCAB

    def __init__(self, rule: Rule = by_hash, context_length: int = 64) -> None:
        self.rule = rule
        self.context_length = context_length
        self.calls: list[tuple[int, ...]] = []
        self.capacity = 0

    def init_cache(self, starts: NDArray[np.int32], capacity: int) -> FakeCache:
        assert (starts.dtype, starts.min()) == (np.int32, 0)
        assert capacity <= self.context_length
        self.capacity = capacity
        return FakeCache(np.full((len(starts), capacity), -1, np.int64), starts)

    def __call__(
        self,
        tokens: NDArray[np.int64],
        cache: FakeCache | None = None,
        *,
        logits: Literal["all", "last"] = "all",
    ) -> tuple[Any, FakeCache]:
        assert cache is not None
        assert not cache.donated
        assert tokens.dtype == np.int64
        cache.donated = True
        self.calls.append(tokens.shape)
        columns, length = cache.columns.copy(), cache.length + tokens.shape[1]
        assert length <= columns.shape[1]
        columns[:, cache.length : length] = tokens
        rows = zip(columns.tolist(), cache.starts.tolist(), strict=True)
        ends = range(length if logits == "last" else cache.length + 1, length + 1)
        found = np.array([[self.rule(row[start:end]) for end in ends] for row, start in rows])
        return found, FakeCache(columns, cache.starts, length)
