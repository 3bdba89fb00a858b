"""Chunked prefill: the bits of a prompt read at once, bounded calls, interrupts between chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.random_model import write_random_model
from gptrs.text.generation import generate_tokens
from gptrs.text.options import GenerationOptions
from gptrs.text.prefill import CHUNK, Prefilling
from tests.support.fake_model import FakeModel, by_hash
from tests.support.models import random_tokens

MISTRAL = {
    "model_type": "mistral",
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1600,
    "sliding_window": 40,
}
LONG = {
    "model_type": "llama",
    "sliding_window": None,
    "rope_scaling": {"rope_type": "dynamic", "factor": 2.0},
    "max_position_embeddings": 64,
}


def made(place: Path, **fields: Any) -> Path:
    (place / "config.json").write_text(json.dumps({**MISTRAL, **fields}))
    write_random_model(place / "config.json", place / "model")
    return place / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return gptrs.load(made(tmp_path_factory.mktemp("prefill")))


def prompt_of(count: int, seed: int = 0) -> list[int]:
    return (random_tokens(count, seed=seed) % 300).tolist()


def read(model: LanguageModel, prompt: list[int], **options: Any) -> Any:
    return list(model.stream_logprobs(prompt, logprobs=2, max_tokens=4, ignore_eos=True, **options))


@pytest.mark.parametrize("chunk", [7, 64, 150])
def test_the_bits_are_those_of_a_prompt_at_once(model: LanguageModel, chunk: int) -> None:
    for count in (150, 151, chunk, chunk + 1):
        prompt = prompt_of(count)
        expected = read(model, prompt, prefill_chunk=1000)
        assert read(model, prompt, prefill_chunk=chunk) == expected
        assert read(model.session(), prompt, prefill_chunk=chunk) == expected


def test_rows_of_a_batch(model: LanguageModel) -> None:
    prompts = [prompt_of(count, seed=count) for count in (90, 5, 130)]

    def tokens(**more: Any) -> list[list[int | None]]:
        options = GenerationOptions(max_tokens=5, **more)
        return list(generate_tokens(model.generator, prompts, options, eos=None))

    assert tokens(prefill_chunk=33) == tokens(prefill_chunk=10_000)


def test_each_call_has_a_chunk_of_all_rows() -> None:
    fake = FakeModel(by_hash)
    options = GenerationOptions(max_tokens=1, prefill_chunk=8)
    for prompts, widths in [([[5] * 20], [8, 8, 4]), ([[5] * 9, [6]], [4, 4, 1])]:
        fake.calls.clear()
        list(generate_tokens(fake, prompts, options, eos=None))
        assert fake.calls == [(len(prompts), width) for width in widths]
    fake.calls.clear()
    many = GenerationOptions(max_tokens=1, prefill_chunk=2)
    list(generate_tokens(fake, [[1, 2], [3], [4]], many, eos=None))
    assert fake.calls == [(3, 1), (3, 1)], "a token of each row at least"


def test_progress(model: LanguageModel) -> None:
    heard: list[object] = []
    with events.listen(heard.append):
        read(model, prompt_of(100), prefill_chunk=40)
    found = [each for each in heard if isinstance(each, Prefilling)]
    assert found == [Prefilling(40, 100), Prefilling(80, 100)]


def test_a_session_keeps_the_chunks_before_an_interrupt(model: LanguageModel) -> None:
    session, prompt = model.session(), prompt_of(100)

    def interrupt(event: object) -> None:
        if event == Prefilling(80, 100):
            raise KeyboardInterrupt

    with events.listen(interrupt), pytest.raises(KeyboardInterrupt):
        read(session, prompt, prefill_chunk=40)
    assert session.tokens == tuple(prompt[:80])
    assert read(session, prompt) == read(model, prompt)
    assert len(session.tokens) == 103


def test_positions_that_depend_on_the_length(tmp_path: Path) -> None:
    """Up to the length that the model was trained on they do not; longer prompts stay whole."""
    model = gptrs.load(made(tmp_path, **LONG))
    assert model.generator.longest_in_chunks == 64  # pyright: ignore[reportAttributeAccessIssue]
    heard: list[object] = []
    with events.listen(heard.append):
        prompt = prompt_of(60)
        assert read(model, prompt, prefill_chunk=16) == read(model, prompt)
    assert sum(isinstance(each, Prefilling) for each in heard) == 3


def test_a_session_reads_such_prompts_whole(tmp_path: Path) -> None:
    scaling: dict[str, Any] = {
        "rope_type": "longrope",
        "short_factor": [1.0] * 4,
        "long_factor": [3.0] * 4,
    }
    scaling["original_max_position_embeddings"] = 64
    fields = {**LONG, "rope_scaling": scaling, "max_position_embeddings": 256}
    model = gptrs.load(made(tmp_path, **fields))
    session, prompt = model.session(), prompt_of(100)
    for part in (prompt[:50], prompt):  # the begin is in the cache by other factors
        assert read(session, part, prefill_chunk=16) == read(model, part, prefill_chunk=16)


def test_the_estimate_is_that_of_a_chunk(model: LanguageModel) -> None:
    one, long = (gptrs.estimate_memory(model, context=count) for count in (CHUNK, 1600))
    assert long.activations == pytest.approx(one.activations, rel=0.01)
    few = gptrs.estimate_memory(model, context=CHUNK, batch=4)
    assert few.activations < 1.3 * one.activations


def test_no_chunk() -> None:
    with pytest.raises(
        ArgumentError, match="option prefill_chunk is 0, expected an integer from 1"
    ):
        GenerationOptions(prefill_chunk=0)
