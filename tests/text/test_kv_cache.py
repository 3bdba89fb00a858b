"""KV caches in 16 bits: what is stored, read and estimated; sessions, guesses and batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.types import DType, as_dtype, bf16, f16
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.random_model import write_random_model
from gptrs.memory.fitting import fit
from gptrs.nn.cache import CacheLayout, KVCache
from tests.support.image_models import RESNET
from tests.support.models import random_tokens, tiny_gpt2

LLAMA = {
    "model_type": "llama",
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 600,
}
NARROW = {"f16": f16, "bf16": bf16}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("llama")
    (place / "config.json").write_text(json.dumps(LLAMA))
    write_random_model(place / "config.json", place / "model")
    return place / "model"


@pytest.fixture(scope="module")
def narrow(llama: Path) -> LanguageModel:
    return gptrs.load(llama, kv_cache_dtype="bf16")


def read(model: LanguageModel, prompt: list[int], **options: Any) -> Any:
    return list(model.stream_logprobs(prompt, logprobs=2, ignore_eos=True, **options))


def attend(cache: KVCache, q: Any, k: Any, v: Any) -> Any:
    y, cache = cache.attend(1, q, k, v, scale=0.3)
    return y, cache.advanced(q.shape[2])


@pytest.mark.parametrize("dtype", NARROW.values(), ids=NARROW)
@pytest.mark.parametrize("count", [1, 40])
def test_attention_sees_rounded_keys(dtype: DType, count: int) -> None:
    """The bits are those of an f32 cache of keys and values that were rounded before."""
    step = ptir.jit(donate="cache")(attend)
    starts, rng = np.array([0, 9], np.int32), np.random.default_rng(1)
    q = rng.standard_normal((2, 4, 70, 32), np.float32)
    plain = rng.standard_normal((2, 2, 2, 70, 32), np.float32)  # keys and values
    rounded = plain.astype(dtype.numpy).astype(np.float32)
    caches = [KVCache.empty(2, starts, 2, 80, 32, layout) for layout in (CacheLayout(dtype), None)]
    for new in (slice(0, 30), slice(30, 30 + count)):
        found: list[Any] = []
        for i, given in enumerate((plain, rounded)):
            k, v = given[:, :, :, new]
            y, caches[i] = step(caches[i], q[:, :, new], k, v)
            found.append(y.numpy())
        np.testing.assert_array_equal(*found)
    stored = caches[0].keys.numpy()
    assert stored.dtype == dtype.numpy
    np.testing.assert_array_equal(stored[1, :, :, : 30 + count], rounded[0, :, :, : 30 + count])


@pytest.mark.parametrize("count", [1, 7])
def test_no_cache_is_copied_or_widened(narrow: LanguageModel, count: int) -> None:
    module: Any = narrow.module
    sizes = set[int]()
    tokens = np.zeros((1, count), np.int64)
    for capacity in (16, 64):
        cache = module.init_cache(np.zeros(1, np.int32), capacity, narrow.cache_layout)
        call: Any = type(module).__call__
        found = call.explain(module, tokens, cache, logits="last").report
        assert found.copies == ()
        assert found.instructions("reference") == 0
        sizes.add(found.arena_bytes + found.result_bytes)
    assert len(sizes) == 1


def test_rows_of_a_batch_and_alone(narrow: LanguageModel) -> None:
    module, prompts = narrow.generator, [random_tokens(n, seed=n).tolist() for n in (3, 40, 17)]

    def last(rows: list[list[int]]) -> list[Any]:
        longest = max(map(len, rows))
        tokens = np.zeros((len(rows), longest), np.int64)
        for row, ids in zip(tokens, rows, strict=True):
            row[longest - len(ids) :] = ids
        starts = np.array([longest - len(ids) for ids in rows], np.int32)
        cache = module.init_cache(starts, longest + 2)
        found: list[Any] = []
        for part in (tokens, tokens[:, -1:], tokens[:, -1:]):
            logits, cache = module(part, cache, logits="last")
            found.append(np.asarray(logits))
        return found

    together = last(prompts)
    for row, prompt in enumerate(prompts):
        for alone, all_rows in zip(last([prompt]), together, strict=True):
            np.testing.assert_array_equal(alone[0], all_rows[row])


def test_sessions_and_guesses(narrow: LanguageModel, llama: Path) -> None:
    session, prompt = narrow.session(), random_tokens(20, seed=4).tolist()
    for more in ({}, {"prompt_lookup": 3}, {"draft": gptrs.load(llama, kv_cache_dtype="f16")}):
        expected = read(narrow, prompt, max_tokens=30)
        assert read(session, prompt, max_tokens=30, **more) == expected
        prompt = [*prompt, *(each.token for each in expected[:20]), 5, 6]
    assert expected != read(gptrs.load(llama), prompt[:-2], max_tokens=30), "it is rounded"


def test_the_estimate(narrow: LanguageModel, llama: Path) -> None:
    for context, batch in ((20, 3), (600, 1)):
        cache = narrow.generator.init_cache(np.zeros(batch, np.int32), context)
        leaves = (cache.keys, cache.values, cache.length, cache.start)
        size = sum(int(leaf.numpy().nbytes) for leaf in leaves)
        found = gptrs.estimate_memory(narrow, context=context, batch=batch)
        assert found.kv_cache == size
        given: dict[str, Any] = {"context": context, "batch": batch, "kv_cache_dtype": "bf16"}
        assert gptrs.estimate_memory(llama, **given) == found
        assert gptrs.estimate_memory(LLAMA, **given).kv_cache == size
        given["kv_cache_dtype"] = "f32"
        assert gptrs.estimate_memory(narrow, **given).kv_cache == pytest.approx(2 * size, rel=0.01)


def test_advice_where_memory_is_short(llama: Path) -> None:
    asked = gptrs.estimate_memory(llama, kv_cache_dtype="bf16", batch=200).total
    with pytest.raises(ArgumentError, match=r"load it with kv_cache_dtype='bf16', which takes"):
        gptrs.load(llama, memory_limit=asked, batch=200)
    model = gptrs.load(llama, memory_limit=asked, batch=200, kv_cache_dtype=as_dtype("bf16"))
    assert fit(model.memory(), asked, batch=200).fits


def test_what_is_refused(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="kv_cache_dtype is f64, expected one of f32, f16, bf1"):
        gptrs.load(llama, kv_cache_dtype="f64")
    images = {"model_type": "resnet", **RESNET}
    with pytest.raises(ArgumentError, match="kv_cache_dtype is 'bf16', and the model takes images"):
        gptrs.estimate_memory(images, kv_cache_dtype="bf16")
    (tmp_path / "config.json").write_text(json.dumps(images))
    write_random_model(tmp_path / "config.json", tmp_path / "images")
    with pytest.raises(ArgumentError, match="kv_cache_dtype is 'bf16', and the model takes images"):
        gptrs.load(tmp_path / "images", kv_cache_dtype="bf16")


def test_gpt2(tmp_path: Path) -> None:
    place = tiny_gpt2(tmp_path)
    model = gptrs.load(place, kv_cache_dtype="f16")
    assert model.generator.init_cache(np.zeros(1, np.int32), 4).keys.dtype is f16
    text = model.generate("the fox", max_tokens=9)
    assert model.session().generate("the fox", max_tokens=9) == text
