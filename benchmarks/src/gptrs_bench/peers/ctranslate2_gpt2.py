"""GPT-2 in CTranslate2, converted by its own converter."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptrs_bench.gpt2 import EXACT, Prompts, Side, read_sizes
from gptrs_bench.peers import PeerError

ctranslate2: Any = import_module("ctranslate2")


def word(token: int) -> str:
    """A token as CTranslate2 is told of it: the model has no text."""
    return f"<{token}>"


def write_converted(directory: Path) -> Path:
    """The model of an f32 directory beside it, written unless it is there.

    Raises `PeerError`.
    """
    sizes = read_sizes(directory)
    if not sizes.has_usual_scale:
        raise PeerError("it has GPT-2 with scores times 1/√head_size alone")
    folder = directory.with_name(f"{directory.name}-ctranslate2")
    if not folder.exists():
        converters: Any = import_module("ctranslate2.converters.transformers")
        transformers: Any = import_module("transformers")
        loader, partial = converters.GPT2Loader(), folder.with_suffix(".partial")
        spec = loader.get_model_spec(transformers.GPT2LMHeadModel.from_pretrained(directory))
        # It also has three of its own; none of them comes up in what is generated here.
        spec.register_vocabulary([word(token) for token in range(sizes.vocabulary)])
        spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = word(0)
        spec.validate()
        spec.optimize(quantization="float32")
        partial.mkdir(parents=True, exist_ok=True)
        spec.save(str(partial))
        partial.rename(folder)
    return folder


class CTranslate2:
    tolerance: float = EXACT

    def __init__(self, directory: Path, threads: int) -> None:
        folder, self.vocabulary = write_converted(directory), read_sizes(directory).vocabulary
        options = {"inter_threads": 1, "intra_threads": threads, "compute_type": "float32"}
        self.generator = ctranslate2.Generator(str(folder), device="cpu", **options)

    def _generate(self, prompts: Prompts, count: int, **options: Any) -> list[Any]:
        words = [[word(token) for token in prompt] for prompt in prompts]
        given: dict[str, Any] = {"include_prompt_in_result": False, "end_token": list[int]()}
        return self.generator.generate_batch(
            words, max_length=count, min_length=count, beam_size=1, **given, **options
        )

    def steps(self, prompts: Prompts, count: int) -> Iterator[list[int]]:
        tokens, row = SimpleQueue[list[int]](), list[int]()

        def note(result: Any) -> bool:
            row.append(result.token_id)
            if len(row) == len(prompts):
                tokens.put(row.copy())
                row.clear()
            return False

        thread = Thread(target=self._generate, args=(prompts, count), kwargs={"callback": note})
        thread.start()
        for _ in range(count):
            yield tokens.get()
        thread.join()

    def last_logits(self, prompt: list[int]) -> NDArray[Any]:
        (result,) = self._generate([prompt], 1, return_logits_vocab=True)
        return np.asarray(result.logits[0][0])[: self.vocabulary]


def sides(directory: Path, threads: int) -> dict[str, Side]:
    return {"ctranslate2": CTranslate2(directory, threads)}


def quickest(directory: Path, threads: int) -> Side:
    return CTranslate2(directory, threads)
