"""Conversion of models between formats: lossless, and no partial output."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

import gptrs
from gptrs.errors import ArgumentError, LoadError, PtirError
from gptrs.formats.archive import read_archive, write_archive
from gptrs.formats.checkpoint import CheckpointFile, write_checkpoint
from gptrs.formats.kinds import Format
from gptrs.formats.model_files import open_files
from gptrs.ir.types import f16, f32, f64
from gptrs.loading.convert import convert
from tests.support import stored
from tests.support.image_models import images, resnet, state, with_random_statistics
from tests.support.lazy_torch import torchvision
from tests.support.models import (
    config,
    in_files,
    load_arrays,
    save_arrays,
    tensors,
    tiny_gpt2,
    write,
)
from tests.support.stored import Arrays, fill_disk

pytestmark = pytest.mark.usefixtures("reference")


def arrays_of(path: Path) -> Arrays:
    return {tensor.key: tensor.read() for tensor in open_files(path).tensors}


def assert_same(found: Arrays, expected: Arrays) -> None:
    """The same arrays in any order."""
    stored.assert_same(dict(sorted(found.items())), dict(sorted(expected.items())))


@pytest.fixture(params=["f32", "bf16"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    runtime = {"functional_overrides": {"softmax": "force=portable"}}
    made = tiny_gpt2(tmp_path / "model", request.param, runtime=runtime)
    (made / "generation_config.json").write_text('{"eos_token_id": 1}')
    return made


NAMES = {
    Format.DIRECTORY: "out",
    Format.CHECKPOINT: "x.gchk",
    Format.SAFETENSORS: "x.safetensors",
    Format.ARCHIVE: "x.gten",
}


@pytest.mark.parametrize("second", Format)
@pytest.mark.parametrize("first", Format)
def test_every_format_becomes_every_other(
    tmp_path: Path, model: Path, first: Format, second: Format
) -> None:
    expected = load_arrays(model / "model.safetensors")
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
    one, two = tmp_path / "1" / NAMES[first], tmp_path / "2" / NAMES[second]
    done = convert(model, one)
    assert (done.count, done.size) == (28, sum(array.nbytes for array in expected.values()))
    assert_same(arrays_of(one), expected)
    without = first in (Format.SAFETENSORS, Format.ARCHIVE)
    convert(one, two, config=model / "config.json" if without else None)
    assert_same(arrays_of(two), expected)
    if second is Format.DIRECTORY:
        given = json.loads((model / "config.json").read_text())
        assert json.loads((two / "config.json").read_text()) == given
        assert (two / "tokenizer.json").exists() is not without
        weights = (two / "model.safetensors").read_bytes()
        assert weights == (model / "model.safetensors").read_bytes()


def test_shards_are_split_and_joined(tmp_path: Path, model: Path) -> None:
    convert(model, tmp_path / "shards", shard_size=20_000)
    files = sorted(file.name for file in (tmp_path / "shards").glob("*.safetensors"))
    assert files[0] == f"model-00001-of-{len(files):05}.safetensors"
    assert len(files) > 2
    expected = load_arrays(model / "model.safetensors")
    index = json.loads((tmp_path / "shards" / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": sum(a.nbytes for a in expected.values())}
    assert sorted(index["weight_map"]) == sorted(expected)
    for name in files:
        arrays = load_arrays(tmp_path / "shards" / name)
        assert len(arrays) == 1 or sum(a.nbytes for a in arrays.values()) <= 20_000
    logits = gptrs.load(model).forward([1, 2, 3]).numpy()
    assert np.array_equal(gptrs.load(tmp_path / "shards").forward([1, 2, 3]).numpy(), logits)
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    convert(tmp_path / "shards", tmp_path / "1" / "x.gchk")
    convert(model, tmp_path / "2" / "x.gchk")
    one, two = ((tmp_path / folder / "x.gchk").read_bytes() for folder in "12")
    assert one == two


@pytest.mark.parametrize(("dtype", "name"), [(f32, "float32"), (f16, "float16")])
def test_floats_are_converted(tmp_path: Path, dtype: Any, name: str) -> None:
    settings = config(dtype="bfloat16", torch_dtype="bfloat16")
    arrays = in_files(tensors(settings), "bf16")
    source = write(tmp_path / "model", settings, arrays)
    done = convert(source, tmp_path / "x.gchk", dtype=dtype)
    assert_same(
        arrays_of(tmp_path / "x.gchk"),
        {key: array.astype(dtype.numpy) for key, array in arrays.items()},
    )
    assert done.size == sum(array.size for array in arrays.values()) * dtype.numpy.itemsize
    settings = CheckpointFile.open(tmp_path / "x.gchk").config
    assert (settings["dtype"], settings["torch_dtype"]) == (name, name)


def test_integers_stay_and_what_becomes_infinite_is_refused(tmp_path: Path) -> None:
    given: Arrays = {"i": np.array([2**30], np.int32), "f": np.array([1.5, np.inf], np.float32)}
    write_archive(tmp_path / "x.gten", given)
    convert(tmp_path / "x.gten", tmp_path / "y.gten", dtype=f16)
    found = read_archive(tmp_path / "y.gten")
    assert_same(found, {"i": given["i"], "f": given["f"].astype(np.float16)})
    write_archive(tmp_path / "x.gten", {"f": np.array([1, -70000], np.float32)})
    with pytest.raises(ArgumentError, match=r"x.gten: 'f' holds -70000.0, which is too large for"):
        convert(tmp_path / "x.gten", tmp_path / "z.gten", dtype=f16)
    assert not (tmp_path / "z.gten").exists()


def test_what_a_model_does_not_read_may_be_left_out(tmp_path: Path) -> None:
    resnet(tmp_path / "model")
    done = convert(tmp_path / "model", tmp_path / "x.gchk")
    assert len(done.left_out) > 3
    assert all(name.endswith(".num_batches_tracked") for name in done.left_out)
    assert convert(tmp_path / "model", tmp_path / "copy").left_out == ()
    expected = load_arrays(tmp_path / "model" / "model.safetensors")
    assert_same(load_arrays(tmp_path / "copy" / "model.safetensors"), expected)


def test_torchvision_says_its_configuration_itself(tmp_path: Path) -> None:
    made = with_random_statistics(torchvision.ResNet((1, 2), (8, 12), 8, False))
    save_arrays(state(made), tmp_path / "x.safetensors")
    convert(tmp_path / "x.safetensors", tmp_path / "x.gchk")
    assert CheckpointFile.open(tmp_path / "x.gchk").kind == "resnet"
    given = images(1, 40, 40)
    expected = gptrs.load(tmp_path / "x.safetensors").forward(given).numpy()
    assert np.array_equal(gptrs.load(tmp_path / "x.gchk").forward(given).numpy(), expected)


def test_every_dtype_of_safetensors(tmp_path: Path) -> None:
    kinds = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    small = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
    given = {str(np.dtype(kind)): np.ones((2, 3), kind) for kind in [*kinds, *small]}
    given["empty"], given["scalar"] = np.zeros((0, 2), "f4"), np.array(3, "i2")
    save_file(given, tmp_path / "x.safetensors")
    convert(tmp_path / "x.safetensors", tmp_path / "y.safetensors")
    assert_same(arrays_of(tmp_path / "y.safetensors"), given)


@pytest.mark.slow
def test_a_large_tensor_is_never_there_whole(tmp_path: Path) -> None:
    array = np.ones((2**13, 2**11), np.float32)  # 64 MiB
    save_arrays({"a": array, "b": array}, tmp_path / "x.safetensors")
    size = array.nbytes
    del array
    tracemalloc.start()
    convert(tmp_path / "x.safetensors", tmp_path / "y.gten", dtype=f16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size
    assert (tmp_path / "y.gten").stat().st_size > size


class TestOverwriting:
    def test_it_is_refused(self, tmp_path: Path, model: Path) -> None:
        for name in ("x.gchk", "out"):
            convert(model, tmp_path / name)
            before = arrays_of(tmp_path / name)
            with pytest.raises(ArgumentError, match=f"{name} is there already") as raised:
                convert(model, tmp_path / name, dtype=f16)
            assert "--force" in raised.value.fix
            assert_same(arrays_of(tmp_path / name), before)

    def test_with_force_only_the_model_is_replaced(self, tmp_path: Path, model: Path) -> None:
        convert(model, tmp_path / "out", shard_size=20_000)
        (tmp_path / "out" / "notes.txt").write_text("mine")
        convert(model, tmp_path / "out", dtype=f16, force=True)
        assert sorted(os.listdir(tmp_path / "out")) == [
            *("config.json", "generation_config.json", "model.safetensors", "notes.txt"),
            "tokenizer.json",
        ]
        assert {str(a.dtype) for a in arrays_of(tmp_path / "out").values()} == {"float16"}
        convert(model, tmp_path / "out", shard_size=20_000, force=True)
        assert not (tmp_path / "out" / "model.safetensors").exists()
        gptrs.load(tmp_path / "out").forward([1])

    def test_the_current_directory(
        self, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path / "out")
        convert(model, ".")
        with pytest.raises(ArgumentError, match="is there already"):
            convert(model, ".")
        convert(model, ".", force=True)
        assert_same(arrays_of(tmp_path / "out"), arrays_of(model))
        assert sorted(os.listdir()) == sorted(os.listdir(model))

    def test_another_tokenizer_stays(self, tmp_path: Path, model: Path) -> None:
        (tmp_path / "tokenizer.json").write_text("{}")
        with pytest.raises(ArgumentError, match=r"tokenizer.json is there already, and differs"):
            convert(model, tmp_path / "x.gchk")
        assert not (tmp_path / "x.gchk").exists()
        assert convert(model, tmp_path / "x.gchk", force=True).copied == (
            "generation_config.json",
            "tokenizer.json",
        )
        assert convert(model, tmp_path / "y.gchk").copied == ()


def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = in_files(tensors(config()))
    arrays["transformer.wte.weight"][3, 5] = 1e30
    source = write(tmp_path / "model", config(), arrays)
    for name in NAMES.values():
        with pytest.raises(ArgumentError, match="too large for f16"):
            convert(source, tmp_path / name, dtype=f16, shard_size=20_000)
        assert os.listdir(tmp_path) == ["model"]
    fill_disk(monkeypatch)
    for name in NAMES.values():
        with pytest.raises(ArgumentError, match="cannot be written: No space left on device"):
            convert(source, tmp_path / name)
        assert os.listdir(tmp_path) == ["model"]


def _archive(folder: Path) -> Path:
    write_archive(folder / "a.gten", {"a": np.zeros(2, np.float32)})
    return folder / "a.gten"


def _doubles(folder: Path) -> Path:
    save_arrays({"a": np.zeros(2)}, folder / "d.safetensors")
    return folder / "d.safetensors"


def _unknown(folder: Path) -> Path:
    header = b'{"a":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}'
    (folder / "u.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    return folder / "u.safetensors"


def _unnamed(folder: Path) -> Path:
    return write(folder / "unnamed", {"model_type": 3}, {"a": np.zeros(2, np.float32)})


def _other(folder: Path) -> Path:
    write_checkpoint(folder / "o.gchk", "deepseek_v3", {"n": 1}, {"a": np.zeros(2, np.float32)})
    return folder / "o.gchk"


Made = Callable[[Path], Path]
REFUSED: dict[str, tuple[Made, str, dict[str, Any], str]] = {
    "no-source": (lambda p: p / "none", "x.gchk", {}, "there is no model directory"),
    "ending": (_archive, "x.bin", {}, "ends in '.bin', expected .gchk, .safetensors, .gten, or"),
    "same": (_archive, "a.gten", {"force": True}, "a.gten is what is read"),
    "no-folder": (_archive, "no/x.gten", {}, "x.gten cannot be written: No such file"),
    "no-folder-2": (_other, "no/out", {}, "out cannot be written: No such file"),
    "directory": (
        _archive,
        "folder",
        {"to": Format.ARCHIVE},
        "folder is a directory, expected a f",
    ),
    "file": (_other, "file", {"force": True}, "file is no directory, which is what to write"),
    "device": (_archive, os.devnull, {"to": Format.ARCHIVE, "force": True}, "is a device, a pipe"),
    "no-config": (_archive, "x.gchk", {}, "a.gten has no configuration, which a checkpoint needs"),
    "no-config-2": (_archive, "out", {}, "a.gten has no configuration, which a directory needs"),
    "config": (_other, "x.gchk", {"config": "c.json"}, "o.gchk has a configuration, and --config"),
    "config-missing": (_archive, "x.gchk", {"config": "c.json"}, "c.json does not exist"),
    "kind": (_unnamed, "x.gchk", {}, "model_type is 3, expected a string"),
    "f64": (_doubles, "x.gten", {}, "'a' has dtype F64, expected one of f32, f16, bf16, si32"),
    "unknown": (_unknown, "x.safetensors", {}, "'a' has dtype F8_E8M0, expected one of f64, f32"),
    "dtype": (_archive, "x.gten", {"dtype": f64}, "dtype is f64, expected f32, f16 or bf16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted(tmp_path: Path, name: str) -> None:
    make, destination, options, said = REFUSED[name]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    source = make(tmp_path)
    if "config" in options:
        options = {**options, "config": tmp_path / options["config"]}
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(PtirError, match=said):
        convert(source, tmp_path / destination, **options)
    assert sorted(os.listdir(tmp_path)) == before


def test_models_that_cannot_run_here_are_converted_all_the_same(tmp_path: Path) -> None:
    convert(_other(tmp_path), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {
        "n": 1,
        "model_type": "deepseek_v3",
    }
    convert(tmp_path / "out", tmp_path / "y.gchk")
    assert CheckpointFile.open(tmp_path / "y.gchk").kind == "deepseek_v3"
    with pytest.raises(LoadError, match=r"kind is 'deepseek_v3', expected one of .*gpt, gpt2"):
        gptrs.load(tmp_path / "y.gchk")
