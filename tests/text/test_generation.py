"""Generation: batches, end of text, the context limit, errors and events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import events
from gptrs.errors import ArgumentError, PtirError
from gptrs.text.completion import complete, stream_text
from gptrs.text.generation import Decoded, Prefilled, generate_tokens
from gptrs.text.options import GenerationOptions
from tests.support.fake_model import END, TOKENIZER, VOCAB, FakeCache, FakeModel, by_hash, saying


def without_cache(prompt: list[int], count: int) -> list[int]:
    """The most likely tokens after ``prompt``, straight from the rule."""
    row = list(prompt)
    for _ in range(count):
        row.append(int(by_hash(row).argmax()))
    return row[len(prompt) :]


PROMPTS = [[5, 6, 7, 8], [9], [5, 6, 7, 8, 1, 0, 0], [0, 0], [9]]
SAMPLED = {"temperature": 1.3, "top_k": 40, "top_p": 0.95, "seed": 11}


def rows_of(steps: Iterator[list[int | None]]) -> list[list[int | None]]:
    return [list(row) for row in zip(*steps, strict=True)]


def test_greedy_tokens_are_those_without_a_cache() -> None:
    options = GenerationOptions(max_tokens=6)
    rows = rows_of(generate_tokens(FakeModel(), PROMPTS, options, eos=None))
    assert rows == [without_cache(prompt, 6) for prompt in PROMPTS]


@pytest.mark.parametrize("sampling", [{}, SAMPLED])
def test_a_batch_gives_each_row_what_it_gets_alone(sampling: dict[str, Any]) -> None:
    options = GenerationOptions(max_tokens=9, **sampling)
    eos = range(0, VOCAB, 8)
    batch = rows_of(generate_tokens(FakeModel(), PROMPTS, options, eos=eos))
    for prompt, row in zip(PROMPTS, batch, strict=True):
        ((*alone,),) = rows_of(generate_tokens(FakeModel(), [prompt], options, eos=eos)) or [[]]
        assert row[: len(alone)] == alone
        assert set(row[len(alone) :]) <= {None}
    assert batch[1] == batch[4]
    assert None in {token for row in batch for token in row}


def test_the_seed_decides() -> None:
    def tokens(seed: int | None) -> list[list[int | None]]:
        options = GenerationOptions(max_tokens=8, temperature=1, seed=seed)
        return rows_of(generate_tokens(FakeModel(), PROMPTS, options, eos=None))

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)
    assert tokens(None) != tokens(None)


def test_calls_of_the_model() -> None:
    model = FakeModel()
    steps = generate_tokens(model, PROMPTS, GenerationOptions(max_tokens=4), eos=None)
    assert model.calls == []
    assert len(list(steps)) == 4
    assert model.calls == [(5, 7), (5, 1), (5, 1), (5, 1)]
    assert model.capacity == 7 + 4


def test_no_tokens() -> None:
    model = FakeModel()
    options = GenerationOptions(max_tokens=0)
    assert list(generate_tokens(model, PROMPTS, options, eos=None)) == []
    assert list(stream_text(model, TOKENIZER, [1], options, None)) == []
    done = complete(model, TOKENIZER, PROMPTS, options, None)
    assert [(each.text, each.tokens, each.finish_reason) for each in done] == [
        ("", (), "length")
    ] * len(PROMPTS)
    assert model.calls == []


def test_to_the_end_of_the_context() -> None:
    model = FakeModel(context_length=12)
    for options in (GenerationOptions(), GenerationOptions(temperature=1.0, seed=4)):
        steps = list(generate_tokens(model, PROMPTS, options, eos=None))
        for row, prompt in enumerate(PROMPTS):
            alone = [step[0] for step in generate_tokens(model, [prompt], options, eos=None)]
            assert len(alone) == 12 - len(prompt)
            nothing = [None] * (len(steps) - len(alone))
            assert [step[row] for step in steps] == alone + nothing
    assert list(generate_tokens(model, [[1] * 12], GenerationOptions(), eos=None)) == []
    full_and_short = list(generate_tokens(model, [[1] * 12, [2, 3]], GenerationOptions(), eos=None))
    assert len(full_and_short) == 10
    assert all(full is None and short is not None for full, short in full_and_short)


BAD_PROMPTS: list[tuple[Any, str]] = [
    ([], "prompts is empty"),
    ([[1], []], r"prompts\[1\] is empty"),
    ([1, 2], "expected a list of token ids"),
    ("hello", "expected a list of token ids"),
    ([[1.5]], "expected a list of token ids"),
    ([[[1], [2, 3]]], "expected a list of token ids"),
    ([[1], [3, VOCAB]], rf"prompts\[1\] holds the token id {VOCAB}, expected ids from 0 to"),
    ([[-1]], "token id -1"),
]


@pytest.mark.parametrize(("prompts", "problem"), BAD_PROMPTS)
def test_prompts_are_checked_at_the_call(prompts: Any, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem) as raised:
        generate_tokens(FakeModel(), prompts, GenerationOptions(), eos=None)
    assert raised.value.fix


@pytest.mark.parametrize(
    ("length", "max_tokens", "problem", "fix"),
    [
        (10, 3, "10 tokens and max_tokens is 3, ", "ask for max_tokens=2 or less, or shorten the"),
        (10, 30, "10 tokens and max_tokens is 30, ", "ask for max_tokens=2 or less"),
        (12, 1, "12 tokens and max_tokens is 1, ", "shorten the prompt to 11 tokens or less"),
        (13, 0, "13 tokens and max_tokens is 0, ", "shorten the prompt to 12 tokens or less"),
        (13, None, "13 tokens, ", "shorten the prompt to 12 tokens or less"),
    ],
)
def test_the_context_is_checked_at_the_call(
    length: int, max_tokens: int | None, problem: str, fix: str
) -> None:
    options = GenerationOptions(max_tokens=max_tokens)
    model = FakeModel(context_length=12)
    expected = f"the longest prompt has {problem}expected at most 12 in all, the model's context"
    with pytest.raises(ArgumentError, match=expected) as raised:
        stream_text(model, TOKENIZER, [1] * length, options, None)
    assert raised.value.fix.startswith(fix)
    with pytest.raises(ArgumentError, match=expected):
        complete(model, TOKENIZER, [[1], [1] * length], options, None)


def text_of(
    prompts: list[str], options: GenerationOptions, *said: str, eos: int | None = END
) -> tuple[list[str], FakeModel]:
    model = FakeModel(saying(*said))
    ids = [TOKENIZER.encode(prompt) for prompt in prompts]
    texts = [each.text for each in complete(model, TOKENIZER, ids, options, eos)]
    for prompt, text in zip(ids, texts, strict=True):
        pieces = list(stream_text(FakeModel(saying(*said)), TOKENIZER, prompt, options, eos))
        assert "".join(pieces) == text
        assert "" not in pieces
    return texts, model


def test_the_text_ends_at_the_end_of_text_token() -> None:
    texts, model = text_of(["I ", "You"], GenerationOptions(), "I am 日本🙂", "You are")
    assert texts == ["am 日本🙂", " are"]
    assert len(model.calls) == 1 + len("am 日本🙂".encode())


def test_ignore_eos() -> None:
    options = GenerationOptions(max_tokens=5, ignore_eos=True)
    model = FakeModel(saying("ab"))
    (row,) = rows_of(generate_tokens(model, [TOKENIZER.encode("a")], options, eos=END))
    assert row == [*TOKENIZER.encode("b"), END, END, END, END]
    assert text_of(["a"], options, "ab")[0] == ["b"]


@pytest.mark.parametrize("eos", [END, (3, END), frozenset([END]), np.int64(END)])
def test_forms_of_eos(eos: Any) -> None:
    model = FakeModel(saying("ab"))
    (done,) = complete(model, TOKENIZER, [TOKENIZER.encode("a")], GenerationOptions(), eos)
    assert (done.text, done.finish_reason) == ("b", "stop")


def test_rows_end_at_their_own_stop_string() -> None:
    said = ["1: red. STOP blue", "2: green STAND by. STOP", "3: never"]
    options = GenerationOptions(stop="STOP")
    texts, model = text_of(["1:", "2:", "3:"], options, *said)
    assert texts == [" red. ", " green STAND by. ", " never"]
    assert len(model.calls) == len(" green STAND by. STOP")
    assert text_of(["1:"], GenerationOptions(stop=("blue", "d. S")), *said)[0] == [" re"]


def test_the_text_may_end_in_the_middle_of_a_stop_string_or_character() -> None:
    options = GenerationOptions(stop="and so on", max_tokens=7)
    assert text_of([">"], options, "> you and so on")[0] == [" you an"]
    assert text_of([">"], options, "> and\U0001f642")[0] == [" and\ufffd"]


def test_pieces_come_as_soon_as_they_are_certain() -> None:
    model = FakeModel(saying("> é!"))
    pieces = stream_text(model, TOKENIZER, TOKENIZER.encode(">"), GenerationOptions(), END)
    calls = [(piece, len(model.calls)) for piece in pieces]
    assert calls == [(" ", 1), ("é", 3), ("!", 4)]


def test_events() -> None:
    heard: list[object] = []
    with events.listen(heard.append):
        list(generate_tokens(FakeModel(), PROMPTS, GenerationOptions(max_tokens=3), eos=None))
    prefilled, *decoded = heard
    assert isinstance(prefilled, Prefilled)
    assert prefilled.tokens == sum(map(len, PROMPTS))
    assert [event.tokens for event in decoded if isinstance(event, Decoded)] == [len(PROMPTS)] * 2
    assert all(event.seconds > 0 for event in heard if isinstance(event, Prefilled | Decoded))


def test_errors_of_the_model_reach_the_consumer() -> None:
    def broken(row: list[int]) -> NDArray[np.float32]:
        return np.full(VOCAB, np.nan if len(row) > 2 else 0, np.float32)

    steps = generate_tokens(FakeModel(broken), [[1]], GenerationOptions(), eos=None)
    assert [next(steps), next(steps)] == [[0], [0]]
    with pytest.raises(PtirError, match="largest logit is nan"):
        next(steps)


def test_a_model_that_returns_all_logits() -> None:
    class Wordy(FakeModel):
        def __call__(self, tokens: Any, *rest: Any, **options: Any) -> tuple[Any, FakeCache]:
            last, cache = super().__call__(tokens, *rest, **options)
            return np.repeat(last, tokens.shape[1], axis=1), cache

    steps = generate_tokens(Wordy(), PROMPTS, GenerationOptions(), eos=None)
    with pytest.raises(PtirError, match=r"shape \(5, 7, 257\), expected \[5, 1, vocab\]"):
        next(steps)
