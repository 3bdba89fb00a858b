"""Sampling: checks of options, and distributions against transformers' warpers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gptrs.errors import ArgumentError, PtirError
from gptrs.text.options import GenerationOptions
from gptrs.text.sampling import Sampler, probabilities, sample, top_ids

VOCAB = 1000


def random_logits(seed: int, size: int = VOCAB) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(scale=3, size=size).astype(np.float32)


BAD_OPTIONS: list[tuple[str, Any]] = [
    ("max_tokens", -1),
    ("max_tokens", 2.0),
    ("max_tokens", True),
    ("temperature", -0.5),
    ("temperature", math.nan),
    ("temperature", math.inf),
    ("temperature", "hot"),
    ("temperature", None),
    ("top_k", 0),
    ("top_k", 1.5),
    ("top_p", 0.0),
    ("top_p", 1.01),
    ("top_p", math.nan),
    ("top_p", "0.9"),
    ("min_p", -0.1),
    ("min_p", 1.01),
    ("min_p", math.nan),
    ("min_p", True),
    ("repetition_penalty", 0.0),
    ("repetition_penalty", -1.0),
    ("repetition_penalty", math.inf),
    ("repetition_penalty", None),
    ("presence_penalty", math.nan),
    ("presence_penalty", "1"),
    ("frequency_penalty", -math.inf),
    ("frequency_penalty", None),
    ("logit_bias", {-1: 1.0}),
    ("logit_bias", {"5": 1.0}),
    ("logit_bias", {True: 1.0}),
    ("logit_bias", {5: math.inf}),
    ("logit_bias", {5: math.nan}),
    ("logit_bias", {5: "1"}),
    ("logit_bias", [(5, 1.0)]),
    ("logit_bias", None),
    ("logprobs", -1),
    ("logprobs", True),
    ("logprobs", 1.5),
    ("context_shift", 1),
    ("context_shift", None),
    ("seed", -1),
    ("seed", "a"),
    ("stop", ""),
    ("stop", ("a", "")),
    ("stop", b"a"),
    ("stop", (3,)),
    ("stop", None),
    ("ignore_eos", 1),
]


@pytest.mark.parametrize(("option", "value"), BAD_OPTIONS)
def test_an_option_with_a_bad_value(option: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{option} is .*, expected") as raised:
        GenerationOptions(**{option: value})
    assert raised.value.fix


def test_options_that_are_accepted() -> None:
    assert GenerationOptions(stop="end").stop == ("end",)
    assert GenerationOptions(stop=["a", "b"]) == GenerationOptions(stop=("a", "b"))
    GenerationOptions(max_tokens=0, temperature=1, top_k=1, top_p=1, seed=0)
    numpy_scalars: dict[str, Any] = {"top_k": np.int64(3), "temperature": np.float32(0.5)}
    GenerationOptions(**numpy_scalars)
    GenerationOptions(min_p=0, logprobs=0, presence_penalty=-2, frequency_penalty=-2)
    GenerationOptions(min_p=1, repetition_penalty=0.5, context_shift=True)


def test_a_bias_is_copied_and_options_hash() -> None:
    bias: dict[Any, Any] = {np.int64(3): 1, 4: -math.inf}
    options = GenerationOptions(logit_bias=bias)
    bias[3] = math.nan
    assert options.logit_bias == {3: 1.0, 4: -math.inf}
    assert hash(options) == hash(GenerationOptions(logit_bias={4: -math.inf, 3: 1.0}))
    assert options != GenerationOptions()


OPTIONS = [
    GenerationOptions(temperature=1.0),
    GenerationOptions(temperature=0.3),
    GenerationOptions(temperature=2.5, top_k=7),
    GenerationOptions(temperature=1.0, top_k=VOCAB + 1),
    GenerationOptions(temperature=1.0, top_p=0.5),
    GenerationOptions(temperature=0.7, top_p=1e-9),
    GenerationOptions(temperature=1.3, top_p=0.999),
    GenerationOptions(temperature=0.8, top_k=50, top_p=0.9),
    GenerationOptions(temperature=3.0, top_k=400, top_p=0.95),
    GenerationOptions(temperature=1.0, min_p=0.05),
    GenerationOptions(temperature=2.0, min_p=0.0),
    GenerationOptions(temperature=1.5, min_p=1.0),
    GenerationOptions(temperature=2.5, top_k=300, top_p=0.9, min_p=0.02),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_the_distribution_of_transformers(options: GenerationOptions, seed: int) -> None:
    torch = pytest.importorskip("torch")
    warpers = pytest.importorskip("transformers.generation.logits_process")
    logits = random_logits(seed)
    scores = torch.from_numpy(logits)[None]
    scores = warpers.TemperatureLogitsWarper(float(options.temperature))(None, scores)
    if options.top_k is not None:
        scores = warpers.TopKLogitsWarper(options.top_k)(None, scores)
    if options.top_p is not None:
        scores = warpers.TopPLogitsWarper(options.top_p)(None, scores)
    if options.min_p is not None:
        scores = warpers.MinPLogitsWarper(options.min_p)(None, scores)
    theirs = torch.softmax(scores[0].double(), -1).numpy()
    ours = probabilities(logits, options)
    np.testing.assert_array_equal(ours > 0, theirs > 0)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert ours.sum() == pytest.approx(1)


def test_equals_are_kept_from_the_lowest_id() -> None:
    logits = np.array([0, 2, 2, 1, 2, 0], np.float32)
    kept = probabilities(logits, GenerationOptions(temperature=1, top_k=2))
    np.testing.assert_allclose(kept, [0, 0.5, 0.5, 0, 0, 0])
    kept = probabilities(np.zeros(8, np.float32), GenerationOptions(temperature=1, top_p=0.5))
    np.testing.assert_allclose(kept, [0.25] * 4 + [0] * 4)


@pytest.mark.slow
@settings(deadline=None)
@given(
    logits=st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=30),
    min_p=st.floats(0, 1),
    temperature=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_min_p_keeps_what_is_likely_enough(
    logits: list[float], min_p: float, temperature: float
) -> None:
    options = GenerationOptions(temperature=temperature, min_p=min_p)
    kept = probabilities(np.array(logits, np.float32), options)
    weights = [math.exp((logit - max(logits)) / temperature) for logit in logits]
    shares = [weight / max(weights) for weight in weights]
    for chance, share in zip(kept, shares, strict=True):
        if abs(share - min_p) > 1e-12:
            assert (chance > 0) == (share > min_p)
    total = sum(share for chance, share in zip(kept, shares, strict=True) if chance)
    for chance, share in zip(kept, shares, strict=True):
        assert chance == 0 or chance == pytest.approx(share / total)


@pytest.mark.slow
@settings(deadline=None)
@given(values=st.lists(st.integers(-4, 4), min_size=1, max_size=20), k=st.integers(0, 25))
def test_the_largest_values(values: list[int], k: int) -> None:
    found = top_ids(np.array(values, np.float64), k)
    order = sorted(range(len(values)), key=lambda at: (-values[at], at))
    assert sorted(found.tolist()) == sorted(order[:k])


def test_greedy_is_the_first_maximum() -> None:
    logits = np.array([0, 3, 3, -np.inf], np.float32)
    rng = np.random.default_rng(0)
    assert sample(logits, GenerationOptions(), rng) == 1
    assert sample(logits, GenerationOptions(temperature=1, top_k=1), rng) == 1
    np.testing.assert_array_equal(probabilities(logits, GenerationOptions()), [0, 1, 0, 0])


@pytest.mark.parametrize("temperature", [1e-300, 1e-5, 1e5, 1e300])
def test_extreme_temperatures(temperature: float) -> None:
    logits = np.array([1e4, -3e38, 3e38, -np.inf], np.float32)
    chances = probabilities(logits, GenerationOptions(temperature=temperature))
    assert chances.sum() == pytest.approx(1)
    assert chances[3] == 0
    assert chances.argmax() == 2 or chances[2] == pytest.approx(1 / 3)


def test_minus_infinity_is_never_drawn() -> None:
    logits = np.full(50, -np.inf, np.float32)
    logits[[3, 17]] = [1, 1.5]
    rng = np.random.Generator(np.random.Philox(0))
    options = GenerationOptions(temperature=1, top_k=10)
    assert {sample(logits, options, rng) for _ in range(200)} == {3, 17}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "logits", [[0, math.nan, 1], [-math.inf] * 3, [0, math.inf, 1], [], [[0.0, 1.0]]]
)
def test_logits_without_a_distribution(logits: list[float], temperature: float) -> None:
    options = GenerationOptions(temperature=temperature)
    with pytest.raises(PtirError, match="expected"):
        sample(np.array(logits, np.float32), options, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        GenerationOptions(temperature=1.0),
        GenerationOptions(temperature=0.7, top_k=5),
        GenerationOptions(temperature=1.5, top_p=0.8),
    ],
    ids=repr,
)
def test_frequencies_follow_the_probabilities(options: GenerationOptions) -> None:
    logits = random_logits(5, size=12) / 3
    draws = 20_000
    rng = np.random.Generator(np.random.Philox(1))
    counts = np.bincount([sample(logits, options, rng) for _ in range(draws)], minlength=12)
    expected = probabilities(logits, options) * draws
    kept = expected > 0
    assert counts[~kept].sum() == 0
    statistic = float(((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    assert statistic < 40  # 11 degrees of freedom at most: chance of more is below 4e-5


def drawn(sampler: Sampler, row: int) -> list[int]:
    return [sampler.sample(random_logits(step), row) for step in range(20)]


def test_a_row_draws_as_it_would_alone() -> None:
    options = GenerationOptions(temperature=1, seed=3)
    batch = Sampler(options, [[1], [2], [3]])
    alone = drawn(Sampler(options, [[1]]), 0)
    assert [drawn(batch, row) for row in (2, 0, 1)] == [alone] * 3
    assert drawn(Sampler(GenerationOptions(temperature=1, seed=4), [[1]]), 0) != alone


def test_without_a_seed_every_row_differs() -> None:
    sampler = Sampler(GenerationOptions(temperature=1), [[1], [1]])
    assert drawn(sampler, 0) != drawn(sampler, 1)
