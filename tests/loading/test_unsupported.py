"""Models in unsupported formats are refused by the name of the format."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from gptrs.formats.safetensors_writer import write_safetensors
from tests.support.loading import WEIGHTS
from tests.support.models import config, tensors, tiny_gpt2


def refused(*places: Path) -> set[str]:
    """What is said of each, by all that opens models."""
    said: set[str] = set()
    for place in places:
        for opened in (gptrs.load, gptrs.estimate_memory):
            with pytest.raises(LoadError) as found:
                opened(place)
            assert found.value.fix
            said.add(str(found.value))
    return said


def zipped(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickle.dumps({}))


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "model.gguf": (lambda file: file.write_bytes(b"GGUF\3\0\0\0"), "is a GGUF file"),
    "weights": (lambda file: file.write_bytes(b"GGUF\3\0\0\0" + bytes(100)), "is a GGUF file"),
    "pytorch_model.bin": (zipped, "is a pickle, which may run any program"),
    "model.pt": (lambda file: file.write_bytes(pickle.dumps({})), "is a pickle"),
    "model.pth": (zipped, "is a pickle"),
    "model.pkl": (lambda file: file.write_bytes(pickle.dumps([1])), "is a pickle"),
    "model.ckpt": (lambda file: file.write_bytes(b"anything"), "is a pickle"),
    "saved": (zipped, "is a pickle"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str) -> None:
    make, kind = FILES[name]
    make(tmp_path / name)
    (said,) = refused(tmp_path / name)
    assert said.startswith(f"{tmp_path / name} {kind}")


@pytest.mark.parametrize("name", [name for name in FILES if "." in name])
@pytest.mark.parametrize("configured", [True, False])
def test_directories(tmp_path: Path, name: str, configured: bool) -> None:
    make, kind = FILES[name]
    make(tmp_path / name)
    if configured:
        (tmp_path / "config.json").write_text(json.dumps(config()))
    (said,) = refused(tmp_path)
    assert said.startswith(f"{tmp_path / name} {kind}")


@pytest.mark.parametrize(
    "given",
    [
        {"quant_method": "gptq", "bits": 4},
        {"load_in_8bit": True},
        "awq",
        ["x" * 10**6],
    ],
    ids=["gptq", "bitsandbytes", "text", "long"],
)
def test_a_configuration_of_quantised_weights(tmp_path: Path, given: Any) -> None:
    directory = tiny_gpt2(tmp_path, quantization_config=given)
    with pytest.raises(LoadError) as found:
        gptrs.load(directory)
    assert "config.json: quantization_config says that the weights are quant" in str(found.value)
    assert "quantised from" in found.value.fix
    assert len(str(found.value)) < 1000


def test_no_quantisation_is_none(tmp_path: Path) -> None:
    model = gptrs.load(tiny_gpt2(tmp_path, quantization_config=None))
    assert model.forward([1, 2]).shape[0] == 2


NAME = "h.0.mlp.c_fc.weight"


def gptq(weights: dict[str, Any]) -> None:
    rows, columns = weights.pop(NAME).shape
    prefix = NAME.removesuffix("weight")
    weights[prefix + "qweight"] = np.zeros((rows // 8, columns), np.int32)
    weights[prefix + "qzeros"] = np.zeros((1, columns // 8), np.int32)
    weights[prefix + "scales"] = np.ones((1, columns), np.float16)
    weights[prefix + "g_idx"] = np.zeros(rows, np.int32)


def bitsandbytes(weights: dict[str, Any]) -> None:
    weights[NAME] = np.zeros((weights[NAME].size // 2, 1), np.uint8)
    weights[NAME + ".absmax"] = np.ones(8, np.float32)


def scaled(weights: dict[str, Any]) -> None:
    weights[NAME] = weights[NAME].astype(ml_dtypes.float8_e4m3fn)
    weights[NAME + "_scale"] = np.ones(1, np.float32)


def in_bytes(weights: dict[str, Any]) -> None:
    weights[NAME] = weights[NAME].astype(np.int8)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "gptq": (gptq, "'h.0.mlp.c_fc.g_idx' belongs to a weight that is quantised"),
    "bitsandbytes": (bitsandbytes, f"'{NAME}.absmax' belongs to a weight that is quantised"),
    "fp8": (scaled, "has dtype F8_E4M3, as quantised weights have, expected one of"),
    "int8": (in_bytes, "has dtype I8, as quantised weights have, expected one of"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_quantised_tensors(tmp_path: Path, kind: str) -> None:
    change, expected = CHANGES[kind]
    directory, weights = tiny_gpt2(tmp_path), dict[str, Any](tensors(config()))
    change(weights)
    write_safetensors(directory / WEIGHTS, weights)
    (said,) = refused(directory)
    assert str(directory / WEIGHTS) in said
    assert expected in said
    assert "quantised from" in said
