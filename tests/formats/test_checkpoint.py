"""Checkpoints (GPTRSCHK): layout in bytes, round trips, and files that are refused."""

from __future__ import annotations

import math
import os
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import events, ptir
from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.checkpoint import CheckpointFile, is_checkpoint, write_checkpoint
from gptrs.formats.write_events import PieceWritten
from gptrs.ir.parameter import Parameter
from gptrs.ir.types import Type, f32
from tests.support.stored import Arrays, assert_same, fill_disk, read_checkpoint

# The layout by hand: 16 bytes, 31 of JSON, 4, and an index of
# 4 + (29 + 16 + 1 + 2·8) + (29 + 16 + 2 + 0·8) = 113 = 0x71 bytes, which ends at 164.
BY_HAND = bytes.fromhex(
    "47505452 5343484b"  # GPTRSCHK
    "02000000 1f000000"  # version, config_len
    "7b226b696e64223a22677074222c"  # {"kind":"gpt",
    "22636f6e666967223a7b226e223a317d7d"  # "config":{"n":1}}
    "71000000 02000000"  # index_len, tensor_count
    "01000000 61"  # name_len, "a"
    "17762fddd969a453925d65717ac3eea2"  # stored_base_id
    "02000000 0100000000000000 0200000000000000"  # rank, dims
    "00000000 00"  # dtype_tag f32, reserved
    "c000000000000000 0800000000000000"  # offset_abs 192, byte_len
    "02000000 c3a9"  # name_len, "é"
    "46d0ec742ceaad149f9a3d109d1bd9e9"  # stored_base_id
    "00000000"  # rank
    "02000000 00"  # dtype_tag bf16, reserved
    "0001000000000000 0200000000000000"  # offset_abs 256, byte_len
    + "00" * (192 - 164)
    + "0000803f 000020c0"  # 1.0, -2.5
    + "00" * (256 - 200)
    + "4040"  # 3.0
)


def tensors() -> Arrays:
    return {
        "a": np.array([[1.0, -2.5]], np.float32),
        "é": np.array(3.0, ml_dtypes.bfloat16),
    }


def test_the_bytes_are_those_of_the_layout(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "x", "gpt", {"n": 1}, tensors())
    assert (tmp_path / "x").read_bytes() == BY_HAND


def test_what_the_layout_says_comes_back(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(BY_HAND)
    file = CheckpointFile.open(tmp_path / "x")
    assert (file.kind, file.config, file.runtime) == ("gpt", {"n": 1}, {})
    assert_same(read_checkpoint(tmp_path / "x"), tensors())
    assert is_checkpoint(tmp_path / "x")


def test_every_dtype_shape_and_configuration_comes_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    written: Arrays = {
        f"{np.dtype(dtype)} {shape}": (100 * random.standard_normal(shape)).astype(dtype)
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.int32)
        for shape in ((), (1,), (0,), (3, 0, 2), (5,), (2, 3, 4), (1,) * 8)
    }
    config: dict[str, Any] = {"é": ["\ud800", None, 1.5, {}], "large": 2**70}
    runtime = {"functional_overrides": {"softmax": "force=portable"}}
    write_checkpoint(tmp_path / "x", "wörter", config, written, runtime=runtime)
    file = CheckpointFile.open(tmp_path / "x")
    assert (file.kind, file.config, file.runtime) == ("wörter", config, runtime)
    assert_same(read_checkpoint(tmp_path / "x"), written)
    assert all(tensor.offset % 64 == 0 for tensor in file.tensors.values())


def test_views_tensors_and_parameters_are_written(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    given = {"view": array.T[::2], "tensor": ptir.tensor(array), "parameter": Parameter(array)}
    write_checkpoint(tmp_path / "x", "gpt", {}, given)
    expected = {"view": array.T[::2].copy(), "tensor": array, "parameter": array}
    assert_same(read_checkpoint(tmp_path / "x"), expected)


class Rows:
    """A source that says which rows it was asked for."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.asked: list[int] = []

    def load(self, name: str) -> NDArray[np.float32]:
        raise AssertionError("all of it was read at once")

    def load_rows(self, name: str, first: int, last: int) -> NDArray[np.float32]:
        count = min(last, self.shape[0]) - first
        self.asked.append(count)
        return np.full((count, *self.shape[1:]), first, np.float32)


@pytest.mark.slow
def test_writing_holds_a_part_of_a_parameter(tmp_path: Path) -> None:
    shape = (3, 2**21)
    source = Rows(shape)
    given = {
        name: Parameter.from_source(name, Type(shape, f32), source) for name in ("a", "b", "c")
    }
    pieces: list[int] = []
    with events.listen(lambda e: pieces.append(e.size) if isinstance(e, PieceWritten) else None):
        tracemalloc.start()
        write_checkpoint(tmp_path / "x", "gpt", {}, given)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = math.prod(shape) * 4
    assert peak < size  # 3 of them are written
    assert source.asked == [2, 1] * 3
    assert sum(pieces) == 3 * size
    rows = CheckpointFile.open(tmp_path / "x").tensors["c"].read()
    assert np.array_equal(rows[:, 0], [0, 0, 2])


def test_writing_keeps_the_old_file_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(BY_HAND)
    fill_disk(monkeypatch)
    with pytest.raises(ArgumentError, match="x cannot be written: No space left on device"):
        write_checkpoint(path, "gpt", {}, {"other": np.zeros(9, np.float32)})
    assert path.read_bytes() == BY_HAND
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    ("config", "given", "said"),
    [
        ({}, {"a": np.zeros(3)}, "'a' has dtype f64, expected one of f32, f16, bf16, si32"),
        ({}, {"a": "text"}, "'a' is a str, expected an array or a Tensor"),
        ({}, {"\udc80": np.zeros(3, np.float32)}, "is no UTF-8 text"),
        ({}, {"a\0": np.zeros(3, np.float32)}, r"'a\\x00' holds a NUL"),
        ({"a": math.nan}, {}, "the configuration is no JSON: Out of range"),
        ({"a": object()}, {}, "the configuration is no JSON: Object of type object"),
        ({"a": "x" * 2**24}, {}, "the configuration has 16777.* bytes, expected at most 16777216"),
    ],
    ids=["f64", "text", "name", "nul", "nan", "object", "long"],
)
def test_what_a_checkpoint_cannot_hold(tmp_path: Path, config: Any, given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        write_checkpoint(tmp_path / "x", "gpt", config, given)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="none does not exist"):
        CheckpointFile.open(tmp_path / "none")
    with pytest.raises(LoadError, match="cannot be read: "):
        CheckpointFile.open(tmp_path)
    with pytest.raises(LoadError, match="cannot be read: "):
        is_checkpoint(tmp_path)
