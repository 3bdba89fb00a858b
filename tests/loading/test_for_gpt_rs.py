"""Checkpoints that are written under the names and the configuration of gpt.rs."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gptrs
from gptrs.errors import ArgumentError
from gptrs.loading.convert import convert
from gptrs.params import base_param_id
from tests.support.cli import Cli, in_process
from tests.support.image_models import resnet
from tests.support.models import Arrays, config, in_files, random_tokens, tensors, write

TOKENS = random_tokens(2, 11)
EXACT = {"activation_function": "gelu"}


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


def model(place: Path, dtype: str = "f32", **fields: Any) -> Path:
    settings = config(**{**EXACT, **fields})
    return write(place / "model", settings, in_files(tensors(settings), dtype))


def read_by_its_rules(file: Path) -> tuple[dict[str, Any], Arrays]:
    """What gpt.rs finds in a checkpoint, by its own rules: elements are f32 (tag 0), an id that is
    stored is that of the name."""
    data = file.read_bytes()
    assert data[:8] == b"GPTRSCHK"
    version, length = struct.unpack_from("<II", data, 8)
    assert version == 2
    described, at = json.loads(data[16 : 16 + length]), 16 + length
    (_, count), at = struct.unpack_from("<II", data, at), at + 8
    found: Arrays = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        name, at = data[at + 4 : at + 4 + length].decode("ascii"), at + 4 + length
        stored, at = int.from_bytes(data[at : at + 16], "little"), at + 16
        assert stored in (0, base_param_id(name))
        (rank,) = struct.unpack_from("<I", data, at)
        shape, at = struct.unpack_from(f"<{rank}Q", data, at + 4), at + 4 + 8 * rank
        tag, _, offset, size = struct.unpack_from("<IBQQ", data, at)
        assert tag == 0
        elements = np.frombuffer(data, "<f4", size // 4, offset)
        found[name], at = elements.reshape(shape), at + 21
    return described, found


def expected(arrays: Arrays, layers: int) -> Arrays:
    """What gpt.rs asks a checkpoint for, of weights that are named as transformers names them."""
    head: NDArray[Any] = arrays.get("lm_head.weight", arrays["wte.weight"])
    made = {
        "tok_embeddings.weight": arrays["wte.weight"],
        "pos_embeddings": arrays["wpe.weight"],
        "final_ln.gamma": arrays["ln_f.weight"],
        "final_ln.beta": arrays["ln_f.bias"],
        "lm_head": head.T,
    }
    for n in range(layers):
        ours = {name: arrays[f"h.{n}.{name}"] for name in _BLOCK.values()}
        made |= {f"blocks.{n}.{theirs}": ours[name] for theirs, name in _BLOCK.items()}
    return made


_BLOCK = {
    **{
        f"ln_{n}.{a}": f"ln_{n}.{b}"
        for n in (1, 2)
        for a, b in (("gamma", "weight"), ("beta", "bias"))
    },
    "attention.w_qkv": "attn.c_attn.weight",
    "attention.b_qkv": "attn.c_attn.bias",
    "attention.w_out": "attn.c_proj.weight",
    "attention.b_out": "attn.c_proj.bias",
    "feed_forward.w_in": "mlp.c_fc.weight",
    "feed_forward.b_in": "mlp.c_fc.bias",
    "feed_forward.w_out": "mlp.c_proj.weight",
    "feed_forward.b_out": "mlp.c_proj.bias",
}

VARIANTS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tie_word_embeddings": False},
    "wide inside": {"n_inner": 96},
    "one layer": {"n_layer": 1},
    "by another name": {"activation_function": "gelu_python"},
}


@pytest.mark.slow
@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_it_is_what_gpt_rs_reads_and_comes_back(tmp_path: Path, fields: dict[str, Any]) -> None:
    place, file = model(tmp_path, **fields), tmp_path / "x.gchk"
    settings = config(**{**EXACT, **fields})
    assert convert(place, file, names="gpt.rs").note == ""
    described, found = read_by_its_rules(file)
    assert described["kind"] == "gpt"
    assert described["config"] == {
        "vocab_size": settings["vocab_size"],
        "context_length": 48,
        "embed_dim": 32,
        "num_layers": settings["n_layer"],
        "num_heads": 4,
        "mlp_ratio": settings.get("n_inner", 128) // 32,
        "dropout": 0.0,
        "bos_token_id": settings["bos_token_id"],
        "eos_token_id": settings["eos_token_id"],
    }
    asked = expected(tensors(settings), settings["n_layer"])
    assert found.keys() == asked.keys()
    for name, array in asked.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    logits = gptrs.load(place).forward(TOKENS).numpy()
    np.testing.assert_array_equal(gptrs.load(file).forward(TOKENS).numpy(), logits)
    convert(file, tmp_path / "again")
    np.testing.assert_array_equal(gptrs.load(tmp_path / "again").forward(TOKENS).numpy(), logits)
    convert(file, tmp_path / "y.gchk", names="gpt.rs")
    assert (tmp_path / "y.gchk").read_bytes() == file.read_bytes()


@pytest.mark.slow
def test_it_ends_texts_as_before(tmp_path: Path) -> None:
    place = model(tmp_path)
    convert(place, tmp_path / "x.gchk", names="gpt.rs")
    texts = [gptrs.load(p).generate(["a", ""], max_tokens=9) for p in (place, tmp_path / "x.gchk")]
    assert texts[0] == texts[1]


def test_a_model_in_memory(tmp_path: Path) -> None:
    loaded = gptrs.load(model(tmp_path))
    changed = tensors(config(), seed=1)["h.0.attn.c_attn.weight"]
    loaded.parameters()["h.0.attn.c_attn.weight"] = changed
    gptrs.export(loaded, tmp_path / "x.gchk", names="gpt.rs")
    _, found = read_by_its_rules(tmp_path / "x.gchk")
    np.testing.assert_array_equal(found["blocks.0.attention.w_qkv"], changed)
    logits = loaded.forward(TOKENS).numpy()
    np.testing.assert_array_equal(gptrs.load(tmp_path / "x.gchk").forward(TOKENS).numpy(), logits)


def test_a_module_of_torch(tmp_path: Path) -> None:
    arrays = tensors(config())
    gptrs.export(arrays, tmp_path / "x.gchk", config=config(**EXACT), names="gpt.rs")
    _, found = read_by_its_rules(tmp_path / "x.gchk")
    np.testing.assert_array_equal(found["lm_head"], arrays["wte.weight"].T)


def test_narrow_weights_are_widened_when_asked(tmp_path: Path) -> None:
    place = model(tmp_path, "bf16")
    with pytest.raises(ArgumentError, match=r"would be bf16, and gpt\.rs reads") as raised:
        convert(place, tmp_path / "x.gchk", names="gpt.rs")
    assert "--dtype f32" in raised.value.fix
    convert(place, tmp_path / "x.gchk", names="gpt.rs", dtype=gptrs.ptir.f32)
    logits = gptrs.load(place).forward(TOKENS).numpy()
    np.testing.assert_array_equal(gptrs.load(tmp_path / "x.gchk").forward(TOKENS).numpy(), logits)


def test_another_gelu_is_noted(tmp_path: Path, cli: Cli) -> None:
    place, file = model(tmp_path, activation_function="gelu_new"), tmp_path / "x.gchk"
    done = cli("convert", str(place), str(file), "--names", "gpt.rs")
    assert (done.code, done.err) == (0, "note: gpt.rs computes gelu for gelu_new\n")
    read_by_its_rules(file)
    ours, theirs = (gptrs.load(path).forward(TOKENS).numpy() for path in (place, file))
    assert 0 < np.abs(ours - theirs).max() < 0.05


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, cli: Cli) -> None:
    place = model(tmp_path)
    for verb, name in (("convert", "x.gchk"), ("export", "y.gchk")):
        done = cli(verb, str(place), str(tmp_path / name), "--names", "gpt.rs")
        assert (done.code, done.err) == (0, "")
    assert (tmp_path / "x.gchk").read_bytes() == (tmp_path / "y.gchk").read_bytes()
    info = json.loads(cli("info", str(tmp_path / "x.gchk"), "--json").out)
    assert info["config"]["embed_dim"] == 32
    wrong = cli("convert", str(place), str(tmp_path / "z.gchk"), "--names", "others")
    assert (wrong.code, wrong.out) == (2, "")
    assert "'others'" in wrong.err


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"activation_function": "relu"},
            "activation_function is relu, and in models of gpt.rs it",
        ),
        (
            {"layer_norm_epsilon": 1e-6},
            "layer_norm_epsilon is 1e-06, and in models of gpt.rs it is",
        ),
        ({"scale_attn_weights": False}, "scale_attn_weights is False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ({"n_inner": 33}, "n_inner is 33, and in models of gpt.rs it is a multiple of n_embd 32"),
    ],
    ids=str,
)
def test_models_that_it_does_not_have(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        convert(model(tmp_path, **fields), tmp_path / "x.gchk", names="gpt.rs")
    assert said in raised.value.problem
    assert not (tmp_path / "x.gchk").exists()


@pytest.mark.slow
def test_what_has_no_such_names(tmp_path: Path) -> None:
    place = model(tmp_path)
    with pytest.raises(ArgumentError, match=r"the names of gpt\.rs are for checkpoints"):
        convert(place, tmp_path / "directory", names="gpt.rs")
    with pytest.raises(ArgumentError, match=r"names is 'me', expected one of gpt\.rs"):
        gptrs.export(gptrs.load(place), tmp_path / "x.gchk", names="me")
    resnet(tmp_path / "images")
    with pytest.raises(ArgumentError, match="is of the type resnet, and only gpt2 is written"):
        convert(tmp_path / "images", tmp_path / "x.gchk", names="gpt.rs")
