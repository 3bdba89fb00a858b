"""Weights that are truncated, hostile or not as configured: all refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs.errors import LoadError
from tests.support.loading import INDEX, WEIGHTS, change_config, change_tensors, refusal
from tests.support.models import VOCABULARY, config, in_files, tensors, write
from tests.support.traced_memory import least_peak

TOKENS = [1, 2, 3]


class TestWeights:
    def test_no_weights(self, directory: Path) -> None:
        (directory / WEIGHTS).unlink()
        refusal(directory, "has no weights", WEIGHTS, INDEX)

    def test_a_pickle_is_never_opened(self, directory: Path) -> None:
        (directory / WEIGHTS).rename(directory / "pytorch_model.bin")
        refusal(directory, "pytorch_model.bin", "pickle", "safe_serialization")

    @pytest.mark.parametrize("kept", [0, 7, 8, 100, -1], ids=str)
    def test_cut_short(self, directory: Path, kept: int) -> None:
        file = directory / WEIGHTS
        file.write_bytes(file.read_bytes()[:kept])
        refusal(directory, f"{WEIGHTS} is no complete safetensors file", "download")

    def test_cut_short_after_it_was_opened(self, directory: Path) -> None:
        model = gptrs.load(directory)
        with (directory / WEIGHTS).open("r+b") as file:
            file.truncate(5000)
        with pytest.raises(LoadError, match="5000 bytes, it had"):
            model.forward(TOKENS)

    def test_written_over_after_it_was_opened(self, directory: Path) -> None:
        """As many bytes as before, in the same file: weights of two models would be mixed."""
        file = directory / WEIGHTS
        model, data = gptrs.load(directory), file.read_bytes()
        before = file.stat().st_mtime_ns
        with file.open("r+b") as opened:
            opened.seek(-4000, os.SEEK_END)
            opened.write(bytes(4000))
        os.utime(
            file, ns=(before, max(before + 1, file.stat().st_mtime_ns))
        )  # as clocks are coarse
        assert file.stat().st_size == len(data)
        with pytest.raises(LoadError) as found:
            model.forward(TOKENS)
        assert f"{file} was written to after it was opened" in found.value.problem
        assert "load the model again" in found.value.fix

    def test_another_file_of_its_name_changes_nothing(self, directory: Path) -> None:
        expected = gptrs.load(directory).forward(TOKENS).numpy()
        model = gptrs.load(directory)
        (directory / "new").write_bytes(bytes((directory / WEIGHTS).stat().st_size))
        (directory / "new").replace(directory / WEIGHTS)
        np.testing.assert_array_equal(model.forward(TOKENS).numpy(), expected)

    @pytest.mark.parametrize(
        "header",
        [
            b"not json",
            b'{"wte.weight": {}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,400]}}',
            b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}',
            b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
            b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},'
            b'"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
            b'"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}',
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
            b'{"a":{"dtype":"F31","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[3.0],"data_offsets":[0,12]}}',
            b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0]}}',
            b'{"a":{"dtype":"F32","shape":[3]}}',
            b'{"\xff":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}',
            b'{"a":' * 10**5,
            b'[{"dtype":"F32","shape":[3],"data_offsets":[0,12]}]',
        ],
        ids=[
            *("no JSON", "empty", "outside", "size", "hole", "order", "negative", "huge"),
            *("overlap", "twice", "hole between", "bytes left", "dtype", "float", "one offset"),
            *("no offsets", "no UTF-8", "deep", "list"),
        ],
    )
    def test_hostile_headers(self, directory: Path, header: bytes) -> None:
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
        refusal(directory, WEIGHTS, "no complete safetensors file")

    @pytest.mark.parametrize("length", [1 << 20, 1 << 63, (1 << 64) - 1])
    def test_a_header_longer_than_the_file(self, directory: Path, length: int) -> None:
        (directory / WEIGHTS).write_bytes(length.to_bytes(8, "little") + b"{}")
        refusal(directory, WEIGHTS, f"header_len is {length}, expected at most 2")

    def test_a_header_longer_than_headers_are(self, directory: Path) -> None:
        with (directory / WEIGHTS).open("wb") as file:
            file.write((2 * 10**8).to_bytes(8, "little"))
            file.truncate(3 * 10**8)  # it takes no room on the disk
        said = "header_len is 200000000, expected at most 100000000"
        assert least_peak(lambda: refusal(directory, WEIGHTS, said)) < 10**6

    @pytest.mark.parametrize("shape", [[0] * 65, [0, 2**60], [2**63, 0]], ids=str)
    def test_shapes_that_no_array_has(self, directory: Path, shape: list[int]) -> None:
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
        header = json.dumps({"transformer.ln_f.bias": entry}).encode()
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header)
        refusal(directory, WEIGHTS, "expected at most 64 axes")

    def test_a_name_that_is_there_twice_is_named(self, directory: Path) -> None:
        entry = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        header = b"{" + entry + b"," + entry + b"}"
        (directory / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        refusal(directory, WEIGHTS, "the name 'a' is there twice, expected once")

    def test_a_missing_tensor(self, directory: Path) -> None:
        change_tensors(directory, lambda arrays: arrays.pop("transformer.h.1.ln_2.bias"))
        refusal(directory, WEIGHTS, "no tensor 'h.1.ln_2.bias' [32]", "27 tensors", "config.json")

    def test_fewer_layers_than_configured(self, directory: Path) -> None:
        change_config(directory, n_layer=1_000_000_000)
        refusal(directory, "no tensor 'h.2.attn.c_attn.weight'")

    def test_a_missing_head(self, directory: Path) -> None:
        change_config(directory, tie_word_embeddings=False)
        refusal(directory, "no tensor 'lm_head.weight'")

    def test_extra_tensors(self, directory: Path) -> None:
        change_config(directory, n_layer=1)
        refusal(directory, "no place for tensor 'transformer.h.1.", "and 11 more", "config.json")

    def test_a_wrong_shape(self, directory: Path) -> None:
        change_config(directory, n_positions=1024)
        refusal(directory, "'transformer.wpe.weight'", "[48,32]", "[1024,32]", "config.json")

    @pytest.mark.parametrize(
        ("dtype", "name"),
        [(np.float64, "F64"), (np.int8, "I8"), (np.bool_, "BOOL"), (ml_dtypes.float8_e5m2, "F8")],
    )
    def test_an_unknown_dtype(self, directory: Path, dtype: Any, name: str) -> None:
        change_tensors(
            directory,
            lambda arrays: arrays.update({"transformer.ln_f.bias": np.zeros(32, dtype)}),
        )
        refusal(directory, "'transformer.ln_f.bias'", f"dtype {name}", "f32, f16, bf16")

    def test_one_tensor_twice(self, directory: Path) -> None:
        change_tensors(directory, lambda arrays: arrays.update({"wpe.weight": np.zeros(2)}))
        refusal(directory, "'wpe.weight'", "'transformer.wpe.weight'")

    def test_a_head_that_is_no_copy(self, directory: Path) -> None:
        head = np.zeros((VOCABULARY, 32), np.float32)
        change_tensors(directory, lambda arrays: arrays.update({"lm_head.weight": head}))
        refusal(
            directory,
            *("'lm_head.weight' differs from 'transformer.wte.weight'", "tie_word_embeddings"),
            use=lambda model: model.forward(TOKENS),
        )


class TestShards:
    @pytest.fixture
    def sharded(self, tmp_path: Path) -> Path:
        return write(tmp_path, config(), in_files(tensors(config())), shards=2)

    def change_index(self, directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
        index = json.loads((directory / INDEX).read_text())
        change(index)
        (directory / INDEX).write_text(json.dumps(index))

    def test_a_missing_shard(self, sharded: Path) -> None:
        (sharded / "model-00002-of-00002.safetensors").unlink()
        refusal(sharded, "model-00002-of-00002.safetensors does not exist", "download")

    def test_a_shard_that_is_cut_short(self, sharded: Path) -> None:
        file = sharded / "model-00002-of-00002.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        refusal(sharded, "model-00002-of-00002.safetensors is no complete")

    def test_a_tensor_that_is_not_where_the_index_says(self, sharded: Path) -> None:
        (sharded / "model-00002-of-00002.safetensors").write_bytes(
            (sharded / "model-00001-of-00002.safetensors").read_bytes()
        )
        refusal(sharded, "model-00002-of-00002.safetensors has no tensor", INDEX)

    def test_a_tensor_that_the_index_lacks(self, sharded: Path) -> None:
        self.change_index(sharded, lambda index: index["weight_map"].pop("transformer.wpe.weight"))
        refusal(sharded, f"{INDEX} has no tensor 'wpe.weight'")

    @pytest.mark.parametrize(
        "place",
        [
            *("../good.safetensors", "/etc/passwd", "/good.safetensors", "a/good.safetensors"),
            *("..", ".", "", "a\\good.safetensors", "a\x00.safetensors", "pytorch_model.bin", None),
        ],
    )
    def test_files_outside_the_directory(self, sharded: Path, place: object) -> None:
        self.change_index(sharded, lambda index: index["weight_map"].update(x=place))
        refusal(sharded, INDEX, f"'x' is in {place!r}", "file of this directory")

    @pytest.mark.parametrize("places", [None, {}, [], "model.safetensors"])
    def test_no_weight_map(self, sharded: Path, places: object) -> None:
        self.change_index(sharded, lambda index: index.update(weight_map=places))
        refusal(sharded, INDEX, "weight_map")
