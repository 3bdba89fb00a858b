"""Caches of layers with a window: they hold the window alone, and results keep their bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.errors import ArgumentError
from gptrs.ir.types import bf16
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.random_model import write_random_model
from gptrs.nn.cache import ROLLBACK, CacheLayout, KVCache
from gptrs.text.configured_model import ConfiguredModel
from gptrs.text.generation import generate_logprobs
from gptrs.text.options import GenerationOptions
from gptrs.text.prefill import CHUNK
from gptrs.text.session import PrefixCache

SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2000,
    "sliding_window": 20,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "mistral": {},
    "gemma3_text": {"head_dim": 16, "sliding_window_pattern": 3},
    "phi3": {"pad_token_id": None},
    "qwen2": {"use_sliding_window": True, "max_window_layers": 1},
    "starcoder2": {},
}
WINDOW, SLACK = 20, 24

Make = Callable[[str], LanguageModel]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    models: dict[str, LanguageModel] = {}

    def made(family: str) -> LanguageModel:
        if family not in models:
            place = tmp_path_factory.mktemp(family)
            fields = {"model_type": family, **SIZES, **FAMILIES[family]}
            (place / "config.json").write_text(json.dumps(fields))
            write_random_model(place / "config.json", place / "model")
            models[family] = gptrs.load(place / "model")
        return models[family]

    return made


def ids(count: int, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, 300, count).tolist()


def text(model: Any, prompts: list[list[int]], count: int, **options: Any) -> Any:
    given = GenerationOptions(max_tokens=count, logprobs=1, prefill_chunk=20, **options)
    return list(generate_logprobs(model, prompts, given, eos=None))


class Watched(ConfiguredModel):
    """A model with small caches, that keeps the latest one in sight."""

    cache: Any = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        result, self.cache = super().__call__(*arguments, **options)
        return result, self.cache


def windowed(model: LanguageModel, **more: Any) -> Watched:
    return Watched(model.module, CacheLayout(slack=SLACK, **more))


def dropped(model: Watched) -> int:
    return int(model.cache.local.numpy()[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bits_are_those_of_a_whole_cache(make: Make, family: str) -> None:
    model = make(family)
    small = windowed(model)
    for prompts, count in (([ids(170)], 200), ([ids(3), ids(150, 1), ids(40, 2)], 120)):
        assert text(small, prompts, count) == text(model.module, prompts, count)
        assert dropped(small) > 100
        columns = small.cache.local_keys.shape[3]
        assert columns == WINDOW + 128 + SLACK, "the window, and room"
        assert small.cache.keys.shape[3] == max(map(len, prompts)) + count
        windows = [model.config.window(layer) for layer in range(3)]
        assert len(small.cache.keys.numpy()) == windows.count(None)
        assert len(small.cache.local_keys.numpy()) == windows.count(WINDOW)


def test_16_bits(make: Make) -> None:
    model, prompts = make("gemma3_text"), [ids(90), ids(200, 1)]
    whole = ConfiguredModel(model.module, CacheLayout(bf16))
    small = windowed(model, dtype=bf16)
    assert text(small, prompts, 60) == text(whole, prompts, 60)
    assert small.cache.local_keys.dtype is bf16


@pytest.mark.parametrize("count", [1, 7])
def test_no_cache_is_copied(make: Make, count: int) -> None:
    module: Any = make("gemma3_text").module
    call: Any = type(module).__call__
    sizes = set[int]()
    for slack in (16, 64):
        cache = module.init_cache(np.zeros(1, np.int32), 500, CacheLayout(slack=slack))
        found = call.explain(module, np.zeros((1, count), np.int64), cache, logits="last").report
        assert found.copies == ()
        assert found.instructions("reference") == 0
        sizes.add(found.arena_bytes + found.result_bytes)
    assert len(sizes) == 1


def test_columns_move_in_place(make: Make) -> None:
    small = windowed(make("mistral"))
    cache = small.init_cache(np.zeros(1, np.int32), 1000)
    keys = cache.local_keys.numpy()
    columns = keys.shape[3]
    for _ in range(3 * columns // 20):
        _, cache = small(np.array([ids(20)]), cache, logits="last")
    assert cache.local_keys.numpy() is keys
    assert dropped(small) > columns
    _, cache = small(np.array([ids(SLACK + 9)]), cache, logits="last")
    assert cache.local_keys.shape[3] > columns, "for a call of more tokens than there is room for"


def test_guesses_are_taken_back(make: Make) -> None:
    model, prompts = make("gemma3_text"), [ids(9) * 12, ids(8, 1) * 7]
    small = windowed(model)
    expected = text(model.module, prompts, 150)
    assert text(small, prompts, 150, prompt_lookup=5) == expected
    assert dropped(small) > 80
    draft = windowed(make("mistral"))
    assert text(small, prompts, 150, draft=draft, draft_tokens=90) == expected
    assert text(small, prompts, 150, draft=windowed(model), draft_tokens=6) == expected


def test_sessions(make: Make) -> None:
    """A text goes on, is taken back within the window, and further, where it is read again."""
    model = make("mistral")
    session, prompt = PrefixCache(windowed(model)), ids(100)
    for back, kept in ((0, None), (ROLLBACK - 1, None), (SLACK + ROLLBACK + 40, 0), (0, None)):
        expected = text(model.module, [prompt], 90)
        assert text(session, [prompt], 90) == expected
        whole = [*prompt, *(row.token for (row,) in expected)]
        assert session.tokens == whole[:-1]
        prompt = [*whole[: len(whole) - 1 - back], 3, 4]
        text(session, [prompt], 1)
        assert session.reused == (len(prompt) - 2 if kept is None else kept)


def test_a_cache_that_cannot_be_cut() -> None:
    layout = CacheLayout(slack=SLACK)
    cache = KVCache.empty(1, np.zeros(1, np.int32), 1, 900, 8, layout, [WINDOW])
    cache = cache.cut(WINDOW + 128 + SLACK).with_room(1)
    length = int(cache.length.numpy())
    assert int(cache.local.numpy()[0]) == SLACK  # pyright: ignore[reportOptionalMemberAccess]
    assert cache.reaches(length - ROLLBACK)
    assert not cache.reaches(length - ROLLBACK - 1)
    with pytest.raises(ArgumentError, match="the cache cannot be cut to 5 columns: layers with a"):
        cache.cut(5)


def test_the_estimate(make: Make) -> None:
    for family, context in (("gemma3_text", 1900), ("mistral", 1900), ("gemma3_text", 50)):
        model = make(family)
        cache = model.generator.init_cache(np.zeros(3, np.int32), context)
        leaves = (cache.keys, cache.values, cache.length, cache.start)
        leaves = (*leaves, cache.local_keys, cache.local_values, cache.local)
        size = sum(int(leaf.numpy().nbytes) for leaf in leaves)
        assert gptrs.estimate_memory(model, context=context, batch=3).kv_cache == size
        assert cache.local_keys.shape[3] == min(context, WINDOW + 128 + CHUNK)
    assert make("mistral").cache_layout == CacheLayout(slack=CHUNK)
    one, other = (gptrs.estimate_memory(make("mistral"), context=n).kv_cache for n in (900, 1900))
    assert one == other, "a model of windows alone needs no more for a longer text"


def test_a_model_of_one_text(tmp_path: Path, make: Make) -> None:
    """The handle: text, a batch and a session."""
    model, prompt = make("gemma3_text"), ids(900)
    found = list(model.stream_tokens(prompt, max_tokens=9))
    given = GenerationOptions(max_tokens=9, logprobs=0)
    steps = list(generate_logprobs(model.module, [prompt], given, eos=None))
    assert found == [row.token for (row,) in steps if row is not None]
    assert list(model.session().stream_tokens(prompt, max_tokens=9)) == found
