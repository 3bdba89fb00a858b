"""Writing weights of torch, and models that are in memory, in the formats of models."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gptrs
from gptrs import params
from gptrs.errors import ArgumentError, LoadError
from tests.support.cli import Cli, in_process
from tests.support.image_models import (
    images,
    mobilenet_v2,
    resnet,
    state,
    with_random_statistics,
)
from tests.support.lazy_torch import torch, torchvision, transformers
from tests.support.models import (
    Arrays,
    byte_tokenizer,
    config,
    in_files,
    load_arrays,
    random_tokens,
    save_arrays,
    tensors,
    tiny_gpt2,
)
from tests.support.stored import assert_same, read_checkpoint

TOKENS = random_tokens(2, 9)
IMAGES = images(2, 40, 48)
TARGETS = ("x.gchk", "x", "x.safetensors", "x.gten")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "export", "--from", "torch")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A state dict of transformers in a file, alone."""
    (tmp_path / "saved").mkdir()
    save_arrays(in_files(tensors(config())), tmp_path / "saved" / "gpt2.safetensors")
    return tmp_path / "saved" / "gpt2.safetensors"


def logits(path: Path, given: Any = TOKENS) -> bytes:
    return gptrs.load(path).forward(given).numpy().tobytes()


def module() -> Any:
    made: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(**config()))
    return made.eval()


class TestCommand:
    @pytest.mark.parametrize("target", TARGETS)
    def test_with_a_configuration(self, cli: Cli, tmp_path: Path, saved: Path, target: str) -> None:
        (tmp_path / "gpt2.json").write_text(json.dumps(config()))
        done = cli(str(saved), str(tmp_path / target), "--config", str(tmp_path / "gpt2.json"))
        assert (done.code, done.err) == (0, "")
        count = len(load_arrays(saved))
        assert done.out.startswith(f"{tmp_path / target}: {count} tensors, ")
        if target in TARGETS[:2]:
            assert logits(tmp_path / target) == logits(tiny_gpt2(tmp_path / "same"))

    def test_what_is_beside_the_file_belongs_to_it(
        self, cli: Cli, tmp_path: Path, saved: Path
    ) -> None:
        (saved.parent / "config.json").write_text(json.dumps(config()))
        byte_tokenizer().save(str(saved.parent / "tokenizer.json"))
        done = cli(str(saved), str(tmp_path / "x.gchk"))
        assert (done.code, done.err) == (0, "")
        assert done.out.endswith(", tokenizer.json\n")
        expected = gptrs.load(tiny_gpt2(tmp_path / "same")).generate("on the", max_tokens=5)
        assert gptrs.load(tmp_path / "x.gchk").generate("on the", max_tokens=5) == expected

    @pytest.mark.slow
    @pytest.mark.parametrize("write", [tiny_gpt2, resnet, mobilenet_v2])
    def test_a_directory_of_transformers(
        self, cli: Cli, tmp_path: Path, write: Callable[[Path], object]
    ) -> None:
        write(tmp_path / "model")
        assert cli(str(tmp_path / "model"), str(tmp_path / "x.gchk")).code == 0
        given = TOKENS if write is tiny_gpt2 else images(2, 48, 48)
        assert logits(tmp_path / "x.gchk", given) == logits(tmp_path / "model", given)

    @pytest.mark.slow
    @pytest.mark.parametrize("target", TARGETS[:3])
    def test_names_of_torchvision_need_no_configuration(
        self, cli: Cli, tmp_path: Path, target: str
    ) -> None:
        arrays = state(with_random_statistics(torchvision.ResNet((1, 1), (8, 12), 8, False)))
        save_arrays(arrays, tmp_path / "r.safetensors")
        done = cli(str(tmp_path / "r.safetensors"), str(tmp_path / target))
        assert done.code == 0
        assert logits(tmp_path / target, IMAGES) == logits(tmp_path / "r.safetensors", IMAGES)

    @pytest.mark.slow
    def test_options(self, cli: Cli, tmp_path: Path) -> None:
        tiny_gpt2(tmp_path / "model")
        given = (str(tmp_path / "model"), str(tmp_path / "x.bin"))
        assert cli(*given).code == 1
        done = cli(*given, "--to", "checkpoint", "--dtype", "bf16")
        assert done.code == 0
        assert gptrs.load(tmp_path / "x.bin").module.wte.weight.dtype.name == "bf16"
        done = cli(*given, "--to", "checkpoint")
        assert (done.code, "is there already" in done.err) == (1, True)
        assert cli(*given, "--to", "checkpoint", "--force").code == 0

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["x.pt", "x.pth", "x.bin", "weights"])
    def test_pickles_are_never_opened(self, cli: Cli, tmp_path: Path, name: str) -> None:
        class Planted:
            def __reduce__(self) -> tuple[Any, ...]:
                return (Path.touch, (tmp_path / "ran",))

        torch.save({"a": torch.ones(3)}, tmp_path / name)
        for content in (None, pickle.dumps(Planted())):
            if content is not None:
                (tmp_path / name).write_bytes(content)
            done = cli(str(tmp_path / name), str(tmp_path / "x.gchk"))
            assert (done.code, done.out) == (1, "")
            assert done.err.startswith(f"error: {tmp_path / name} is a pickle, which may run any")
            assert "safetensors.torch.save_model(module" in done.err
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"n_layer": 3}, "has no tensor 'h.2."),
            ({"n_layer": 1}, "the model has no place for tensor 'transformer.h.1."),
            ({"n_positions": 50}, "by config.json"),
            ({"model_type": "llama9"}, "model_type is 'llama9', expected one of"),
            ({"model_type": 3}, "model_type is 3, expected a string"),
            (None, "named as in torchvision's"),
        ],
        ids=str,
    )
    def test_what_does_not_fit_is_not_written(
        self, cli: Cli, tmp_path: Path, saved: Path, fields: dict[str, Any] | None, said: str
    ) -> None:
        if fields is not None:
            (saved.parent / "config.json").write_text(json.dumps(config(**fields)))
        done = cli(str(saved), str(tmp_path / "x.gchk"))
        assert (done.code, done.out) == (1, "")
        assert said in done.err
        assert not (tmp_path / "x.gchk").exists()

    def test_other_sources(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "x.onnx").write_bytes(b"ONNX")
        assert "ends in '.onnx', expected .safetensors" in cli(str(tmp_path / "x.onnx"), "y").err
        assert "there is no model directory" in cli(str(tmp_path / "none"), "y").err
        done = cli(str(tmp_path / "x.onnx"), "y", "--from", "jax")
        assert (done.code, "'jax' is not" in done.err) == (2, True)


