"""Logit processors for single tokens: bias, repetition, presence and frequency penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs.text.options import GenerationOptions


class SeenTokens:
    """The distinct tokens of a row, and how often each was generated (0: in the prompt alone)."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._places = {token: place for place, token in enumerate(dict.fromkeys(prompt))}
        self.ids: NDArray[np.int64] = np.array(list(self._places), np.int64)
        self.generated: NDArray[np.int64] = np.zeros(len(self.ids), np.int64)

    def add(self, token: int) -> None:
        """Count the new ``token``."""
        place = self._places.setdefault(token, len(self._places))
        if place == len(self.ids):
            self.ids = np.append(self.ids, token)
            self.generated = np.append(self.generated, 0)
        self.generated[place] += 1


class Penalties:
    """The logit processors of ``options``, applied before the temperature."""

    def __init__(self, options: GenerationOptions) -> None:
        self._bias_ids = np.array(list(options.logit_bias), np.int64)
        self._bias = np.array(list(options.logit_bias.values()), np.float64)
        self._repetition = float(options.repetition_penalty)
        self._presence = float(options.presence_penalty)
        self._frequency = float(options.frequency_penalty)

    def apply(self, logits: NDArray[Any], seen: SeenTokens) -> NDArray[np.float64]:
        """A copy of ``logits`` [vocab] with the bias, then the penalties for ``seen`` tokens."""
        adjusted = logits.astype(np.float64)
        with np.errstate(over="ignore"):  # sampling raises on an infinite logit
            adjusted[self._bias_ids] += self._bias
            if self._repetition != 1:
                old = adjusted[seen.ids]
                adjusted[seen.ids] = np.where(
                    old > 0, old / self._repetition, old * self._repetition
                )
            if self._presence or self._frequency:
                falls = self._presence * (seen.generated > 0) + self._frequency * seen.generated
                adjusted[seen.ids] -= falls
        return adjusted
