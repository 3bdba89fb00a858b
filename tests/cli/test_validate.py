"""``gptrs validate``: logits against transformers' models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gptrs
from gptrs import events
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.rowwise import LayerNorm
from gptrs.debug.numeric_diff.difference import difference
from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.tensor_files import ModelTensors
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.norm import layer_norm_kernel
from gptrs.loading.convert import convert
from gptrs.parity.comparing import Comparing
from gptrs.parity.tolerance import tolerance
from gptrs.parity.torch_models import TorchModel
from gptrs.parity.validate import validate
from tests.support.cli import Cli, in_process
from tests.support.image_models import (
    MOBILENET_V2,
    RESNET,
    mobilenet_v2,
    resnet,
    state,
    with_random_statistics,
    write,
)
from tests.support.lazy_torch import torchvision
from tests.support.models import config, in_files, tensors, tiny_gpt2
from tests.support.models import write as write_gpt2

KINDS = ("gpt2", "resnet", "mobilenet_v2")


@pytest.fixture(scope="module", params=KINDS)
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind as transformers saves it."""
    place = tmp_path_factory.mktemp(request.param)
    if request.param == "gpt2":
        return tiny_gpt2(place)
    (resnet if request.param == "resnet" else mobilenet_v2)(place)
    return place


@pytest.mark.slow
def test_models_agree_with_torch(directory: Path) -> None:
    done = validate(gptrs.load(directory))
    assert done.failed == ()
    assert done.dtypes == ("f32",)
    for check in done.checks:
        assert 0 < check.difference.max_abs < 1e-4
        assert check.difference.cosine > 1 - 1e-9
        assert check.difference.max_rel < 1e-3


@pytest.mark.slow
def test_texts_of_all_lengths_are_compared(tmp_path: Path) -> None:
    done = validate(gptrs.load(tiny_gpt2(tmp_path)))
    lengths = [check.shape[1] for check in done.checks[:-2]]
    assert lengths == [1, 7, 47, 17], "48 tokens fit"
    assert sum(check.choices for check in done.checks) > 50, "most choices are clear"
    assert [check.shape[0] for check in done.checks[-2:]] == [8, 2], "with a cache"


@pytest.mark.slow
@pytest.mark.parametrize("positions", [1, 2, 8])
def test_a_short_context(tmp_path: Path, positions: int) -> None:
    done = validate(gptrs.load(tiny_gpt2(tmp_path, n_positions=positions)))
    assert done.failed == ()
    assert max(check.shape[1] for check in done.checks) == positions


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_weights_are_widened_on_both_sides(tmp_path: Path, dtype: str) -> None:
    done = validate(gptrs.load(tiny_gpt2(tmp_path, dtype)))
    assert done.failed == ()
    assert done.dtypes == (dtype,)
    assert max(check.difference.max_abs for check in done.checks) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "least"), [("f16", 1e-5), ("bf16", 1e-4)])
def test_a_narrow_cache_is_rounded(tmp_path: Path, dtype: str, least: float) -> None:
    done = validate(gptrs.load(tiny_gpt2(tmp_path), kv_cache_dtype=dtype))
    assert done.failed == ()
    *plain, continued, padded = (check.difference for check in done.checks)
    assert max(apart.max_abs for apart in plain) < 1e-4
    for apart in (continued, padded):
        assert least < apart.max_abs < apart.tolerance / 4


@pytest.mark.slow
def test_what_is_compared_is_told(directory: Path) -> None:
    everything: list[object] = []
    with events.listen(everything.append):
        done = validate(gptrs.load(directory))
    heard = [event for event in everything if isinstance(event, Comparing)]
    assert [event.name for event in heard] == [check.name for check in done.checks]
    assert [event.done for event in heard] == list(range(len(done.checks)))
    assert {event.total for event in heard} == {len(done.checks)}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no pty")
