"""The bundled model: its vocabulary and output, against transformers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.loading.language_model import LanguageModel
from gptrs.models import BUNDLED
from tests.support.lazy_torch import torch, transformers
from training.stories import stories, story, training_vocabulary, words

DIRECTORY = BUNDLED["stories"]
HELD_OUT = [story(seed, "held_out") for seed in range(20)]
BEGINNINGS = [" ".join(text.split()[:12]) for text in HELD_OUT]
GPTRS = Path(sys.executable).with_name("gptrs")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return gptrs.load()


@pytest.fixture(scope="module", params=[0, 0.8], ids=["greedy", "sampled"])
def texts(model: LanguageModel, request: pytest.FixtureRequest) -> list[str]:
    """How the model goes on."""
    return model.generate(BEGINNINGS, max_tokens=60, temperature=request.param, seed=0)


@pytest.mark.slow
def test_generated_words_are_words_of_the_stories(texts: list[str]) -> None:
    # A text that max_tokens ended may end within a word.
    found = [word for text in texts for word in words(text.rpartition(" ")[0])]
    assert len(found) > 20 * len(BEGINNINGS)
    known = sum(word in training_vocabulary() for word in found)
    assert known / len(found) >= 0.95


@pytest.mark.slow
def test_texts_differ(texts: list[str]) -> None:
    assert len(set(texts)) > 15
    distinct = {word for text in texts for word in words(text)}
    assert len(distinct) > 60


def test_a_story_comes_to_its_end(model: LanguageModel) -> None:
    whole = [text + model.generate(text) for text in BEGINNINGS[:3]]
    room = model.module.context_length
    ended = [len(model.tokenizer.encode(text)) < room - 1 for text in whole]
    assert np.mean(ended) > 0.5


@pytest.mark.slow
def test_logits_equal_transformers(model: LanguageModel) -> None:
    torch.set_num_threads(1)
    kind: Any = transformers.GPT2LMHeadModel
    reference = kind.from_pretrained(DIRECTORY, dtype=torch.float32).eval()
    for text in HELD_OUT[:5]:
        tokens = model.tokenizer.encode(text)
        with torch.no_grad():
            expected = reference(torch.as_tensor([tokens])).logits[0].numpy()
        assert expected.std() > 1
        found = model.forward(tokens).numpy()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_greedy_tokens_equal_transformers(model: LanguageModel) -> None:
    kind: Any = transformers.GPT2LMHeadModel
    reference = kind.from_pretrained(DIRECTORY, dtype=torch.float32).eval()
    tokens = model.tokenizer.encode(BEGINNINGS[0])
    expected = reference.generate(
        torch.as_tensor([tokens]), do_sample=False, max_new_tokens=40, pad_token_id=0
    )[0, len(tokens) :].tolist()
    found = list(model.stream_tokens(tokens, max_tokens=40))
    assert found == expected[: len(found)]
    assert len(found) == 40 or model.tokenizer.is_skipped(expected[len(found)])


@pytest.mark.slow
def test_held_out_stories_are_likely(model: LanguageModel) -> None:
    losses: list[float] = []
    for text in HELD_OUT[:5]:
        tokens = model.tokenizer.encode(text)
        logits = model.forward(tokens).numpy()[:-1].astype(np.float64)
        chosen = logits[np.arange(len(tokens) - 1), tokens[1:]]
        losses.extend(np.logaddexp.reduce(logits, axis=-1) - chosen)
    assert np.mean(losses) < 3, "nats a token; a uniform guess has the logarithm of the vocabulary"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *stories(20, "held_out", seed=100),
        "",
        "  two  spaces\n\n",
        "naïve 日本語 👩‍👩‍👧",
        "<|endoftext|>x",
    ],
)
def test_the_tokenizer_equals_transformers(model: LanguageModel, text: str) -> None:
    kind: Any = transformers.PreTrainedTokenizerFast
    reference = kind(tokenizer_file=str(DIRECTORY / "tokenizer.json"))
    ids = model.tokenizer.encode(text)
    assert ids == reference(text)["input_ids"]
    assert model.tokenizer.decode(ids) == reference.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


@pytest.mark.slow
def test_the_default_command_tells_a_story(model: LanguageModel) -> None:
    done = subprocess.run([GPTRS, "generate"], capture_output=True, text=True, check=True)
    assert done.stdout == model.generate("") + "\n"
    assert len(words(done.stdout)) > 20
    assert done.stderr == ""
