"""Parameters of a loaded model: lazy reading, replacement, and lifetime."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.errors import ArgumentError, UnknownNameError
from gptrs.ir.parameter import Parameter
from gptrs.loading.model_parameters import ModelParameters
from gptrs.loading.weights import WeightRead
from gptrs.nn.module import Module
from tests.fuzz_files.kinds import KINDS
from tests.support.models import (
    config,
    in_files,
    load_arrays,
    random_tokens,
    save_arrays,
    tensors,
    tiny_gpt2,
    write,
)

TOKENS = random_tokens(2, 6)
NAMES = ["h.0.attn.c_attn.weight", "h.1.mlp.c_proj.bias", "wte.weight", "ln_f.weight"]


class Holder(Module):
    several: list[Parameter]
    named: dict[str, Any]
    one: Parameter


def bits(model: Any) -> bytes:
    return model.forward(TOKENS).numpy().tobytes()


class TestReading:
    def test_half_of_the_layers_are_never_run(self, tmp_path: Path) -> None:
        directory = tiny_gpt2(tmp_path, n_layer=4)
        sizes = {
            name.removeprefix("transformer."): array.nbytes
            for name, array in load_arrays(directory / "model.safetensors").items()
        }
        used = {name for name in sizes if not name.startswith(("h.1.", "h.3."))}
        read: list[WeightRead] = []
        with events.listen(lambda e: read.append(e) if isinstance(e, WeightRead) else None):
            model = gptrs.load(directory)
            model.module.h = (model.module.h[0], model.module.h[2])
            model.forward(TOKENS)
        assert {each.name for each in read} == used
        assert sum(each.size for each in read) == sum(sizes[name] for name in used)
        assert sum(each.size for each in read) < 0.65 * sum(sizes.values())

    def test_names_and_parameters_are_those_of_the_module(self, good: Path) -> None:
        model = gptrs.load(good)
        found = model.parameters()
        assert list(found) == list(model.module.parameters())
        assert len(found) == len(tensors(config()))
        assert found["wte.weight"] is model.module.wte.weight
        assert "lm_head.weight" not in found
        assert repr(found) == f"ModelParameters({len(found)} of GPT2)"

    def test_an_unknown_name_is_an_error_of_a_mapping_that_names_the_closest(
        self, good: Path
    ) -> None:
        found = gptrs.load(good).parameters()
        with pytest.raises(KeyError) as raised:
            found["h.0.attn.c_atn.weight"]
        assert isinstance(raised.value, UnknownNameError)
        said = f"the model has no parameter 'h.0.attn.c_atn.weight'; it has {len(found)}"
        fix = "take a name of parameters(), such as 'h.0.attn.c_attn.weight'"
        assert str(raised.value) == f"{said}\n  fix: {fix}"
        assert found.get("x") is None
        assert "x" not in found
        assert "wte.weight" in found


class TestReplacing:
    @pytest.mark.parametrize("name", NAMES)
    def test_results_are_those_of_a_model_with_that_parameter(
        self, good: Path, tmp_path: Path, name: str
    ) -> None:
        model = gptrs.load(good)
        before = bits(model)
        arrays = tensors(config())
        arrays[name] = arrays[name][::-1] * np.float32(1.5)
        other = gptrs.load(write(tmp_path / "other", config(), in_files(arrays)))
        model.parameters()[name] = arrays[name]
        assert bits(model) == bits(other) != before
        assert model.generate("once", max_tokens=5) == other.generate("once", max_tokens=5)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "name",
        [
            "embedder.convolution.weight",
            "embedder.normalization.running_var",
            "embedder.normalization.bias",
            "stages.1.layers.0.layer.1.convolution.weight",
            "classifier.weight",
        ],
    )
    def test_what_is_folded_is_folded_again(self, tmp_path: Path, name: str) -> None:
        random = np.random.default_rng(0)
        images = random.standard_normal((2, 40, 48, 3), np.float32)
        KINDS["preprocessor"].make(tmp_path)
        file = tmp_path / "model.safetensors"
        arrays = load_arrays(file)
        for key, array in arrays.items():
            arrays[key] = random.uniform(0.1, 1.5, array.shape).astype(np.float32)
        save_arrays(arrays, file)
        model = gptrs.load(tmp_path)
        before = model.forward(images).numpy()
        arrays[name] = arrays[name][::-1] * np.float32(1.5)
        save_arrays(arrays, file)
        other = gptrs.load(tmp_path).forward(images).numpy()
        model.parameters()[name] = arrays[name]
        assert model.forward(images).numpy().tobytes() == other.tobytes() != before.tobytes()
        gc.collect()
        assert len(model.parameters()) == len(arrays)

    def test_and_again(self, good: Path) -> None:
        model = gptrs.load(good)
        before, name = bits(model), "h.0.mlp.c_fc.weight"
        first = model.parameters()[name].numpy().copy()
        for factor in (2, 3, 4):
            model.parameters()[name] = first * np.float32(factor)
            assert bits(model) != before
        model.parameters()[name] = first
        assert bits(model) == before

    def test_a_tied_head_goes_along(self, good: Path) -> None:
        model = gptrs.load(good)
        model.parameters()["wte.weight"] = model.module.wte.weight.numpy() * np.float32(2)
        assert model.module.lm_head.weight is model.module.wte.weight
        assert len(model.parameters()) == len(tensors(config()))

    def test_lists_dicts_and_tuples_are_searched(self) -> None:
        old, kept = Parameter(np.zeros(2)), Parameter(np.ones(2))
        holder = Holder([old, kept], {"a": (old, (kept, old))}, old)
        parameters = ModelParameters(holder)
        parameters[next(iter(parameters))] = np.full(2, 3.0)
        new = holder.one
        assert new is not old
        assert new.numpy().tolist() == [3, 3]
        assert holder.several == [new, kept]
        assert holder.named == {"a": (new, (kept, new))}

    def test_the_array_is_copied(self, good: Path) -> None:
        model = gptrs.load(good)
        given = np.ones(32, np.float32)
        model.parameters()["ln_f.bias"] = given
        expected = bits(model)
        given[:] = 9
        assert bits(model) == expected
        assert model.parameters()["ln_f.bias"].name == "ln_f.bias"

    @pytest.mark.slow
    @pytest.mark.parametrize("name", NAMES)
    def test_what_was_derived_is_freed(self, good: Path, name: str) -> None:
        model = gptrs.load(good)
        bits(model)
        old = weakref.ref(model.parameters()[name])
        shape = model.parameters()[name].shape
        model.parameters()[name] = np.ones(shape, np.float32)
        gc.collect()
        assert old() is None

    def test_other_models_keep_theirs(self, good: Path) -> None:
        one, other = gptrs.load(good), gptrs.load(good)
        before = bits(one)
        one.parameters()["h.0.attn.c_attn.weight"] = np.zeros((32, 96), np.float32)
        changed = bits(one)
        for _ in range(2):
            assert bits(other) == before
            assert bits(one) == changed != before

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("h.0.attn.c_atn.weight", np.zeros(3), "no parameter 'h.0.attn.c_atn.weight'"),
            (
                "ln_f.bias",
                np.zeros(31, np.float32),
                r"ln_f.bias: found f32\[31\], expected f32\[32",
            ),
            ("ln_f.bias", np.zeros(32), r"ln_f.bias: found f64\[32\], expected f32\[32\]"),
            ("ln_f.bias", np.zeros((1, 32), np.float32), r"found f32\[1,32\], expected f32\[32\]"),
            ("ln_f.bias", [0.0] * 32, "found a list, expected an array"),
            ("ln_f.bias", None, "found a NoneType"),
        ],
        ids=["name", "shape", "dtype", "rank", "list", "none"],
    )
    def test_what_does_not_fit(self, good: Path, name: str, value: object, said: str) -> None:
        model = gptrs.load(good)
        before = bits(model)
        with pytest.raises(ArgumentError, match=said) as raised:
            model.parameters()[name] = value
        assert raised.value.fix
        assert bits(model) == before

    def test_a_name_that_is_near_is_told(self, good: Path) -> None:
        with pytest.raises(ArgumentError) as raised:
            gptrs.load(good).parameters()["ln_f.bia"] = np.zeros(32)
        assert "'ln_f.bias'" in raised.value.fix
