"""Checkpoints with the names and the configuration of gpt.rs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from typer.testing import CliRunner

import gptrs
from gptrs.cli.app import app
from gptrs.errors import LoadError
from gptrs.formats.checkpoint import write_checkpoint
from gptrs.formats.gpt_rs import with_hf_names
from gptrs.formats.in_memory import in_memory_tensor
from gptrs.formats.stored_tensor import StoredTensor
from gptrs.loading.convert import convert
from tests.support.image_models import (
    assert_parity,
    images,
    state,
    with_random_statistics,
)
from tests.support.lazy_torch import torchvision
from tests.support.models import Arrays, config, in_files, random_tokens, tensors, write

CONFIG = {
    "vocab_size": 64,
    "context_length": 48,
    "embed_dim": 24,
    "num_layers": 2,
    "num_heads": 4,
    "mlp_ratio": 3,
    "dropout": 0.1,
}
SETTINGS = config(
    vocab_size=64,
    n_embd=24,
    n_head=4,
    n_layer=2,
    n_inner=72,
    activation_function="gelu",
    layer_norm_epsilon=1e-5,
    tie_word_embeddings=False,
)
# In gpt.rs's words, from ours.
WORDS = (
    ("wte.weight", "tok_embeddings.weight"),
    ("wpe.weight", "pos_embeddings"),
    ("ln_f.weight", "final_ln.gamma"),
    ("ln_f.bias", "final_ln.beta"),
    ("attn.c_attn.weight", "attention.w_qkv"),
    ("attn.c_attn.bias", "attention.b_qkv"),
    ("attn.c_proj.weight", "attention.w_out"),
    ("attn.c_proj.bias", "attention.b_out"),
    ("mlp.c_fc.weight", "feed_forward.w_in"),
    ("mlp.c_fc.bias", "feed_forward.b_in"),
    ("mlp.c_proj.weight", "feed_forward.w_out"),
    ("mlp.c_proj.bias", "feed_forward.b_out"),
    ("ln_1.weight", "ln_1.gamma"),
    ("ln_1.bias", "ln_1.beta"),
    ("ln_2.weight", "ln_2.gamma"),
    ("ln_2.bias", "ln_2.beta"),
)


def in_its_words(arrays: Arrays) -> Arrays:
    found: Arrays = {"lm_head": np.ascontiguousarray(arrays["lm_head.weight"].T)}
    for name, array in arrays.items():
        for ours, theirs in WORDS:
            if name.endswith(ours):
                layer = re.match(r"h\.(\d+)\.", name)
                found[f"blocks.{layer[1]}.{theirs}" if layer else theirs] = array
    assert len(found) == len(arrays)
    return found


def written(path: Path, arrays: Arrays, **fields: Any) -> Path:
    described = {**CONFIG, **fields}
    description = {name: value for name, value in described.items() if value is not None}
    write_checkpoint(path, "gpt", description, in_its_words(arrays))
    return path


def test_it_is_the_model_of_the_same_weights(tmp_path: Path) -> None:
    arrays = tensors(SETTINGS)
    place = written(tmp_path / "model.bin", arrays)
    tokens = random_tokens(2, 12) % 64
    same = gptrs.load(write(tmp_path / "same", SETTINGS, in_files(arrays)))
    found = gptrs.load(place)
    assert found.kind == "gpt2"
    np.testing.assert_array_equal(found.forward(tokens).numpy(), same.forward(tokens).numpy())
    head = found.parameters()["lm_head.weight"]
    np.testing.assert_array_equal(head.numpy(), arrays["lm_head.weight"])


def test_converted_it_is_a_directory_like_others(tmp_path: Path) -> None:
    arrays = tensors(SETTINGS)
    convert(written(tmp_path / "model.bin", arrays), tmp_path / "directory")
    settings = json.loads((tmp_path / "directory" / "config.json").read_text())
    assert settings["model_type"] == "gpt2"
    assert settings["n_inner"] == 72
    tokens = random_tokens(1, 9) % 64
    found = gptrs.load(tmp_path / "directory").forward(tokens).numpy()
    expected = gptrs.load(tmp_path / "model.bin").forward(tokens).numpy()
    np.testing.assert_array_equal(found, expected)


def test_info_shows_what_the_file_says(tmp_path: Path) -> None:
    place = written(tmp_path / "model.bin", tensors(SETTINGS))
    done = CliRunner().invoke(app, ["info", str(place), "--json"])
    report = json.loads(done.stdout)
    assert report["config"] == CONFIG
    shapes = {tensor["name"]: tensor["shape"] for tensor in report["tensors"]}
    assert shapes["lm_head"] == [24, 64]
    assert "blocks.1.attention.w_qkv" in shapes


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("context_length", None, "config.context_length is missing"),
        ("num_heads", "4", "config.num_heads is '4'"),
        ("mlp_ratio", 1.5, "config.mlp_ratio is 1.5"),
        ("vocab_size", True, "config.vocab_size is True"),
        ("num_layers", 0, "config.num_layers is 0"),
    ],
)
def test_what_its_configuration_must_say(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    place = written(tmp_path / "model.bin", tensors(SETTINGS), **{field: value})
    with pytest.raises(LoadError, match=re.escape(said)):
        gptrs.load(place)


def test_a_tensor_that_is_missing(tmp_path: Path) -> None:
    arrays = in_its_words(tensors(SETTINGS))
    del arrays["blocks.1.ln_2.beta"]
    write_checkpoint(tmp_path / "model.bin", "gpt", CONFIG, arrays)
    with pytest.raises(LoadError, match=r"no tensor 'h\.1\.ln_2\.bias' \[24\]"):
        gptrs.load(tmp_path / "model.bin")


def turned(matrix: NDArray[Any]) -> StoredTensor:
    stored = in_memory_tensor(Path("file"), "lm_head", matrix)
    _, (found,) = with_hf_names("gpt", CONFIG, [stored], Path("file"))
    return found


@pytest.mark.slow
@given(data=st.data(), rows=st.integers(0, 5), columns=st.integers(0, 5))
def test_any_part_of_a_matrix_that_lies_the_other_way_round(
    data: st.DataObject, rows: int, columns: int
) -> None:
    matrix = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    stored = turned(matrix)
    assert stored.shape == (columns, rows)
    count = math.prod(stored.shape)
    first = data.draw(st.integers(0, count))
    last = data.draw(st.integers(first, count))
    np.testing.assert_array_equal(stored.part(first, last), matrix.T.reshape(-1)[first:last])
    np.testing.assert_array_equal(stored.read(), matrix.T)
    assert stored.holds(np.ascontiguousarray(matrix.T), 0)


def folded(arrays: Arrays, convolution: str, norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A convolution's taps and bias with the norm that follows it."""
    scale = arrays[f"{norm}.weight"] / np.sqrt(arrays[f"{norm}.running_var"] + np.float32(1e-5))
    weight = arrays[f"{convolution}.weight"] * scale.reshape(-1, 1, 1, 1)
    return weight, arrays[f"{norm}.bias"] - arrays[f"{norm}.running_mean"] * scale


