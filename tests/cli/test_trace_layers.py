"""``gptrs trace``: every layer against transformers' model, and the first layer that differs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.product import MatrixProduct
from gptrs.backends.faer.calls.rowwise import LayerNorm
from gptrs.formats.archive import read_archive
from gptrs.ir.program import Program
from gptrs.ir.tensor import Tensor
from gptrs.jit.numerics.first_deviation import first_deviation
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.rowwise.norm import layer_norm_kernel
from gptrs.models.gpt2 import Block
from gptrs.nn.module import Module
from gptrs.parity.blame import Blame
from gptrs.parity.layers import layer_arguments, layer_outputs
from gptrs.parity.trace import LOGITS, Trace, trace_layers
from gptrs.passes import pipeline
from gptrs.passes.base import Context
from tests.support.cli import Cli, in_process
from tests.support.experts import QWEN, one_by_one, stacked
from tests.support.image_models import mobilenet_v2, resnet
from tests.support.models import tiny_gpt2

KINDS = ("gpt2", "resnet", "mobilenet_v2")
TAMPERED = {
    "gpt2": ("h.1.mlp.c_fc", "weight"),
    "resnet": ("stages.1.layers.0.layer.0.normalization", "bias"),
    "mobilenet_v2": ("layer.3.conv_3x3.convolution", "weight"),
}


@pytest.fixture(scope="module", params=KINDS)
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind as transformers saves it."""
    place = tmp_path_factory.mktemp(request.param)
    if request.param == "gpt2":
        return tiny_gpt2(place)
    (resnet if request.param == "resnet" else mobilenet_v2)(place)
    return place


def blamed(done: Trace) -> tuple[str, Blame]:
    """The first layer that differs, and what was found out about it."""
    assert done.first is not None
    assert done.blame is not None
    assert not done.first.agrees
    return done.first.layer, done.blame


@pytest.mark.slow
def test_all_layers_agree_with_torch(directory: Path) -> None:
    model = gptrs.load(directory)
    done = trace_layers(model)
    assert (done.first, done.blame, done.left_out) == (None, None, ())
    layers: dict[str, Module] = model.module.modules()
    assert {row.layer for row in done.rows} == {*layers, LOGITS} - {""}
    for row in done.rows:
        assert row.difference is not None
        assert row.difference.max_abs < 1e-4
        assert row.difference.cosine > 1 - 1e-9
        assert row.expected.std() > 0.01, "a layer that gives nothing would agree with any other"


@pytest.mark.slow
def test_experts_and_their_router_agree_with_torch(tmp_path: Path) -> None:
    """Files hold experts one by one, torch stacks them, and gives tokens as rows."""
    parts = one_by_one(stacked(tmp_path, QWEN), "qwen3_moe")
    model = gptrs.from_torch(parts, config=QWEN)
    done = trace_layers(model)
    assert (done.first, done.blame, done.left_out) == (None, None, ())
    assert {"layers.1.mlp.gate", "layers.1.mlp.experts"} <= {row.layer for row in done.rows}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gemma2", "phi3"])
def test_decoders_agree_with_torch(cli: Cli, tmp_path: Path, kind: str) -> None:
    """Gemma's embedding of transformers multiplies its rows, and phi3's projections are fused."""
    fields = {"model_type": kind, "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24}
    fields |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**fields, "pad_token_id": 0, "max_position_embeddings": 64}))
    done = cli("--random", str(file))
    assert (done.code, done.err) == (0, "")
    assert "agree with" in done.out.splitlines()[-1]


@pytest.mark.slow
def test_layers_are_in_the_order_of_their_ends(tmp_path: Path) -> None:
    done = trace_layers(gptrs.load(tiny_gpt2(tmp_path, n_layer=1)))
    block = ("ln_1", "attn.c_attn", "attn.c_proj", "attn", "ln_2", "mlp.c_fc", "mlp.c_proj", "mlp")
    expected = ["wte", "wpe", *(f"h.0.{part}" for part in block), "h.0", "ln_f", "lm_head", LOGITS]
    assert [row.layer for row in done.rows] == expected


@pytest.mark.slow
def test_a_changed_weight_is_found(directory: Path) -> None:
    model = gptrs.load(directory)
    layer, field = TAMPERED[model.kind]
    parameter = model.parameters()[f"{layer}.{field}"]
    model.parameters()[f"{layer}.{field}"] = parameter.numpy() + np.float32(0.1)
    name, blame = blamed(trace_layers(model))
    assert name == layer
    assert blame.weights == (f"{layer}.{field}",)
    assert blame.verdict == "its weights"
    assert blame.deviation is None
    if blame.taken is not None:  # torch pads what this kind's convolutions take beforehand
        assert blame.taken.agrees
        assert blame.alone is not None
        assert not blame.alone.agrees


