"""Text generation from a model directory, end to end."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.loading.language_model import LanguageModel
from tests.support.models import END, END_ID

PROMPTS = ["once", "the fox", "", "a much longer prompt", "été 😀"]
SAMPLED: dict[str, Any] = {"temperature": 0.9, "top_k": 50, "top_p": 0.9, "seed": 7}
EVERY: dict[str, Any] = {
    **SAMPLED,
    "min_p": 0.01,
    "repetition_penalty": 1.2,
    "presence_penalty": 0.3,
    "frequency_penalty": 0.2,
    "logit_bias": {7: 3.0, 8: -math.inf},
    "context_shift": True,
    "ignore_eos": True,
    "stop": "\0none",
}


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture(params=[False, True], ids=["jit", "eager"])
def any_mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with ptir.eager(request.param):
        yield


def greedy(model: LanguageModel, prompt: str, count: int) -> str:
    """Greedy text by its definition: the likeliest token after all the others, time and again."""
    tokens = model.tokenizer.encode(prompt) or [END_ID]
    began = len(tokens)
    for _ in range(count):
        best = int(model.forward(tokens).numpy()[-1].argmax())
        if best == END_ID:
            break
        tokens.append(best)
    return model.tokenizer.decode(tokens[began:])


@pytest.mark.slow
@pytest.mark.usefixtures("any_mode")
@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_text(model: LanguageModel, prompt: str) -> None:
    text = model.generate(prompt, max_tokens=15)
    assert text == greedy(model, prompt, 15)
    assert len(set(text)) > 3


@pytest.mark.slow
@pytest.mark.usefixtures("any_mode")
@pytest.mark.parametrize("options", [{}, SAMPLED, EVERY], ids=["greedy", "sampled", "every"])
def test_a_batch_gives_what_each_prompt_gives_alone(
    model: LanguageModel, options: dict[str, Any]
) -> None:
    texts = model.generate(PROMPTS, max_tokens=15, **options)
    assert texts == [model.generate(prompt, max_tokens=15, **options) for prompt in PROMPTS]
    assert len(set(texts)) == len(PROMPTS)


@pytest.mark.slow
def test_sampled_text_is_the_same_in_every_mode(model: LanguageModel) -> None:
    traced = model.generate("once", max_tokens=20, **SAMPLED)
    with ptir.eager():
        assert model.generate("once", max_tokens=20, **SAMPLED) == traced


@pytest.mark.slow
def test_every_option_on_every_path(model: LanguageModel) -> None:
    done = model.complete(PROMPTS, max_tokens=70, logprobs=2, **EVERY)
    assert [len(each.tokens) for each in done] == [70] * len(PROMPTS)
    assert {each.finish_reason for each in done} == {"length"}
    assert model.generate(PROMPTS, max_tokens=70, **EVERY) == [each.text for each in done]
    for prompt, each in zip(PROMPTS, done, strict=True):
        assert model.complete(prompt, max_tokens=70, logprobs=2, **EVERY) == each
        assert model.generate(prompt, max_tokens=70, **EVERY) == each.text
        assert "".join(model.stream(prompt, max_tokens=70, **EVERY)) == each.text
        ids = model.tokenizer.encode(prompt) or [END_ID]
        assert tuple(model.stream_tokens(ids, max_tokens=70, **EVERY)) == each.tokens
        told = model.stream_logprobs(ids, max_tokens=70, logprobs=2, **EVERY)
        assert tuple(told) == each.logprobs
        assert 8 not in each.tokens


def test_past_the_context_the_newer_half_is_the_prompt(model: LanguageModel) -> None:
    row = [1, 2, 3]
    text: list[int] = []
    while len(text) < 110:
        room = min(48 - len(row), 110 - len(text))
        more = list(model.stream_tokens(row, max_tokens=room, ignore_eos=True))
        row, text = [*row, *more][24:], [*text, *more]
    shifted = model.stream_tokens([1, 2, 3], max_tokens=110, context_shift=True, ignore_eos=True)
    assert list(shifted) == text
    assert len(set(text)) > 5


def test_logprobs_of_the_model(model: LanguageModel) -> None:
    ids = model.tokenizer.encode("once")
    done = model.complete("once", max_tokens=5, logprobs=3, repetition_penalty=1.5)
    logits = model.forward([*ids, *done.tokens]).numpy().astype(np.float64)[len(ids) - 1 : -1]
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert done.logprobs is not None
    for told, row in zip(done.logprobs, logs, strict=True):
        likeliest = (-row).argsort()[:3]
        assert told.logprob == pytest.approx(row[told.token], abs=1e-5)
        assert [token for token, _ in told.top] == likeliest.tolist()
        assert [logprob for _, logprob in told.top] == pytest.approx(row[likeliest], abs=1e-5)


@pytest.mark.parametrize(
    ("verb", "other"),
    [
        ("generate", "complete"),
        ("stream", "stream_logprobs"),
        ("stream_tokens", "stream_logprobs"),
    ],
)
def test_log_probabilities_are_asked_of_another_verb(
    model: LanguageModel, verb: str, other: str
) -> None:
    with pytest.raises(ArgumentError, match=f"logprobs is 2, and {verb} gives") as raised:
        getattr(model, verb)("once", logprobs=2)
    assert other in raised.value.fix


@pytest.mark.parametrize("options", [{}, SAMPLED, {"stop": "e"}, {"max_tokens": 0}], ids=str)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_streamed_text_is_generated_text(
    model: LanguageModel, prompt: str, options: dict[str, Any]
) -> None:
    options = {"max_tokens": 20, **options}
    pieces = list(model.stream(prompt, **options))
    assert "".join(pieces) == model.generate(prompt, **options)
    assert all(pieces), "no piece is empty"


def test_streamed_tokens_are_the_text(model: LanguageModel) -> None:
    ids = model.tokenizer.encode("once")
    tokens = list(model.stream_tokens(ids, max_tokens=12, **SAMPLED))
    assert all(type(token) is int for token in tokens)
    assert model.tokenizer.decode(tokens) == model.generate("once", max_tokens=12, **SAMPLED)


def test_a_seed_repeats_and_others_differ(model: LanguageModel) -> None:
    def tokens(**seed: int) -> list[int]:
        # All 20: texts that end at once are alike often enough.
        options: Any = {"max_tokens": 20, "ignore_eos": True, "temperature": 1.0, **seed}
        return list(model.complete("once", **options).tokens)

    assert tokens(seed=1) == tokens(seed=1)
    assert tokens(seed=1) != tokens(seed=2)
    assert tokens() != tokens()


def test_sampling_options_count(model: LanguageModel) -> None:
    likeliest = model.generate("once", max_tokens=20)
    assert model.generate("once", max_tokens=20, temperature=1e-6) == likeliest
    assert model.generate("once", max_tokens=20, temperature=9.0, top_k=1) == likeliest
    assert model.generate("once", max_tokens=20, temperature=9.0, top_p=1e-9) == likeliest
    assert model.generate("once", max_tokens=20, temperature=9.0, seed=0) != likeliest


def test_a_stop_string_ends_the_text(model: LanguageModel) -> None:
    text = model.generate("once", max_tokens=20)
    stop = text[6:9]
    cut = text[: text.index(stop)]
    assert model.generate("once", max_tokens=20, stop=stop) == cut
    assert model.generate("once", max_tokens=20, stop=["\0none", stop]) == cut
    ids = model.tokenizer.encode("once")
    tokens = list(model.stream_tokens(ids, max_tokens=20, stop=stop))
    assert model.tokenizer.decode(tokens).startswith(cut + stop)
    assert len(tokens) < 20


def ending_with(directory: Path, copy: Path, file: str, **fields: Any) -> LanguageModel:
    """The model with ``fields`` in one of its JSON files."""
    shutil.copytree(directory, copy)
    given: dict[str, Any] = (
        json.loads((copy / file).read_text()) if file in os.listdir(copy) else {}
    )
    (copy / file).write_text(json.dumps(given | fields))
    return gptrs.load(copy)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("several", [False, True])
def test_end_of_text_ends_the_text(
    model: LanguageModel, good: Path, tmp_path: Path, file: str, several: bool
) -> None:
    ids = model.tokenizer.encode("once")
    tokens = list(model.stream_tokens(ids, max_tokens=20))
    end = tokens[5]
    kept = tokens[: tokens.index(end)]
    given = [end, END_ID] if several else end
    ending = ending_with(good, tmp_path / "copy", file, eos_token_id=given)
    assert list(ending.stream_tokens(ids, max_tokens=20)) == kept
    assert ending.generate("once", max_tokens=20) == model.tokenizer.decode(kept)
    assert list(ending.stream_tokens(ids, max_tokens=20, ignore_eos=True)) == tokens


def test_generation_config_counts_before_config(good: Path, tmp_path: Path) -> None:
    model = ending_with(good, tmp_path / "copy", "generation_config.json", eos_token_id=None)
    tokens = list(model.stream_tokens([1], max_tokens=20))
    other = ending_with(good, tmp_path / "other", "generation_config.json", eos_token_id=tokens[0])
    assert not list(other.stream_tokens([1], max_tokens=20))


def test_an_empty_prompt_begins_with_the_first_token(model: LanguageModel) -> None:
    tokens = list(model.stream_tokens([END_ID], max_tokens=10))
    assert model.generate("", max_tokens=10) == model.tokenizer.decode(tokens)
    assert model.generate(END, max_tokens=10) == model.generate("", max_tokens=10)


@pytest.mark.parametrize("bos", [None, 50256])
def test_an_empty_prompt_needs_a_first_token(good: Path, tmp_path: Path, bos: int | None) -> None:
    model = ending_with(good, tmp_path / "copy", "config.json", bos_token_id=bos)
    assert model.generate("once", max_tokens=1)
    with pytest.raises(ArgumentError, match=f"prompt is empty.*bos_token_id is {bos}"):
        model.generate("", max_tokens=1)


def test_text_goes_on_to_the_end_of_the_context(model: LanguageModel) -> None:
    tokens = list(model.stream_tokens([1, 2, 3], ignore_eos=True))
    assert len(tokens) == 48 - 3
    assert list(model.stream_tokens([1, 2, 3], ignore_eos=True, max_tokens=45)) == tokens
    assert not list(model.stream_tokens([1] * 48))


def test_past_the_context_is_an_error_before_the_first_token(model: LanguageModel) -> None:
    with pytest.raises(ArgumentError, match=r"46, expected at most 48(.|\n)*max_tokens=45 or less"):
        model.stream_tokens([1, 2, 3], max_tokens=46)
    for call in (model.stream, model.generate):
        with pytest.raises(ArgumentError, match="expected at most 48"):
            call("once", max_tokens=48)
        with pytest.raises(ArgumentError, match="expected at most 48"):
            call("x" * 60)
    with pytest.raises(ArgumentError, match="expected at most 48"):
        model.generate(["once", "x" * 40], max_tokens=20)


@pytest.mark.parametrize(
    ("prompt", "options", "said"),
    [
        ("once", {"max_new_tokens": 3}, r"'max_new_tokens'(.|\n)*max_tokens"),
        ("once", {"temperature": -1}, "temperature is -1"),
        ("once", {"top_p": 0}, "top_p is 0"),
        ("once", {"logit_bias": {END_ID + 1: 1}}, f"token id {END_ID + 1}, expected ids from 0"),
        (b"once", {}, "prompt is a bytes, expected a string"),
        (None, {}, "prompt is a NoneType, expected a string"),
        (["once", 3], {}, "prompt is a int, expected a string"),
        ([], {}, "prompts is empty"),
        ("\ud800", {}, "lone surrogate"),
    ],
)
def test_wrong_arguments(
    model: LanguageModel, prompt: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        model.generate(prompt, **options)


def test_one_program_serves_all_prompts(model: LanguageModel) -> None:
    model.generate("once", max_tokens=3)
    call: Any = type(model.module).__call__
    before = call.cache_info().misses
    model.generate(["a longer prompt", "another"], max_tokens=5)
    model.generate("x", max_tokens=9)
    assert call.cache_info().misses == before