RESNET_NORMS = (
    (r"conv1", "bn1", "conv1"),
    (r"(layer\d\.\d+)\.conv(\d)", r"\1.bn\2", r"\1.conv\2"),
    (r"(layer\d\.\d+)\.downsample\.0", r"\1.downsample.1", r"\1.downsample"),
)


def resnet_in_its_words(arrays: Arrays) -> Arrays:
    found = {name: array for name, array in arrays.items() if name.startswith("fc.")}
    for name in arrays:
        for pattern, norm, theirs in RESNET_NORMS:
            if match := re.fullmatch(pattern + r"\.weight", name):
                convolution, at = name.removesuffix(".weight"), match.expand(theirs)
                pair = folded(arrays, convolution, match.expand(norm))
                found[f"{at}.weight"], found[f"{at}.bias"] = pair
    return found


def mobilenet_in_its_words(arrays: Arrays) -> Arrays:
    pairs = {"stem": ("features.0.0", "features.0.1"), "head": ("features.18.0", "features.18.1")}
    for number in range(17):
        at, part = f"features.{number + 1}.conv", f"blocks.{number}"
        if number:
            pairs[f"{part}.expand"] = f"{at}.0.0", f"{at}.0.1"
            pairs[f"{part}.depthwise"] = f"{at}.1.0", f"{at}.1.1"
            pairs[f"{part}.project"] = f"{at}.2", f"{at}.3"
        else:
            pairs[f"{part}.depthwise"] = f"{at}.0.0", f"{at}.0.1"
            pairs[f"{part}.project"] = f"{at}.1", f"{at}.2"
    found = {f"classifier.{n}": arrays[f"classifier.1.{n}"] for n in ("weight", "bias")}
    for theirs, (convolution, norm) in pairs.items():
        pair = folded(arrays, convolution, norm)
        found[f"{theirs}.weight"], found[f"{theirs}.bias"] = pair
    return found


IMAGE_MODELS: dict[str, tuple[Callable[[], Any], Callable[[Arrays], Arrays]]] = {
    "resnet34": (
        lambda: torchvision.ResNet((1, 2, 1, 1), (8, 12, 16, 20), 8, False),
        resnet_in_its_words,
    ),
    "mobilenet_v2": (lambda: torchvision.MobileNetV2(0.25), mobilenet_in_its_words),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", IMAGE_MODELS)
def test_images_whose_norms_are_folded(tmp_path: Path, kind: str) -> None:
    make, in_words = IMAGE_MODELS[kind]
    model = with_random_statistics(make())
    place = tmp_path / "model.bin"
    write_checkpoint(place, kind, {"num_classes": 7}, in_words(state(model)))
    assert_parity(model, place, images(2, 48, 48))
    convert(place, tmp_path / "directory")
    given = images(1, 48, 48)
    found = gptrs.load(tmp_path / "directory").forward(given).numpy()
    np.testing.assert_array_equal(found, gptrs.load(place).forward(given).numpy())
