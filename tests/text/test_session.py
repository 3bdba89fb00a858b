"""Texts one after the other with one cache: the same results, and only new tokens are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.errors import ArgumentError
from gptrs.loading.language_model import LanguageModel
from gptrs.text.generation import generate_tokens
from gptrs.text.options import GenerationOptions
from gptrs.text.session import PrefixCache, PrefixReused
from tests.support.fake_model import FakeModel
from tests.support.models import END_ID, random_tokens, tiny_gpt2

OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {"ignore_eos": True},
    "sampled": {"temperature": 0.9, "top_k": 40, "seed": 3, "ignore_eos": True},
    "penalised": {"repetition_penalty": 1.3, "ignore_eos": True},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return gptrs.load(tiny_gpt2(tmp_path_factory.mktemp("session"), n_positions=700))


def read_and_reused(model: LanguageModel, prompt: list[int], **options: Any) -> tuple[Any, int]:
    heard: list[object] = []
    with events.listen(heard.append):
        text = list(model.stream_logprobs(prompt, logprobs=3, **options))
    return text, sum(event.tokens for event in heard if isinstance(event, PrefixReused))


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_bits_are_the_same(model: LanguageModel, options: dict[str, Any]) -> None:
    """Turns that go on, that leave the end out, that begin anew, and that outgrow the cache."""
    session = model.session()
    prompt: list[int] = random_tokens(40, seed=1).tolist()
    other: list[int] = random_tokens(31, seed=2).tolist()
    known = 0
    for new, left_out in [(20, 0), (12, 0), (9, 7), (250, 0), (5, 300), (30, 0)]:
        text, reused = read_and_reused(session, prompt, max_tokens=new, **options)
        expected, _ = read_and_reused(model, prompt, max_tokens=new, **options)
        assert text == expected, "log-probabilities too"
        assert len(session.tokens) == len(prompt) + new - 1
        assert reused == known
        whole = [*prompt, *(each.token for each in text)]
        known = min(len(whole) - left_out, len(session.tokens))
        prompt = [*whole[: len(whole) - left_out], END_ID, *other[: new % 30]]
    text, reused = read_and_reused(session, other, max_tokens=4, **options)
    assert (text, reused) == (read_and_reused(model, other, max_tokens=4, **options)[0], 0)


def test_only_what_is_new_is_read(model: LanguageModel) -> None:
    session = model.session()
    prompt = random_tokens(30).tolist()
    said = list(session.stream_tokens(prompt, max_tokens=5, ignore_eos=True))
    longer = [*prompt, *said, 1, 2]
    assert read_and_reused(session, longer, max_tokens=1)[1] == 34, "all that the model has read"
    assert read_and_reused(session, longer, max_tokens=1)[1] == 36, "all but the last"
    assert read_and_reused(session, longer[:10], max_tokens=1)[1] == 9
    session.clear()
    assert session.tokens == ()
    assert read_and_reused(session, longer, max_tokens=1)[1] == 0


def test_text_of_other_methods(model: LanguageModel) -> None:
    session = model.session().session()
    for text in ("once upon", "once upon a time", "the fox"):
        assert session.generate(text, max_tokens=9) == model.generate(text, max_tokens=9)
    texts = ["once", "the fox"]
    assert session.generate(texts, max_tokens=9) == model.generate(texts, max_tokens=9)
    assert (session.forward([[1, 2]]).numpy() == model.forward([[1, 2]]).numpy()).all()
    assert session.parameters().keys() == model.parameters().keys()


def test_a_shift_of_the_context(tmp_path: Path) -> None:
    short = gptrs.load(tiny_gpt2(tmp_path))
    session, prompt = short.session(), [1, 2, 3]
    options = {"max_tokens": 110, "context_shift": True, "ignore_eos": True}
    for _ in range(2):
        assert list(session.stream_tokens(prompt, **options)) == list(
            short.stream_tokens(prompt, **options)
        )


def test_a_text_that_was_left_goes_on_in_the_next(model: LanguageModel) -> None:
    session = model.session()
    stream = session.stream_tokens([1, 2, 3], max_tokens=20, ignore_eos=True)
    said = [next(stream), next(stream)]
    prompt = [1, 2, 3, *said, 7]
    assert read_and_reused(session, prompt, max_tokens=3)[1] == 4
    with pytest.raises(ArgumentError, match="another text was begun in this session"):
        next(stream)


def test_an_interrupt_leaves_an_empty_cache(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = model.session()
    expected = list(session.stream_tokens([1, 2, 3], max_tokens=4))

    class Interrupting:
        def __call__(self, *args: Any, **options: Any) -> Any:
            raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(model.module, name)

    with monkeypatch.context() as patch:
        prefix: Any = vars(session)["_prefix"]
        patch.setattr(prefix, "model", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            list(session.stream_tokens([1, 2, 3], max_tokens=4))
    assert session.tokens == ()
    assert list(session.stream_tokens([1, 2, 3], max_tokens=4)) == expected


def test_another_kind_of_cache_is_read_whole() -> None:
    options = GenerationOptions(max_tokens=5)
    plain, kept = FakeModel(), FakeModel()
    prefix = PrefixCache(kept)
    for prompts in ([[1, 2, 3]], [[1, 2, 3, 4]], [[5], [6, 7]]):
        expected = list(generate_tokens(plain, prompts, options, eos=None))
        assert list(generate_tokens(prefix, prompts, options, eos=None)) == expected
    assert kept.calls == plain.calls
    assert prefix.reused == 0


def test_all_logits_are_of_all_tokens(model: LanguageModel) -> None:
    prefix = PrefixCache(model.module)
    tokens = np.array([[1, 2, 3, 4]])
    for _ in range(2):
        logits, _ = prefix(tokens, prefix.init_cache(np.zeros(1, np.int32), 9))
        assert logits.shape[1] == 4