def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    import pty

    place = tiny_gpt2(tmp_path)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gptrs", "validate", str(place)]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown = b""
        while b"\x1b[?25h" not in shown:  # until the cursor is there again
            shown += os.read(ours, 1 << 12)
        assert process.stdout is not None
        assert b"all 6 agree" in process.stdout.read()
        assert process.wait() == 0
    os.close(ours)
    assert b"loading" in shown
    assert b"comparing" in shown


@pytest.mark.slow
def test_a_changed_weight_is_found(directory: Path) -> None:
    model = gptrs.load(directory)
    name = next(name for name in reversed([*model.parameters()]) if name.endswith("weight"))
    model.parameters()[name] = 2 * model.parameters()[name].numpy()
    done = validate(model)
    assert done.failed == done.checks
    assert {check.difference.agrees for check in done.checks} == {False}


@pytest.mark.slow
def test_a_checkpoint(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.gchk"
    convert(directory, file)
    assert validate(gptrs.load(file)).failed == ()


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("named", ["as transformers does", "without prefix", "with the head alone"])
def test_names_of_tensors(tmp_path: Path, named: str, tied: bool) -> None:
    settings = config(tie_word_embeddings=tied)
    arrays = in_files(tensors(settings))
    if named == "without prefix":
        arrays = {name.removeprefix("transformer."): a for name, a in arrays.items()}
    elif named == "with the head alone" and tied:
        arrays["lm_head.weight"] = arrays.pop("transformer.wte.weight")
    place = write_gpt2(tmp_path, settings, arrays)
    assert validate(gptrs.load(place)).failed == ()


@pytest.mark.slow
def test_weights_of_torchvision(tmp_path: Path) -> None:
    made = with_random_statistics(torchvision.ResNet((1, 2), (8, 12), 8, False))
    file = write(tmp_path / "resnet.safetensors", state(made))
    done = validate(gptrs.load(file))
    assert done.failed == ()
    assert done.torch_name == "ResNetForImageClassification"


@pytest.mark.slow
def test_a_model_that_transformers_cannot_build(tmp_path: Path) -> None:
    made = with_random_statistics(torchvision.MobileNetV2(0.25))
    file = write(tmp_path / "mobilenet.safetensors", state(made))
    with pytest.raises(ArgumentError, match="MobileNetV2Config of transformers has no such model"):
        validate(gptrs.load(file))


SMALL = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


@pytest.mark.slow
def test_a_configuration_that_transformers_refuses(cli: Cli, tmp_path: Path) -> None:
    """Its padding token, which has a default, is outside of a small vocabulary."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "phi3", "vocab_size": 40, **SMALL}))
    done = cli("--random", str(file))
    assert done.code == 1
    assert done.err.startswith("error: transformers cannot make a model of this configuration")


@pytest.mark.slow
def test_torch_is_optional(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ArgumentError, match="needs transformers, which is not installed") as caught:
        validate(gptrs.load(directory))
    assert caught.value.fix == "pip install 'gptrs[torch]'"


@pytest.mark.slow
def test_torch_gets_all_tensors_or_none(tmp_path: Path) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path))
    given = [t for t in model.files.tensors if t.key != "transformer.ln_f.bias"]
    tensors = ModelTensors(tmp_path / "model.safetensors", given, "config.json", "")
    model.files = replace(model.files, tensors=tensors)
    del model.weights.names["transformer.ln_f.bias"]
    with pytest.raises(LoadError, match=r"has no tensor for 'transformer\.ln_f\.bias'"):
        TorchModel(model)


@pytest.mark.slow
def test_torch_reads_the_files_and_not_our_parameters(tmp_path: Path) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path))
    before = TorchModel(model).weights("h.1.ln_2")
    assert before.keys() == {"h.1.ln_2.weight", "h.1.ln_2.bias"}
    model.parameters()["h.1.ln_2.weight"] = np.zeros(32, np.float32)
    after = TorchModel(model).weights("h.1.ln_2")
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert before["h.1.ln_2.weight"].any()


class TestDifference:
    def test_numbers(self) -> None:
        expected = np.array([3, -4, 0, 0], np.float32)
        apart = difference(np.array([3.5, -4, 0.25, 0], np.float32), expected, 1e-4)
        assert apart.max_abs == 0.5
        assert apart.max_rel == pytest.approx(0.5 / 3)
        assert apart.cosine == pytest.approx(26.5 / 5 / np.sqrt(3.5**2 + 4**2 + 0.25**2))
        assert not apart.agrees

    @pytest.mark.parametrize(("peak", "expected"), [(1, 1e-4), (10, 1e-4), (100, 1e-3)])
    def test_the_tolerance_grows_with_the_numbers(self, peak: float, expected: float) -> None:
        array = np.array([peak, 0], np.float32)
        assert difference(array, array, 1e-4).tolerance == pytest.approx(expected)

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_what_is_no_number(self, odd: float) -> None:
        with_odd, without = np.array([1, odd], np.float32), np.array([1, 2], np.float32)
        assert difference(with_odd, with_odd, 1e-4).max_abs == 0
        for found, expected in ((with_odd, without), (without, with_odd)):
            assert difference(found, expected, 1e-4).max_abs == np.inf
            assert not difference(found, expected, 1e-4).agrees

    def test_more_than_is_compared_at_once(self) -> None:
        expected = np.zeros(2**20 + 3, np.float32)
        found = expected.copy()
        found[-1] = 1
        assert difference(found, expected, 1e-4).max_abs == 1
        assert difference(found, expected, 1e-4).cosine == 0

    def test_a_cosine_is_at_most_1(self) -> None:
        one = np.array([2.8, 4.7], np.float32)  # their products, divided, are above 1
        wide = one.astype(np.float64)
        assert (wide @ wide) / (np.sqrt(wide @ wide) * np.sqrt(wide @ wide)) > 1
        assert difference(one, one, 1e-4).cosine == 1
        assert difference(-one, one, 1e-4).cosine == -1

    def test_winograd_rounds_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert tolerance("image_classifier") == 1e-3
        monkeypatch.setenv("GPTRS_WINOGRAD", "0")
        assert tolerance("image_classifier") == tolerance("causal_lm") == 1e-4


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "validate")


@pytest.mark.slow
def test_the_table(cli: Cli, directory: Path) -> None:
    done = cli(str(directory))
    assert (done.code, done.err) == (0, "")
    head, *rows, empty, last = done.out.splitlines()
    assert head.split()[:3] == ["logits", "of", "shape"]
    assert all(row.rstrip().endswith("agrees") for row in rows)
    assert empty == ""
    assert last.startswith(f"{directory} (f32): all {len(rows)} agree with ")


@pytest.mark.slow
def test_json(cli: Cli, directory: Path) -> None:
    done = cli(str(directory), "--json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert report["agrees"] is True
    assert report["dtypes"] == ["f32"]
    assert {"name", "shape", "max_abs", "max_rel", "cosine", "tolerance"} <= report["checks"][
        0
    ].keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_weights(cli: Cli, tmp_path: Path, kind: str) -> None:
    fields = {"gpt2": config(), "resnet": RESNET, "mobilenet_v2": MOBILENET_V2}[kind]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(fields | {"model_type": kind}))
    done = cli("--random", str(file))
    assert (done.code, done.err) == (0, "")
    assert f"{file} (f32): all" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.slow
def test_what_differs_is_said(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
        return kernel(layer_norm_kernel, isa, weight=True, bias=True, eps=1.0)

    place = tiny_gpt2(tmp_path, n_embd=40)  # no other test has the program of this width
    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    done = cli(str(place))
    assert done.code == 1
    assert "6 of 6 differ from GPT2LMHeadModel, first the logits of 1 token: max abs" in done.out
    assert cli(str(place), "--json").code == 1
    assert cli(str(place), "--backend", "reference").code == 0


@pytest.mark.parametrize("arguments", [(), ("stories", "--random", "config.json")], ids=str)
def test_one_model_is_given(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "give MODEL or --random CONFIG.json, one of them" in done.err


def test_a_model_that_is_not_there(cli: Cli) -> None:
    done = cli("no/such/model")
    assert (done.code, done.out) == (1, "")
    assert "there is no model directory" in done.err
