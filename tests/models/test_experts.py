"""Mixtures of experts: layouts of files, what is written back, routing, and wrong models.

tests/parity/test_decoder.py compares the families with transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from gptrs.models.families import Mixtral, Qwen3Moe
from tests.support.experts import CONFIGS, MIXTRAL, QWEN, one_by_one, stacked, tensors

IDS = np.random.default_rng(0).integers(1, 40, (3, 11))


@pytest.mark.parametrize("kind", CONFIGS)
def test_both_layouts_give_the_same_bits(tmp_path: Path, kind: str) -> None:
    config = CONFIGS[kind]
    whole = stacked(tmp_path, config)
    parts = one_by_one(whole, kind)
    assert len(parts) > len(whole)
    first = gptrs.from_torch(whole, config=config)
    expected = first.forward(IDS).numpy()
    assert np.isfinite(expected).all()
    for state, name in ((whole, "whole"), (parts, "parts")):
        model = gptrs.from_torch(state, config=config)
        assert list(model.parameters()) == list(first.parameters())
        np.testing.assert_array_equal(model.forward(IDS).numpy(), expected)
        gptrs.export(model, tmp_path / name)
        loaded = gptrs.load(tmp_path / name)
        np.testing.assert_array_equal(loaded.forward(IDS).numpy(), expected)
        written = tensors(tmp_path / name / "model.safetensors")
        assert written.keys() == state.keys()
        for key, array in state.items():
            np.testing.assert_array_equal(written[key], array)


def test_a_checkpoint_keeps_the_layout(tmp_path: Path) -> None:
    state = one_by_one(stacked(tmp_path, QWEN), "qwen3_moe")
    done = gptrs.export(state, tmp_path / "half.gchk", config=QWEN, dtype="bf16")
    assert done.count == len(state)
    model = gptrs.load(tmp_path / "half.gchk")
    assert {str(parameter.dtype) for parameter in model.parameters().values()} == {"bf16"}
    assert np.isfinite(model.forward(IDS).numpy()).all()


def test_replaced_experts_are_written_in_parts(tmp_path: Path) -> None:
    state = one_by_one(stacked(tmp_path, MIXTRAL), "mixtral")
    model = gptrs.from_torch(state, config=MIXTRAL)
    weights = model.parameters()
    for name in ("gate_up_proj", "down_proj"):
        old = weights[f"layers.1.mlp.experts.{name}"]
        weights[old.name] = np.arange(old.size, dtype=np.float32).reshape(old.shape)
    gptrs.export(model, tmp_path / "changed")
    written = tensors(tmp_path / "changed" / "model.safetensors")
    at = "model.layers.1.block_sparse_moe.experts"
    down, both = 16 * 12, 24 * 16  # elements of an expert
    expected = 2 * both + 12 * 16 + np.arange(12 * 16, dtype=np.float32).reshape(12, 16)
    np.testing.assert_array_equal(written[f"{at}.2.w3.weight"], expected)
    expected = 3 * down + np.arange(down, dtype=np.float32).reshape(16, 12)
    np.testing.assert_array_equal(written[f"{at}.3.w2.weight"], expected)
    again = gptrs.load(tmp_path / "changed").parameters()
    for name, parameter in weights.items():
        np.testing.assert_array_equal(again[name].numpy(), parameter.numpy())


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_row_does_not_depend_on_the_others(tmp_path: Path, kind: str) -> None:
    """In a batch as alone, token by token as all at once."""
    model = gptrs.from_torch(stacked(tmp_path, CONFIGS[kind]), config=CONFIGS[kind])
    together = model.forward(IDS).numpy()
    for row, ids in enumerate(IDS):
        np.testing.assert_array_equal(model.forward(ids[None]).numpy()[0], together[row])
    cache = model.module.init_cache(np.zeros(3, np.int32), 16)
    for column in range(IDS.shape[1]):
        logits, cache = model.module(IDS[:, column : column + 1], cache)
        np.testing.assert_array_equal(np.asarray(logits)[:, 0], together[:, column])


def test_equally_likely_experts_are_taken_in_their_order(tmp_path: Path) -> None:
    """A router of zeros gives all experts the same weight: the first two are chosen."""
    state = stacked(tmp_path, MIXTRAL)
    for layer in range(2):
        state[f"model.layers.{layer}.mlp.gate.weight"][:] = 0
    expected = gptrs.from_torch(state, config=MIXTRAL).forward(IDS).numpy()
    for layer in range(2):
        state[f"model.layers.{layer}.mlp.experts.down_proj"][2:] = np.nan
    found = gptrs.from_torch(state, config=MIXTRAL).forward(IDS).numpy()
    np.testing.assert_array_equal(found, expected)


def test_layers_with_experts() -> None:
    read = Qwen3Moe.read_config
    fields = {**QWEN, "num_hidden_layers": 7, "mlp_only_layers": [3, 5]}
    assert read(fields, Path()).sparse_layers == (0, 1, 2, 4, 6)
    assert read({**fields, "decoder_sparse_step": 2}, Path()).sparse_layers == (1,)
    assert read({**fields, "num_experts": 0}, Path()).sparse_layers == ()
    assert Mixtral.read_config(MIXTRAL, Path()).sparse_layers == (0, 1)


AT = "model.layers.0.block_sparse_moe.experts"
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "both layouts": (
        {"model.layers.0.mlp.experts.down_proj": np.zeros((4, 16, 12), np.float32)},
        f"{AT}.0.w2.weight' is a part of tensor 'layers.0.mlp.experts.down_proj', which <state"
        " dict> holds as a whole, too",
    ),
    "an expert is missing": (
        {f"{AT}.3.w1.weight": None},
        "no tensor 'layers.0.mlp.experts.3.gate_proj.weight': 7 of the 8 parts of",
    ),
    "an expert too many": (
        {f"{AT}.4.w1.weight": np.zeros((12, 16), np.float32)},
        f"the model has no place for tensor '{AT}.4.w1.weight'",
    ),
    "an expert of another shape": (
        {f"{AT}.1.w3.weight": np.zeros((13, 16), np.float32)},
        f"'{AT}.1.w3.weight' is f32[13,16], and '{AT}.0.w1.weight' is f32[12,16], expected",
    ),
    "an expert of another dtype": (
        {f"{AT}.1.w2.weight": np.zeros((16, 12), np.float16)},
        "expected matrices of one shape and dtype",
    ),
    "all experts of another shape": (
        {f"{AT}.{n}.w2.weight": np.zeros((16, 10), np.float32) for n in range(4)},
        f"'{AT}.0.w2.weight and 3 more' has shape [4,16,10], expected [4,16,12] by",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_files_that_do_not_fit(tmp_path: Path, name: str) -> None:
    changes, words = UNFIT[name]
    state: dict[str, Any] = {**one_by_one(stacked(tmp_path, MIXTRAL), "mixtral"), **changes}
    state = {key: array for key, array in state.items() if array is not None}
    with pytest.raises(LoadError) as error:
        gptrs.from_torch(state, config=MIXTRAL)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("mixtral", {"num_experts_per_tok": 5}, "num_experts_per_tok is 5, expected at most the 4"),
        ("mixtral", {"num_experts_per_tok": 0}, "num_experts_per_tok is 0, expected at least 1"),
        ("mixtral", {"num_local_experts": -1}, "num_local_experts is -1, expected"),
        ("mixtral", {"num_local_experts": 2.5}, "num_local_experts is 2.5, expected int"),
        ("mixtral", {"norm_topk_prob": False}, "norm_topk_prob is False, an option that is not"),
        ("mixtral", {"num_shared_experts": 1}, "num_shared_experts is 1, an option that is not"),
        ("qwen3_moe", {"shared_expert_intermediate_size": 8}, "an option that is not known here"),
        ("qwen3_moe", {"decoder_sparse_step": 0}, "decoder_sparse_step is 0, expected at least 1"),
        ("qwen3_moe", {"moe_intermediate_size": 0}, "moe_intermediate_size is 0, expected"),
        ("qwen3_moe", {"mlp_only_layers": ["1"]}, "mlp_only_layers is ['1'], expected list of int"),
    ],
)
def test_wrong_configurations(kind: str, fields: dict[str, Any], words: str) -> None:
    model = {"mixtral": Mixtral, "qwen3_moe": Qwen3Moe}[kind]
    with pytest.raises(LoadError) as error:
        model.read_config({**CONFIGS[kind], **fields}, Path("config.json"))
    assert words in str(error.value)


def test_memory_counts_every_expert(tmp_path: Path) -> None:
    state = stacked(tmp_path, MIXTRAL)
    gptrs.export(state, tmp_path / "model", config=MIXTRAL)
    estimate = gptrs.estimate_memory(tmp_path / "model", context=32)
    experts = sum(array.nbytes for key, array in state.items() if ".experts." in key)
    assert experts <= estimate.packed < 1.5 * experts + 2**20
