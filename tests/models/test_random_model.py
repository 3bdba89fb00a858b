"""Random weights for a configuration: models that need no download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.errors import ArgumentError, LoadError
from gptrs.loading.random_model import write_random_model
from gptrs.models import MODELS
from tests.support.image_models import MOBILENET_V2, RESNET, images
from tests.support.models import config, random_tokens

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": config(),
    "resnet": {"model_type": "resnet"} | RESNET,
    "mobilenet_v2": {"model_type": "mobilenet_v2"} | MOBILENET_V2,
}
KINDS = sorted(CONFIGS)


def random_model(folder: Path, kind: str, seed: int = 0, /, **fields: Any) -> Path:
    """A directory with random weights; ``fields`` are added to the configuration."""
    folder.mkdir(exist_ok=True)
    file = folder / "given.json"
    file.write_text(json.dumps(CONFIGS[kind] | fields))
    write_random_model(file, folder / "model", seed=seed)
    return folder / "model"


def logits(directory: Path) -> np.ndarray[Any, np.dtype[Any]]:
    model = gptrs.load(directory)
    if model.causal_lm is not None:
        return model.forward(random_tokens(3, 20)).numpy()
    return model.forward(images(3, 64, 64)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_of_order_1_and_depend_on_what_is_given(tmp_path: Path, kind: str) -> None:
    found = logits(random_model(tmp_path, kind))
    assert 0.2 < found.std() < 25
    assert np.ptp(found, axis=0).max() > 0.1


@pytest.mark.slow
def test_a_deep_model_stays_of_order_1(tmp_path: Path) -> None:
    fields = {"depths": [3, 4, 6, 3], "layer_type": "bottleneck", "hidden_sizes": [8, 16, 24, 32]}
    assert 0.2 < logits(random_model(tmp_path, "resnet", **fields)).std() < 25


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    made = [
        random_model(tmp_path / str(number), kind, seed) / "model.safetensors"
        for number, seed in enumerate((3, 3, 4))
    ]
    first, again, other = (file.read_bytes() for file in made)
    assert first == again
    assert first != other


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "f32"),
        ({"torch_dtype": "bfloat16"}, "bf16"),
        ({"dtype": "float16"}, "f16"),
        ({"torch_dtype": "float32"}, "f32"),
        ({"dtype": None}, "f32"),
    ],
    ids=str,
)
def test_the_configuration_says_the_dtype(
    tmp_path: Path, kind: str, fields: dict[str, Any], expected: str
) -> None:
    model = gptrs.load(random_model(tmp_path, kind, **fields))
    assert {str(p.dtype) for p in model.parameters().values()} == {expected}


def test_the_configuration_is_kept_with_all_its_entries(tmp_path: Path) -> None:
    given = random_model(tmp_path, "gpt2", unknown={"a": [1, None]}) / "config.json"
    assert json.loads(given.read_text()) == CONFIGS["gpt2"] | {"unknown": {"a": [1, None]}}


def test_labels_say_how_many_classes_there_are(tmp_path: Path) -> None:
    names = {str(number): f"class {number}" for number in range(5)}
    model = gptrs.load(random_model(tmp_path, "resnet", id2label=names))
    assert model.parameters()["classifier.weight"].shape == (5, 20)


def test_statistics_are_those_of_a_norm(tmp_path: Path) -> None:
    parameters = gptrs.load(random_model(tmp_path, "resnet")).parameters()
    variance = parameters["embedder.normalization.running_var"].numpy()
    assert 0.5 <= variance.min() < variance.max() <= 1.5
    assert np.abs(parameters["embedder.normalization.weight"].numpy() - 1).max() <= 0.4


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"model_type": "unheard_of"}, ", ".join(sorted(MODELS))),
        ({"model_type": None}, "model_type is None"),
        ({"n_head": 5}, "n_head 5"),
        ({"n_layer": "two"}, "n_layer is 'two'"),
    ],
    ids=str,
)
def test_a_wrong_configuration(tmp_path: Path, fields: dict[str, Any], word: str) -> None:
    with pytest.raises(LoadError, match=r"given\.json: ") as caught:
        random_model(tmp_path, "gpt2", **fields)
    assert word in str(caught.value)
    assert not (tmp_path / "model").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file = random_model(tmp_path, "gpt2") / "model.safetensors"
    before = file.read_bytes()
    with pytest.raises(ArgumentError, match="is there already"):
        random_model(tmp_path, "gpt2", 1)
    assert file.read_bytes() == before


def test_a_seed_is_no_negative_number(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="seed is -1"):
        random_model(tmp_path, "gpt2", -1)
