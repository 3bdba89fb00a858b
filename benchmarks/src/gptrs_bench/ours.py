"""The gptrs side of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gptrs
from gptrs.loading.language_model import LanguageModel
from gptrs.text.generation import generate_tokens
from gptrs.text.sampling import GenerationOptions
from gptrs_bench import gpt2
from gptrs_bench.images import Array


class OurText:
    """A language model, which follows the policies of its checkpoint."""

    tolerance: float = gpt2.EXACT

    def __init__(self, place: Path | str) -> None:
        model: LanguageModel = gptrs.load(place)
        self.module: Any = model.generator

    def steps(self, prompts: gpt2.Prompts, count: int) -> Iterator[list[int]]:
        options = GenerationOptions(max_tokens=count)
        for row in generate_tokens(self.module, prompts, options, eos=None):
            yield [token for token in row if token is not None]

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        cache = self.module.init_cache(np.zeros(1, np.int32), len(prompt))
        logits, _ = self.module(np.array([prompt]), cache, logits="last")
        return np.asarray(logits)[0, 0]


class OurImages:
    """An image classifier; images as preprocessing leaves them, [N, H, W, C]."""

    def __init__(self, place: Path | str) -> None:
        self.classifier: Any = gptrs.load(place)

    def prepare(self, images: Array) -> Array:
        return images

    def logits(self, prepared: Array) -> Array:
        return np.asarray(self.classifier.forward(prepared).numpy())
