"""GPT-2 124M as gptrs runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gptrs
from benchmarks.gpt2_directory import EXACT, Prompts
from gptrs.text.generation import generate_tokens
from gptrs.text.sampling import GenerationOptions


class Ours:
    tolerance: float = EXACT

    def __init__(self, directory: Path) -> None:
        self.module = gptrs.load(directory).module

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        options = GenerationOptions(max_tokens=count)
        for row in generate_tokens(self.module, prompts, options, eos=None):
            yield [token for token in row if token is not None]

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        cache = self.module.init_cache(np.zeros(1, np.int32), len(prompt))
        logits, _ = self.module(np.array([prompt]), cache, logits="last")
        return np.asarray(logits)[0, 0]
