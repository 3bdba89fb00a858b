"""Language models of GGUF files in llama.cpp, through its C interface."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import Prompts

llama: Any = import_module("llama_cpp.llama_cpp")
F32, F16 = 0, 1  # of ggml_type


def _ignore(level: int, text: bytes, data: object) -> None:
    pass


_silent = llama.llama_log_callback(_ignore)  # kept: llama.cpp calls it at any time


class Opened(NamedTuple):
    """How a file is used."""

    vocabulary: int
    context: int
    cache_type: int
    """`F32` or `F16`: the dtype of keys and values."""


class LlamaCpp:
    """One model; each number of rows has a context of its own."""

    def __init__(self, file: Path, opened: Opened, threads: int, tolerance: float) -> None:
        llama.llama_log_set(_silent, None)
        llama.llama_backend_init()
        self.tolerance, self.threads, self.opened = tolerance, threads, opened
        options = llama.llama_model_default_params()
        self.model = llama.llama_model_load_from_file(str(file).encode(), options)
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {file}")
        self.contexts: dict[int, Any] = {}

    def _context(self, rows: int) -> Any:
        """An empty context for ``rows`` texts."""
        if rows not in self.contexts:
            options = llama.llama_context_default_params()
            context = self.opened.context
            options.n_ctx, options.n_seq_max, options.n_batch = context * rows, rows, context
            options.n_outputs_max = rows
            options.n_threads = options.n_threads_batch = self.threads
            options.type_k = options.type_v = self.opened.cache_type
            self.contexts[rows] = llama.llama_init_from_model(self.model, options)
        context = self.contexts[rows]
        llama.llama_memory_clear(llama.llama_get_memory(context), False)
        return context

    def _forward(self, context: Any, new: Prompts, seen: int) -> NDArray[np.float32]:
        """Logits [rows, vocabulary] after the ``new`` tokens of every row."""
        places = [(row, i) for row, tokens in enumerate(new) for i in range(len(tokens))]
        batch = llama.llama_batch_init(len(places), 0, 1)
        try:
            batch.n_tokens = len(places)
            for at, (row, i) in enumerate(places):
                batch.token[at], batch.pos[at] = new[row][i], seen + i
                batch.n_seq_id[at], batch.seq_id[at][0] = 1, row
                batch.logits[at] = i == len(new[row]) - 1
            if code := llama.llama_decode(context, batch):
                raise RuntimeError(f"llama_decode returned {code}")
        finally:
            llama.llama_batch_free(batch)
        address = ctypes.cast(llama.llama_get_logits(context), ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(address, (len(new), self.opened.vocabulary))

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        context, new, seen = self._context(len(prompts)), prompts, 0
        for _ in range(count):
            likeliest: list[int] = self._forward(context, new, seen).argmax(-1).tolist()
            seen += len(new[0])
            yield likeliest
            new = [[token] for token in likeliest]

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        return self._forward(self._context(1), [prompt], 0)[0].copy()
