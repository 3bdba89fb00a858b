"""Speculative decoding: the tokens are those without guesses, in fewer calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gptrs
from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.text.generation import Decoded, generate_logprobs, generate_tokens
from gptrs.text.options import GenerationOptions
from gptrs.text.speculation import NO_GUESS, PromptLookup, followers
from tests.support.fake_model import VOCAB, FakeModel, by_hash

PROMPTS = [[5, 6, 7, 8], [9], [5, 6, 7, 8, 1, 0, 0], [0, 0], [9]]
SAMPLED = {"temperature": 1.3, "top_k": 40, "top_p": 0.95, "seed": 11}
PENALISED = {"temperature": 0.7, "seed": 2, "repetition_penalty": 1.3, "presence_penalty": 0.2}
CYCLE = 5


def repeating(row: list[int]) -> NDArray[np.float32]:
    """Logits of a text that repeats its first five tokens, but for every 13th."""
    logits = by_hash(row)
    if len(row) % 13:
        logits[row[len(row) % CYCLE] if len(row) >= CYCLE else 0] += 9
    return logits


def rows_of(steps: Iterator[list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*steps, strict=True)]


@pytest.mark.parametrize("lookup", [1, 4, 50])
@pytest.mark.parametrize("rule", [by_hash, repeating])
@pytest.mark.parametrize("more", [{}, SAMPLED, PENALISED])
def test_tokens_are_those_without_guesses(lookup: int, rule: Any, more: dict[str, Any]) -> None:
    plain = GenerationOptions(max_tokens=40, **more)
    guessed = GenerationOptions(max_tokens=40, prompt_lookup=lookup, **more)
    eos = range(3, VOCAB, 50)
    for prompts in ([PROMPTS[0]], PROMPTS):
        expected = rows_of(generate_tokens(FakeModel(rule), prompts, plain, eos=eos))
        assert rows_of(generate_tokens(FakeModel(rule), prompts, guessed, eos=eos)) == expected


def test_fewer_calls_where_text_repeats_itself() -> None:
    model = FakeModel(repeating)
    options = GenerationOptions(max_tokens=40, prompt_lookup=6)
    assert len(rows_of(generate_tokens(model, [[1, 2, 3, 4, 5]], options, eos=None))[0]) == 40
    assert len(model.calls) < 16
    assert max(width for _, width in model.calls) == 7


def test_probabilities_are_those_without_guesses() -> None:
    plain = GenerationOptions(max_tokens=20, logprobs=2)
    guessed = GenerationOptions(max_tokens=20, logprobs=2, prompt_lookup=4)
    expected = rows_of(generate_logprobs(FakeModel(repeating), PROMPTS, plain, eos=None))
    assert rows_of(generate_logprobs(FakeModel(repeating), PROMPTS, guessed, eos=None)) == expected


def test_every_token_is_an_event() -> None:
    seen: list[Decoded] = []

    def hear(event: object) -> None:
        if isinstance(event, Decoded):
            seen.append(event)

    with events.listen(hear):
        options = GenerationOptions(max_tokens=30, prompt_lookup=4)
        rows_of(generate_tokens(FakeModel(repeating), [[1, 2, 3, 4, 5]], options, eos=None))
    assert sum(event.tokens for event in seen) == 29
    assert any(event.seconds == 0 for event in seen)


@pytest.mark.parametrize("more", [{}, {"temperature": 0.9, "seed": 5}])
def test_the_bundled_model(more: dict[str, Any]) -> None:
    model = gptrs.load()
    prompts = ["Once upon a time, Tom had a cat. The cat", "Tom said hello. Lily said"]
    for prompt in (prompts[0], prompts):
        expected = model.complete(prompt, max_tokens=60, logprobs=0, **more)
        assert (
            model.complete(prompt, max_tokens=60, logprobs=0, prompt_lookup=5, **more) == expected
        )


@pytest.mark.parametrize("rule", [by_hash, repeating])
@pytest.mark.parametrize("more", [{}, SAMPLED])
@pytest.mark.parametrize("draft", [by_hash, repeating])
def test_guesses_of_a_draft(rule: Any, draft: Any, more: dict[str, Any]) -> None:
    plain = GenerationOptions(max_tokens=40, **more)
    eos = range(3, VOCAB, 50)
    for prompts in ([PROMPTS[0]], PROMPTS):
        expected = rows_of(generate_tokens(FakeModel(rule), prompts, plain, eos=eos))
        small = FakeModel(draft, context_length=64)
        guessed = GenerationOptions(max_tokens=40, draft=small, draft_tokens=3, **more)
        model = FakeModel(rule)
        assert rows_of(generate_tokens(model, prompts, guessed, eos=eos)) == expected
        if rule is draft and not more:  # right until a row ends, or the context
            assert len(model.calls) <= 3 + len(expected[0]) // 3


def test_a_draft_with_a_shorter_context() -> None:
    expected = rows_of(
        generate_tokens(FakeModel(), PROMPTS, GenerationOptions(max_tokens=30), eos=None)
    )
    small = FakeModel(context_length=12)
    options = GenerationOptions(max_tokens=30, draft=small)
    assert rows_of(generate_tokens(FakeModel(), PROMPTS, options, eos=None)) == expected
    assert small.calls


def test_the_bundled_model_as_its_own_draft() -> None:
    model = gptrs.load()
    prompts = ["Once upon a time, Tom", "Lily said"]
    expected = model.complete(prompts, max_tokens=30, temperature=0.8, seed=3)
    found = model.complete(prompts, max_tokens=30, temperature=0.8, seed=3, draft=model)
    assert found == expected


def test_unsuitable_drafts() -> None:
    model = gptrs.load()
    with pytest.raises(ArgumentError, match="option draft is a str, expected a language model"):
        model.generate("a", max_tokens=3, draft="stories")
    small = FakeModel()
    with pytest.raises(ArgumentError, match="a vocabulary of 257 tokens, expected the 1024 of"):
        model.generate("a", max_tokens=3, draft=small)
    with pytest.raises(ArgumentError, match="both guess tokens"):
        GenerationOptions(draft=small, prompt_lookup=3)


def test_in_a_session() -> None:
    model = gptrs.load()
    session = model.session()
    text = "Once upon a time, Tom had a cat."
    for _ in range(3):
        expected = model.generate(text, max_tokens=25)
        assert session.generate(text, max_tokens=25, prompt_lookup=4) == expected
        text += expected + " Tom said"


@pytest.mark.parametrize(
    ("text", "most", "found"),
    [
        ([1, 2, 3, 4, 1, 2, 3], 9, [4, 1, 2, 3]),
        ([1, 2, 3, 4, 1, 2, 3], 2, [4, 1]),
        ([7, 1, 2, 8, 1, 2], 1, [8]),
        ([5, 9, 5, 8, 5], 3, [8, 5]),
        ([4, 4, 4], 5, [4]),
        ([1, 2, 3], 5, []),
        ([1], 5, []),
        ([1, 1], 0, []),
    ],
)
def test_followers(text: list[int], most: int, found: list[int]) -> None:
    assert followers(np.array(text), most) == found


def test_guesses_of_several_rows() -> None:
    found = PromptLookup(3).guesses([[1, 2, 1], None, [5, 6, 7, 5], [1, 2]], 9)
    rest = [NO_GUESS] * 3
    assert found.tolist() == [[2, 1, NO_GUESS], rest, [6, 7, 5], rest]


def test_guesses_of_a_text_that_grows() -> None:
    rng = np.random.default_rng(0)
    text, lookup = rng.integers(0, 4, 3).tolist(), PromptLookup(4)
    for _ in range(60):
        found = lookup.guesses([text], 4)[0].tolist()
        assert found == PromptLookup(4).guesses([text], 4)[0].tolist()
        text += rng.integers(0, 4, rng.integers(1, 6)).tolist()


def test_a_cache_that_cannot_be_cut() -> None:
    class Stubborn(FakeModel):
        def init_cache(self, starts: Any, capacity: int) -> Any:
            return super().init_cache(starts, capacity).columns

    options = GenerationOptions(max_tokens=40, prompt_lookup=4)
    with pytest.raises(ArgumentError, match="prompt_lookup needs a cache that can be cut"):
        list(generate_tokens(Stubborn(), [[1, 1, 1, 1]], options, eos=None))
