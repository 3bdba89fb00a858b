"""Completions: tokens, text, finish reason, and log-probabilities."""

from __future__ import annotations

import pytest

from gptrs.text.completion import complete
from gptrs.text.generation import generate_tokens
from gptrs.text.logprobs import token_logprobs
from gptrs.text.options import GenerationOptions
from tests.support.fake_model import END, TOKENIZER, FakeModel, by_hash, saying


@pytest.mark.parametrize(
    ("options", "text", "tokens", "reason"),
    [
        (GenerationOptions(), "b, c.", "b, c.", "stop"),
        (GenerationOptions(max_tokens=3), "b, ", "b, ", "length"),
        (GenerationOptions(max_tokens=5), "b, c.", "b, c.", "length"),
        (GenerationOptions(max_tokens=6), "b, c.", "b, c.", "stop"),
        (GenerationOptions(max_tokens=0), "", "", "length"),
        (GenerationOptions(stop=", c"), "b", "b, c", "stop"),
        (GenerationOptions(stop=", c", max_tokens=4), "b", "b, c", "stop"),
        (GenerationOptions(stop=", c", max_tokens=3), "b, ", "b, ", "length"),
        (GenerationOptions(stop=["c.!", ","]), "b", "b,", "stop"),
    ],
    ids=repr,
)
def test_why_a_text_ends(options: GenerationOptions, text: str, tokens: str, reason: str) -> None:
    prompt = TOKENIZER.encode("a")
    (done,) = complete(FakeModel(saying("ab, c.")), TOKENIZER, [prompt], options, END)
    assert (done.text, done.finish_reason) == (text, reason)
    assert done.tokens == tuple(TOKENIZER.encode(tokens))
    assert done.logprobs is None


def test_the_end_of_the_context_is_a_length() -> None:
    (done,) = complete(FakeModel(context_length=8), TOKENIZER, [[1, 2]], GenerationOptions(), None)
    assert (len(done.tokens), done.finish_reason) == (6, "length")


def test_a_text_that_ends_at_once_stops() -> None:
    done = complete(FakeModel(saying("a")), TOKENIZER, [[END]], GenerationOptions(), END)
    assert [(each.text, each.tokens, each.finish_reason) for each in done] == [("", (), "stop")]


def test_a_row_that_met_its_stop_string_waits_for_no_other() -> None:
    said = ["1: red. STOP and much more", "2: blue"]
    prompts = [TOKENIZER.encode(text[:2]) for text in said]
    model = FakeModel(saying(*said))
    first, second = complete(model, TOKENIZER, prompts, GenerationOptions(stop="STOP"), END)
    assert TOKENIZER.decode(first.tokens) == " red. STOP"
    assert second.text == " blue"
    assert len(model.calls) == len(" red. STOP")


@pytest.mark.parametrize("sampled", [False, True])
def test_logprobs_are_those_of_the_model(sampled: bool) -> None:
    options = GenerationOptions(
        max_tokens=6,
        logprobs=4,
        temperature=2.0 if sampled else 0.0,
        top_k=9,
        seed=3,
        repetition_penalty=3.0,
        logit_bias={8: 2.0},
    )
    prompts = [[1, 2], [3]]
    done = complete(FakeModel(), TOKENIZER, prompts, options, None)
    for prompt, each in zip(prompts, done, strict=True):
        assert each.logprobs is not None
        row = list(prompt)
        for token, told in zip(each.tokens, each.logprobs, strict=True):
            assert told == token_logprobs(by_hash(row), token, 4)
            row.append(token)
        assert len(each.logprobs) == 6


def test_a_greedy_token_without_penalties_is_the_likeliest() -> None:
    options = GenerationOptions(max_tokens=9, logprobs=1)
    (done,) = complete(FakeModel(), TOKENIZER, [[1]], options, None)
    assert done.logprobs is not None
    assert all(told.top == ((told.token, told.logprob),) for told in done.logprobs)
    tokens = generate_tokens(FakeModel(), [[1]], GenerationOptions(max_tokens=9), eos=None)
    assert tuple(token for (token,) in tokens) == done.tokens


def test_logprobs_end_with_the_tokens() -> None:
    options = GenerationOptions(stop="re", logprobs=0)
    prompt = TOKENIZER.encode("1:")
    (done,) = complete(FakeModel(saying("1: red")), TOKENIZER, [prompt], options, END)
    assert done.logprobs is not None
    assert tuple(told.token for told in done.logprobs) == done.tokens
    assert TOKENIZER.decode(done.tokens) == " re"
    assert {told.top for told in done.logprobs} == {()}
