"""Tiny models on torch's CPU device against the native backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.ir.types import Array
from tests.models.test_random_model import CONFIGS, random_model
from tests.support.image_models import images
from tests.support.models import random_tokens

pytest.importorskip("torch")

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 97,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}


def on(backend: str, run: Any) -> Any:
    with ptir.backend(backend):
        return run()


def close(found: Array, expected: Array) -> bool:
    """For logits of order 1 after some layers of f32."""
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["resnet", "mobilenet_v2"])
def test_image_models(kind: str, tmp_path: Path) -> None:
    model = gptrs.load(random_model(tmp_path, kind))
    given = images(2, 48, 35)
    expected, found = (on(name, lambda: model.forward(given).numpy()) for name in ("faer", "torch"))
    assert close(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_language_models(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONFIGS, "llama", LLAMA)
    model = gptrs.load(random_model(tmp_path, kind))
    tokens = random_tokens(2, 9)
    tokens = tokens % 90
    expected, found = (
        on(name, lambda: model.forward(tokens).numpy()) for name in ("faer", "torch")
    )
    assert close(found, expected)
    assert model.causal_lm is not None
    made = [on(name, lambda: decoded(model, tokens)) for name in ("faer", "torch")]
    assert made[0] == made[1]


def decoded(model: Any, tokens: Array) -> list[list[int]]:
    """Greedy tokens after prompts, one by one over a cache that stays where it is."""
    network = model.module
    kept = network.init_cache(np.zeros(len(tokens), np.int32), 24)
    chosen: list[list[int]] = []
    part: Any = tokens
    for _ in range(6):
        logits, kept = network(ptir.tensor(part), kept, logits="last")
        part = np.argmax(logits.numpy().reshape(len(tokens), -1), -1).reshape(-1, 1)
        chosen.append(part.ravel().tolist())
    return chosen