@pytest.mark.slow
def test_a_tied_weight_is_found_where_it_is_read_first(tmp_path: Path) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path))
    model.parameters()["wte.weight"] = 2 * model.parameters()["wte.weight"].numpy()
    name, blame = blamed(trace_layers(model))
    assert (name, blame.weights) == ("wte", ("wte.weight",))


@pytest.mark.slow
def test_a_wrong_definition_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path, n_embd=28))
    monkeypatch.setattr("gptrs.models.gpt2.ACTIVATIONS", {"gelu_new": ptir.relu})
    name, blame = blamed(trace_layers(model))
    assert name == "h.0.mlp.c_proj"
    assert blame.taken is not None
    assert not blame.taken.agrees
    assert blame.alone is not None
    assert blame.alone.agrees
    assert blame.deviation is None
    assert "what the model does before it" in blame.verdict


@pytest.mark.slow
def test_a_wrong_residual_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_residual(self: Block, x: Tensor, cache: None) -> tuple[Tensor, None]:
        y, _ = self.attn(self.ln_1(x), cache)
        x = x + y
        return self.mlp(self.ln_2(x)), None

    model = gptrs.load(tiny_gpt2(tmp_path, n_embd=36))
    monkeypatch.setattr(Block, "__call__", without_residual)
    name, blame = blamed(trace_layers(model))
    assert name == "h.0"
    assert blame.verdict == "the layer itself"


def eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
    """A kernel of another norm."""
    return kernel(layer_norm_kernel, isa, weight=True, bias=True, eps=1.0)


@pytest.mark.slow
def test_a_wrong_kernel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    model = gptrs.load(tiny_gpt2(tmp_path, n_embd=40))
    name, blame = blamed(trace_layers(model))
    assert name == "h.0.ln_1"
    assert blame.deviation is not None
    assert blame.deviation.kind == "instruction"
    assert blame.deviation.name == "gpt_rs.faer.layer_norm.f32.v1"
    assert "ptir.custom_call((taken_0_0, h_0_ln_1_weight, h_0_ln_1_bias)" in blame.deviation.text
    assert blame.deviation.where is not None
    assert blame.deviation.where.function == "LayerNorm.__call__"
    assert blame.verdict == "what runs gpt_rs.faer.layer_norm.f32.v1"
    assert any(line.startswith("the first instruction that faer") for line in blame.lines())


@pytest.mark.slow
def test_a_kernel_that_is_wrong_across_layers_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_activation(self: MatrixProduct, compressed: bool) -> Product:
        return Product(self.core.weights, compressed)

    monkeypatch.setattr(MatrixProduct, "_product", without_activation)
    model = gptrs.load(tiny_gpt2(tmp_path, n_embd=44))
    done = trace_layers(model)
    name, blame = blamed(done)
    assert name == "h.0.mlp.c_proj", "the first that reads what the fused kernel gives"
    assert blame.deviation is not None
    assert blame.deviation.name == "gpt_rs.faer.matmul.f32.v1"
    assert "ptir.gelu_tanh" in blame.deviation.text
    assert "h_0_mlp_c_fc_weight" in blame.deviation.text


@pytest.mark.slow
def test_a_wrong_pass_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forget_eps(program: Program, context: Context) -> Program:
        body = [
            replace(each, attrs={**each.attrs, "eps": 1.0})
            if each.op.name == "layer_norm" and each.attrs["eps"] != 1
            else each
            for each in program.body
        ]
        return program if body == [*program.body] else program.with_body(body, program.results)

    monkeypatch.setattr(pipeline, "PIPELINE", (forget_eps, *pipeline.PIPELINE))
    name, blame = blamed(trace_layers(gptrs.load(tiny_gpt2(tmp_path, n_embd=52))))
    assert name == "h.0.ln_1"
    assert blame.deviation is not None
    assert (blame.deviation.kind, blame.deviation.name) == ("pass", "forget_eps")
    assert "eps=1.0" in blame.deviation.text
    assert blame.verdict == "the pass forget_eps"


def test_the_first_of_several_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain_eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
        return kernel(layer_norm_kernel, isa, weight=False, bias=False, eps=1.0)

    def twice(x: Tensor) -> Tensor:
        y = ptir.layer_norm(x * 2, eps=1e-5)
        return ptir.layer_norm(ptir.exp(y), eps=1e-5)

    def never(x: Tensor) -> Tensor:
        return ptir.exp(x * 2)

    monkeypatch.setattr(LayerNorm, "_kernel", plain_eps_of_one)
    x = np.random.default_rng(0).standard_normal((4, 8), np.float32)
    found = first_deviation(ptir.jit(twice).traced_call(x), 1e-4)
    assert found is not None
    assert found.name == "gpt_rs.faer.layer_norm.f32.v1"
    assert "ptir.exp" not in found.text
    assert found.where is not None
    assert found.where.function.endswith("twice")
    assert first_deviation(ptir.jit(never).traced_call(x), 1e-4) is None
    with ptir.backend("reference"):
        assert first_deviation(ptir.jit(twice).traced_call(x), 1e-4) is None