class TestExport:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", TARGETS[:2])
    def test_a_module(self, tmp_path: Path, target: str) -> None:
        made = module()
        done = gptrs.export(made, tmp_path / target)
        assert done.count == len(made.state_dict())
        expected = gptrs.from_torch(made).forward(TOKENS).numpy()
        assert logits(tmp_path / target) == expected.tobytes()

    @pytest.mark.slow
    def test_transformers_reads_the_directory(self, tmp_path: Path) -> None:
        made = module().to(torch.bfloat16)
        gptrs.export(made, tmp_path / "x")
        read: Any = cast("Any", transformers.AutoModelForCausalLM).from_pretrained(tmp_path / "x")
        for name, expected in made.state_dict().items():
            assert torch.equal(read.state_dict()[name], expected)
        assert read.config.architectures == ["GPT2LMHeadModel"]
        assert read.dtype is torch.bfloat16

    def test_a_state_dict(self, tmp_path: Path) -> None:
        arrays = in_files(tensors(config()))
        gptrs.export(arrays, tmp_path / "x.gchk", config=config(), dtype="f16")
        found = gptrs.load(tmp_path / "x.gchk").parameters()
        assert {weight.dtype.name for weight in found.values()} == {"f16"}

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["directory", "checkpoint"])
    def test_a_loaded_model_has_the_files_bits(self, tmp_path: Path, form: str) -> None:
        model = gptrs.load(tiny_gpt2(tmp_path / "model", "bf16"))
        model.forward(TOKENS)
        gptrs.export(model, tmp_path / "x", to=form)
        gptrs.export(gptrs.load(tmp_path / "x"), tmp_path / "y.gchk")
        expected = load_arrays(tmp_path / "model" / "model.safetensors")
        assert_same(read_checkpoint(tmp_path / "y.gchk"), dict(sorted(expected.items())))
        read = gptrs.load(tmp_path / "y.gchk")
        assert read.files.config == model.files.config
        assert read.generate("on", max_tokens=4) == model.generate("on", max_tokens=4)

    def test_replaced_parameters_are_written(self, tmp_path: Path) -> None:
        model = gptrs.load(tiny_gpt2(tmp_path / "model"))
        before = model.forward(TOKENS).numpy()
        for name in ("wte.weight", "h.1.mlp.c_fc.bias"):
            model.parameters()[name] = model.parameters()[name].numpy() + 0.5
        expected = model.forward(TOKENS).numpy()
        assert not np.array_equal(before, expected)
        gptrs.export(model, tmp_path / "x.gchk")
        assert logits(tmp_path / "x.gchk") == expected.tobytes()

    @pytest.mark.slow
    def test_every_copy_of_a_replaced_parameter_is_written(self, tmp_path: Path) -> None:
        model = gptrs.from_torch(module())
        model.parameters()["wte.weight"] = model.parameters()["wte.weight"].numpy() * 2
        expected = model.forward(TOKENS).numpy().tobytes()
        gptrs.export(model, tmp_path / "x.gchk")
        found = read_checkpoint(tmp_path / "x.gchk")
        head, embedding = found["lm_head.weight"], found["transformer.wte.weight"]
        assert np.array_equal(head, embedding)
        assert logits(tmp_path / "x.gchk") == expected

    def test_a_replaced_parameter_of_torchvision(self, tmp_path: Path) -> None:
        made = with_random_statistics(torchvision.ResNet((1, 1), (8, 12), 8, False))
        arrays: Arrays = state(made)
        save_arrays(arrays, tmp_path / "r.safetensors")
        model = gptrs.load(tmp_path / "r.safetensors")
        model.parameters()["classifier.bias"] = np.arange(7, dtype=np.float32)
        gptrs.export(model, tmp_path / "x")
        found = load_arrays(tmp_path / "x" / "model.safetensors")
        assert found["fc.bias"].tolist() == [*range(7)]
        assert "bn1.num_batches_tracked" in found
        assert logits(tmp_path / "x", IMAGES) == model.forward(IMAGES).numpy().tobytes()

    def test_what_cannot_be_written(self, tmp_path: Path) -> None:
        model = gptrs.load(tiny_gpt2(tmp_path / "model"))
        with pytest.raises(ArgumentError, match="is what is read"):
            gptrs.export(model, tmp_path / "model", force=True)
        with pytest.raises(ArgumentError, match="a loaded model has a configuration"):
            gptrs.export(model, tmp_path / "x", config=config())
        with pytest.raises(ArgumentError, match="to is 'onnx', expected one of directory"):
            gptrs.export(model, tmp_path / "x", to="onnx")
        with pytest.raises(ArgumentError, match="dtype is f64, expected f32, f16 or bf16"):
            gptrs.export(model, tmp_path / "x", dtype="f64")
        with pytest.raises(LoadError, match="has no tensor"):
            gptrs.export({"a": np.zeros(3, np.float32)}, tmp_path / "x", config=config())
        model.module.ln_f.bias = gptrs.Parameter(np.zeros(32, np.float32), "mine")
        with pytest.raises(ArgumentError, match=r"has a parameter 'mine', which .*model does not"):
            gptrs.export(model, tmp_path / "x")
        assert not (tmp_path / "x").exists()


