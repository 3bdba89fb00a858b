"""Log-probabilities are log softmax of the logits; the likeliest tokens come in their order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gptrs.errors import PtirError
from gptrs.text.logprobs import likeliest, token_logprobs


@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_log_softmax_of_torch(scale: float) -> None:
    torch = pytest.importorskip("torch")
    logits = np.random.default_rng(0).normal(scale=scale, size=500).astype(np.float32)
    theirs = torch.log_softmax(torch.from_numpy(logits).double(), -1)
    told = token_logprobs(logits, 17, 6)
    best = torch.topk(theirs, 6)
    assert told.token == 17
    assert told.logprob == pytest.approx(float(theirs[17]), rel=1e-12)
    assert [token for token, _ in told.top] == best.indices.tolist()
    assert [logprob for _, logprob in told.top] == pytest.approx(best.values.tolist(), abs=1e-9)


def test_known_values() -> None:
    logits = np.log(np.array([0.25, 0.125, 0.5, 0.125], np.float32))
    told = token_logprobs(logits, 3, 3)
    assert told.logprob == pytest.approx(math.log(0.125))
    assert [token for token, _ in told.top] == [2, 0, 1]  # 1 and 3 are equals
    assert all(type(token) is int and type(logprob) is float for token, logprob in told.top)


@pytest.mark.parametrize(("count", "told"), [(0, 0), (1, 1), (4, 4), (9, 4)])
def test_how_many(count: int, told: int) -> None:
    logits = np.array([1, 3, 2, -np.inf], np.float32)
    top = token_logprobs(logits, 0, count).top
    assert [token for token, _ in top] == [1, 2, 0, 3][:told]
    assert count < 4 or top[3][1] == -math.inf


def test_the_likeliest_have_probabilities() -> None:
    logits = np.log(np.array([0.25, 0.125, 0.5, 0.125], np.float32))
    found = likeliest(logits, 3)
    assert [choice for choice, _ in found] == [2, 0, 1]
    assert [likely for _, likely in found] == pytest.approx([0.5, 0.25, 0.125])
    assert likeliest(np.array([0, -np.inf], np.float32), 9) == [(0, 1.0), (1, 0.0)]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_no_distribution(wrong: float) -> None:
    logits = np.array([wrong] * 2, np.float32)
    with pytest.raises(PtirError, match=f"the largest logit is {wrong}, expected a finite number"):
        likeliest(logits, 1)
