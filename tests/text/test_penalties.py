"""Logit biases and penalties against a loop over the tokens, and against transformers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gptrs.text.options import GenerationOptions
from gptrs.text.penalties import Penalties, SeenTokens
from gptrs.text.sampling import Sampler

VOCAB = 40
TOKENS = st.lists(st.integers(0, VOCAB - 1), max_size=30)


def random_logits(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(scale=3, size=VOCAB).astype(np.float32)


def adjusted(
    logits: NDArray[np.float32], prompt: list[int], text: list[int], **options: Any
) -> NDArray[np.float64]:
    seen = SeenTokens(prompt)
    for token in text:
        seen.add(token)
    return Penalties(GenerationOptions(**options)).apply(logits, seen)


def plainly(
    logits: NDArray[np.float32],
    prompt: list[int],
    text: list[int],
    logit_bias: dict[int, float],
    repetition_penalty: float,
    presence_penalty: float,
    frequency_penalty: float,
) -> list[float]:
    made = [float(logit) for logit in logits]
    for token, added in logit_bias.items():
        made[token] += added
    for token in {*prompt, *text}:
        if made[token] > 0:
            made[token] /= repetition_penalty
        else:
            made[token] *= repetition_penalty
    for token, count in Counter(text).items():
        made[token] -= presence_penalty + count * frequency_penalty
    return made


@pytest.mark.slow
@settings(deadline=None)
@given(
    seed=st.integers(0, 1000),
    prompt=TOKENS.filter(bool),
    text=TOKENS,
    bias=st.dictionaries(
        st.integers(0, VOCAB - 1), st.one_of(st.floats(-100, 100), st.just(-math.inf))
    ),
    repetition=st.sampled_from([1.0, 0.5, 1.3]),
    presence=st.sampled_from([0.0, -2.0, 0.7]),
    frequency=st.sampled_from([0.0, -0.3, 1.1]),
)
def test_the_definition(
    seed: int,
    prompt: list[int],
    text: list[int],
    bias: dict[int, float],
    repetition: float,
    presence: float,
    frequency: float,
) -> None:
    logits = random_logits(seed)
    options = {
        "logit_bias": bias,
        "repetition_penalty": repetition,
        "presence_penalty": presence,
        "frequency_penalty": frequency,
    }
    before = logits.copy()
    made = adjusted(logits, prompt, text, **options)
    expected = plainly(logits, prompt, text, bias, repetition, presence, frequency)
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.7, 1.2, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_repetition_penalty_of_transformers(penalty: float, seed: int) -> None:
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    prompt, text = [3, 5, 5, 39], [5, 0, 7, 7]
    logits = random_logits(seed)
    theirs = processors.RepetitionPenaltyLogitsProcessor(penalty)(
        torch.tensor([prompt + text]), torch.from_numpy(logits.copy())[None]
    )
    ours = adjusted(logits, prompt, text, repetition_penalty=penalty)
    np.testing.assert_allclose(ours, theirs[0].numpy(), rtol=1e-6)


@pytest.mark.slow
def test_the_bias_of_transformers_before_its_penalty() -> None:
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    logits, ids = random_logits(0), torch.tensor([[1, 2, 3]])
    bias = {2: -7.5, 3: 12.25, 9: -math.inf}
    scores = torch.from_numpy(logits.copy())[None]
    sequences = {(token,): added for token, added in bias.items()}
    scores = processors.SequenceBiasLogitsProcessor(sequences)(ids, scores)
    scores = processors.RepetitionPenaltyLogitsProcessor(1.5)(ids, scores)
    ours = adjusted(logits, [1, 2, 3], [], logit_bias=bias, repetition_penalty=1.5)
    np.testing.assert_allclose(ours, scores[0].numpy(), rtol=1e-6)


def test_known_values() -> None:
    logits = np.array([1.0, 2.0, -4.0, 0.0, 3.0], np.float32)
    made = adjusted(logits, [0, 2, 3], [2, 4, 4], repetition_penalty=2.0)
    np.testing.assert_array_equal(made, [0.5, 2.0, -8.0, 0.0, 1.5])
    made = adjusted(logits, [0, 2, 3], [2, 4, 4], presence_penalty=0.5, frequency_penalty=0.25)
    np.testing.assert_array_equal(made, [1.0, 2.0, -4.75, 0.0, 2.0])
    made = adjusted(logits, [0], [], logit_bias={1: -math.inf, 3: 2.5})
    np.testing.assert_array_equal(made, [1.0, -math.inf, -4.0, 2.5, 3.0])


def test_extreme_numbers_stay_ordered() -> None:
    logits = np.array([3e38, -3e38, 1.0], np.float32)
    made = adjusted(logits, [1], [], logit_bias={0: -1.7e308}, repetition_penalty=1e300)
    assert made.argmax() == 2
    assert made[1] == -math.inf


def drawn(options: GenerationOptions, prompt: list[int], count: int = 60) -> list[int]:
    sampler = Sampler(options, [prompt])
    return [sampler.sample(random_logits(step), 0) for step in range(count)]


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_options_that_are_off_change_no_bit(temperature: float) -> None:
    off = GenerationOptions(
        temperature=temperature,
        seed=1,
        min_p=0,
        repetition_penalty=1.0,
        presence_penalty=0,
        frequency_penalty=-0.0,
        logit_bias={},
    )
    assert not off.adjusts_logits
    assert drawn(off, [1]) == drawn(GenerationOptions(temperature=temperature, seed=1), [1])
    as_good_as_off = GenerationOptions(temperature=temperature, seed=1, logit_bias={3: 0.0})
    assert as_good_as_off.adjusts_logits
    assert drawn(as_good_as_off, [1]) == drawn(off, [1])


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_a_banned_token_never_occurs(temperature: float) -> None:
    free = drawn(GenerationOptions(temperature=temperature, seed=1), [1])
    banned = dict.fromkeys(free[:10], -math.inf)
    options = GenerationOptions(temperature=temperature, seed=1, logit_bias=banned)
    assert not set(drawn(options, [1])) & set(banned)


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_a_large_bias_all_but_forces_a_token(temperature: float) -> None:
    options = GenerationOptions(temperature=temperature, seed=1, logit_bias={7: 100})
    assert drawn(options, [1]) == [7] * 60


def test_large_penalties_take_every_token_once() -> None:
    for options in (
        GenerationOptions(presence_penalty=1e3),
        GenerationOptions(frequency_penalty=1e3),
    ):
        assert sorted(drawn(options, [1], VOCAB)) == list(range(VOCAB))
    others = drawn(GenerationOptions(logit_bias={3: 1.0}, presence_penalty=1e3), [5], VOCAB)
    assert 5 in others, "the prompt does not count for the presence penalty"
    options = GenerationOptions(repetition_penalty=1e6, logit_bias=dict.fromkeys(range(VOCAB), 50))
    assert 5 not in drawn(options, [5], VOCAB - 1), "it does for the repetition penalty"