class Add(Module):
    amount: float

    def __call__(self, x: Tensor, *, times: int = 1) -> tuple[None, Tensor]:
        return None, x + self.amount * times


class Thrice(Module):
    """Calls one layer three times, and another that it holds twice."""

    add: Add
    both: tuple[Add, Add]

    def __call__(self, x: Tensor) -> Tensor:
        for times in (1, 2, 3):
            _, x = self.add(x, times=times)
        return self.both[1](self.both[0](x)[1])[1]


@pytest.mark.parametrize("eager", [False, True])
def test_layers_that_are_called_several_times(eager: bool) -> None:
    shared = Add(10)
    model, x = Thrice(Add(1), (shared, shared)), np.zeros(2, np.float32)
    names = ("add", "add:2", "add:3", "both.0", "both.0:2")
    with ptir.eager(eager):
        found = layer_outputs(model, x, names)
        args, kwargs = layer_arguments(model, x, "add:3")
        assert layer_outputs(model, x, ("add:2", "nothing")).keys() == {"add:2"}
    assert {name: float(array[0]) for name, array in found.items()} == dict(
        zip(names, (1, 3, 6, 16, 26), strict=True)
    )
    assert float(args[0].numpy()[0]) == 3
    assert np.asarray(kwargs["times"]) == 3
    assert model.modules().keys() == {"", "add", "both.0"}


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "trace")


@pytest.mark.slow
def test_the_table(cli: Cli, tmp_path: Path) -> None:
    done = cli(str(tiny_gpt2(tmp_path)))
    assert (done.code, done.err) == (0, "")
    head, *rows, empty, last = done.out.splitlines()
    assert head.split()[:3] == ["layer", "class", "shape"]
    assert [row.split()[:3] for row in rows[:2]] == [
        ["wte", "Embedding", "[1,16,32]"],
        ["wpe", "Embedding", "[1,16,32]"],
    ]
    assert all(row.split()[-1] == "agrees" for row in rows)
    assert (empty, last) == ("", f"{tmp_path}: all {len(rows)} agree with GPT2LMHeadModel")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A model whose norms go wrong."""
    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    return str(tiny_gpt2(tmp_path / "broken", n_embd=56))


@pytest.mark.slow
def test_the_first_mismatch_ends_the_table(cli: Cli, broken: str) -> None:
    done = cli(broken, "--stop-on-first-mismatch")
    assert done.code == 1
    table, _, said = done.out.partition("\n\n")
    rows = [row.split() for row in table.splitlines()[1:]]
    assert [row[0] for row in rows] == ["wte", "wpe", "h.0.ln_1"]
    assert [row[-1] for row in rows] == ["agrees", "agrees", "differs"]
    assert said.startswith(f"{broken}: h.0.ln_1 is the first that differs from GPT2LMHeadModel\n")
    assert said.endswith("to blame: what runs gpt_rs.faer.layer_norm.f32.v1\n")


@pytest.mark.slow
def test_json(cli: Cli, broken: str) -> None:
    done = cli(broken, "--json")
    assert done.code == 1
    report: dict[str, Any] = json.loads(done.out)
    assert report["agrees"] is False
    assert report["first"] == "h.0.ln_1"
    assert report["layers"][2]["agrees"] is False
    assert len(report["layers"]) == 23
    assert report["blame"]["deviation"]["name"] == "gpt_rs.faer.layer_norm.f32.v1"
    good = json.loads(cli(broken, "--json", "--backend", "reference").out)
    assert (good["agrees"], good["first"], good["blame"]) == (True, None, None)


@pytest.mark.slow
def test_an_archive_of_all_layers(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "layers.gten"
    place = tmp_path / "model"
    place.mkdir()
    mobilenet_v2(place)
    assert cli(str(place), "--out", str(out)).code == 0
    found = read_archive(out)
    names = [name.removeprefix("gptrs/") for name in found if name.startswith("gptrs/")]
    assert f"torch/{LOGITS}" in found
    assert len(found) == 2 * len(names)
    for name in names:
        np.testing.assert_allclose(found[f"gptrs/{name}"], found[f"torch/{name}"], atol=1e-4)


def test_a_place_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    done = cli("stories", "--out", str(tmp_path / "no" / "layers.gten"))
    assert (done.code, done.out) == (2, "")
    assert "is no folder" in done.err


@pytest.mark.slow
def test_random_weights(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "resnet", "depths": [1], "hidden_sizes": [8]}))
    done = cli("--random", str(file))
    assert (done.code, done.err) == (0, "")
    assert "ResNetForImageClassification" in done.out
