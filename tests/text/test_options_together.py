"""All sampling options together, in batches, against a plain loop over one row at a time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gptrs.errors import ArgumentError
from gptrs.text.completion import complete, stream_text
from gptrs.text.generation import generate_logprobs, generate_tokens
from gptrs.text.options import GenerationOptions
from tests.support.fake_model import TOKENIZER, VOCAB, FakeModel, by_hash

CONTEXT = 9


def adjusted(
    row: list[int], prompt: list[int], text: list[int], options: GenerationOptions
) -> list[float]:
    logits = [float(logit) for logit in by_hash(row)]
    for token, added in options.logit_bias.items():
        logits[token] += added
    for token in {*prompt, *text}:
        p = options.repetition_penalty
        logits[token] = logits[token] / p if logits[token] > 0 else logits[token] * p
    for token, count in Counter(text).items():
        logits[token] -= options.presence_penalty + count * options.frequency_penalty
    return logits


def chosen(logits: list[float], options: GenerationOptions, rng: np.random.Generator) -> int:
    best = max(range(VOCAB), key=lambda token: (logits[token], -token))
    if options.temperature == 0:
        return best
    weights = {
        token: math.exp((logit - logits[best]) / options.temperature)
        for token, logit in enumerate(logits)
    }
    kept = sorted(weights, key=lambda token: (-weights[token], token))[: options.top_k]
    if options.top_p is not None:
        total, until, sum_ = sum(weights[token] for token in kept), 0, 0.0
        while sum_ < options.top_p * total and until < len(kept):
            sum_ += weights[kept[until]]
            until += 1
        kept = kept[:until]
    if options.min_p is not None:
        kept = [token for token in kept if weights[token] >= options.min_p]
    drawn = rng.random() * sum(weights[token] for token in kept)
    for token in sorted(kept):
        drawn -= weights[token]
        if drawn < 0:
            return token
    return max(kept)


def one_by_one(prompt: list[int], options: GenerationOptions, ends: set[int]) -> list[int]:
    """The text after ``prompt`` by the definition of each option, without batches or caches."""
    rng = np.random.Generator(np.random.Philox(options.seed))
    row, text = list(prompt), list[int]()
    while options.max_tokens is None or len(text) < options.max_tokens:
        if len(row) == CONTEXT:
            if not options.context_shift:
                break
            row = row[CONTEXT // 2 :]
        token = chosen(adjusted(row, prompt, text, options), options, rng)
        if token in ends and not options.ignore_eos:
            break
        row.append(token)
        text.append(token)
    return text


ids = st.integers(0, VOCAB - 1)
any_options = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(0, 25),
        "temperature": st.sampled_from([0.0, 0.8, 2.0]),
        "seed": st.integers(0, 99),
        "context_shift": st.booleans(),
        "ignore_eos": st.booleans(),
    },
    optional={
        "top_k": st.integers(1, 40),
        "top_p": st.floats(0.1, 1),
        "min_p": st.floats(0, 0.5),
        "repetition_penalty": st.floats(0.5, 2),
        "presence_penalty": st.floats(-2, 2),
        "frequency_penalty": st.floats(-2, 2),
        "logit_bias": st.dictionaries(
            ids, st.one_of(st.floats(-5, 3), st.just(-math.inf)), max_size=6
        ),
    },
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    prompts=st.lists(st.lists(ids, min_size=1, max_size=CONTEXT), min_size=1, max_size=4),
    given_options=any_options,
    ends=st.sets(ids, max_size=25),
)
def test_a_batch_is_each_row_by_the_definition(
    prompts: list[list[int]], given_options: dict[str, Any], ends: set[int]
) -> None:
    options = GenerationOptions(**given_options)
    if not options.context_shift:
        room = CONTEXT - max(map(len, prompts))
        options = replace(options, max_tokens=min(options.max_tokens or 0, room))
    model = FakeModel(context_length=CONTEXT)
    rows = [one_by_one(prompt, options, ends) for prompt in prompts]
    steps = list(generate_tokens(model, prompts, options, eos=ends))
    for row, text in enumerate(rows):
        assert [step[row] for step in steps] == text + [None] * (len(steps) - len(text))
    assert len(steps) == max(map(len, rows))

    asked = replace(options, logprobs=2)
    done = complete(model, TOKENIZER, prompts, asked, ends)
    assert [list(each.tokens) for each in done] == rows
    assert [each.text for each in done] == [TOKENIZER.decode(text) for text in rows]
    told = [step[0] for step in generate_logprobs(model, prompts[:1], asked, eos=ends)]
    assert tuple(told) == done[0].logprobs
    pieces = stream_text(model, TOKENIZER, prompts[0], options, ends)
    assert "".join(pieces) == done[0].text


ALL: dict[str, Any] = {
    "temperature": 1.2,
    "top_k": 60,
    "top_p": 0.97,
    "min_p": 0.02,
    "repetition_penalty": 1.3,
    "presence_penalty": 0.4,
    "frequency_penalty": 0.2,
    "logit_bias": {5: -math.inf, 70: 2.0, 71: 3.5},
    "context_shift": True,
    "seed": 5,
}
PROMPTS = [[1, 2, 3], [4], list(range(CONTEXT)), [70, 71] * 4, [4]]


@pytest.mark.slow
def test_rows_that_end_at_different_times_while_others_shift() -> None:
    options = GenerationOptions(max_tokens=60, logprobs=3, **ALL)
    ends = {100, 101, 102, 103}
    done = complete(FakeModel(context_length=CONTEXT), TOKENIZER, PROMPTS, options, ends)
    for prompt, batched in zip(PROMPTS, done, strict=True):
        (alone,) = complete(FakeModel(context_length=CONTEXT), TOKENIZER, [prompt], options, ends)
        assert batched == alone
        assert list(alone.tokens) == one_by_one(prompt, options, ends)
    assert len({len(each.tokens) for each in done}) > 2
    assert {each.finish_reason for each in done} == {"stop", "length"}
    assert not any(5 in each.tokens for each in done)


@pytest.mark.parametrize("context", [2, 3, 8, 9])
def test_text_goes_on_past_the_context(context: int) -> None:
    model = FakeModel(context_length=context)
    options = GenerationOptions(max_tokens=50, context_shift=True)
    (tokens,) = zip(*generate_tokens(model, [[1, 2]], options, eos=None), strict=True)
    row, text = [1, 2], list[int]()
    while len(text) < 50:
        row = row[context // 2 :] if len(row) == context else row
        row.append(int(by_hash(row).argmax()))
        text.append(row[-1])
    assert list(tokens) == text
    # A prompt of the newer half, as long as the context lasts, and single tokens.
    prefilled = {shape for shape in model.calls[1:] if shape[1] > 1}
    assert prefilled <= {(1, context - context // 2)}


def test_a_shift_without_a_limit_goes_on_until_the_text_ends() -> None:
    def until_forty(row: list[int]) -> Any:
        likely = np.zeros(VOCAB, np.float32)
        likely[row[-1] + 1] = 1
        return likely

    options = GenerationOptions(context_shift=True)
    model = FakeModel(until_forty, CONTEXT)
    (done,) = complete(model, TOKENIZER, [[0]], options, 40)
    assert done.tokens == tuple(range(1, 40))
    assert done.finish_reason == "stop"
    stream = generate_tokens(FakeModel(context_length=CONTEXT), [[0]], options, eos=None)
    assert len([next(stream) for _ in range(10 * CONTEXT)]) == 10 * CONTEXT


def test_a_text_that_nothing_ends() -> None:
    options = GenerationOptions(context_shift=True, ignore_eos=True)
    with pytest.raises(ArgumentError, match="nothing ends the text"):
        complete(FakeModel(), TOKENIZER, [[1]], options, 3)


def test_the_options_that_a_model_refuses() -> None:
    def refused(options: GenerationOptions, said: str, context: int = CONTEXT) -> str:
        model = FakeModel(context_length=context)
        with pytest.raises(ArgumentError, match=said) as raised:
            generate_tokens(model, [[1] * 5], options, eos=None)
        assert not model.calls
        return raised.value.fix

    outside = GenerationOptions(logit_bias={3: 1.0, VOCAB: 1.0})
    refused(outside, f"logit_bias names the token id {VOCAB}, expected ids from 0 to {VOCAB - 1}")
    everything = GenerationOptions(logit_bias=dict.fromkeys(range(VOCAB), -math.inf))
    refused(everything, f"logit_bias bans all {VOCAB} tokens")
    assert "context_shift=True" in refused(GenerationOptions(max_tokens=9), "max_tokens is 9")
    shift = GenerationOptions(context_shift=True, max_tokens=9)
    fix = refused(shift, "the longest prompt has 5 tokens, expected at most 4", context=4)
    assert fix == "shorten the prompt to 4 tokens or less"
    refused(shift, "context_shift is True for a context of 1", context=1)
    assert "generate_logprobs" in refused(GenerationOptions(logprobs=1), "logprobs is 1, and")
    with pytest.raises(ArgumentError, match="logprobs is None"):
        generate_logprobs(FakeModel(), [[1]], GenerationOptions(), eos=None)
    with pytest.raises(ArgumentError, match="stream_text gives text alone"):
        stream_text(FakeModel(), TOKENIZER, [1], GenerationOptions(logprobs=0), None)