def test_parameters_by_their_ids(tmp_path: Path) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path / "model"))
    parameters = model.parameters()
    for name in ("wte.weight", "transformer.wte.weight"):  # here, and in the file
        assert parameters.by_id(params.base_param_id(name)) is parameters["wte.weight"]
    with pytest.raises(ArgumentError, match=r"no parameter of the model has the id 0x0+1\n"):
        parameters.by_id(1)


def test_no_two_models_share_a_key(tmp_path: Path) -> None:
    directory = tiny_gpt2(tmp_path / "model")
    first, second = gptrs.load(directory), gptrs.load(directory)
    keys = [model.parameters().key(name) for model in (first, second) for name in tensors(config())]
    assert len(set(keys)) == len(keys)
    assert keys[0] == first.parameters().key(next(iter(tensors(config()))))
    weight = params.base_param_id("wte.weight")
    assert first.parameters().key("wte.weight") == params.param_key(first.namespace, weight)
    with pytest.raises(ArgumentError, match=r"no parameter 'x'"):
        first.parameters().key("x")


class TestC:
    def test_a_language_model(self, cli: Cli, tmp_path: Path, good: Path) -> None:
        done = cli(str(good), str(tmp_path / "c"), "--to", "c", "--context", "8")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"{tmp_path / 'c'}: gpt2.c, ")
        files = {path.name for path in (tmp_path / "c").iterdir()}
        assert files == {"gpt2.c", "gpt2.h", "gpt2.weights", "main.c", "Makefile"}
        assert "CAPACITY = 8" in (tmp_path / "c" / "main.c").read_text()

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (("--to", "c", "--context", "9999"), "context is 9999, expected 1 to"),
            (("--to", "c", "--dtype", "f16"), "--dtype is no option of --to c"),
            (("--context", "8"), "--context is an option of --to c"),
        ],
    )
    def test_options_that_do_not_fit(
        self, cli: Cli, tmp_path: Path, good: Path, options: tuple[str, ...], problem: str
    ) -> None:
        done = cli(str(good), str(tmp_path / "c"), *options)
        assert done.code == 1
        assert problem in done.err
        assert not (tmp_path / "c").exists()
