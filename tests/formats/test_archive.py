"""Tensor archives: layout in bytes, round trips, and files that are refused."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, LoadError
from gptrs.formats.archive import ArchiveFile, read_archive, write_archive
from tests.support.stored import Arrays, assert_same, fill_disk

DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.int32]
SHAPES = [(), (1,), (0,), (3, 0, 2), (5,), (2, 3, 4), (1,) * 8]

# The layout by hand: an index of 4 + (29 + 1 + 2·8) + (29 + 2 + 0·8) = 81 bytes after 16 of header.
BY_HAND = bytes.fromhex(
    "47505452 5354454e"  # GPTRSTEN
    "02000000 51000000 02000000"  # version, index_len, tensor_count
    "01000000 61"  # name_len, "a"
    "02000000 0100000000000000 0200000000000000"  # rank, dims
    "00000000 00"  # dtype_tag f32, reserved
    "8000000000000000 0800000000000000"  # offset_abs 128, byte_len
    "02000000 c3a9"  # name_len, "é"
    "00000000"  # rank
    "02000000 00"  # dtype_tag bf16, reserved
    "c000000000000000 0200000000000000"  # offset_abs 192, byte_len
    + "00" * (128 - 97)
    + "0000803f 000020c0"  # 1.0, -2.5
    + "00" * (192 - 136)
    + "4040"  # 3.0
)


def tensors() -> Arrays:
    return {
        "a": np.array([[1.0, -2.5]], np.float32),
        "é": np.array(3.0, ml_dtypes.bfloat16),
    }


def test_the_bytes_are_those_of_the_layout(tmp_path: Path) -> None:
    write_archive(tmp_path / "x.gten", tensors())
    assert (tmp_path / "x.gten").read_bytes() == BY_HAND
    assert_same(read_archive(str(tmp_path / "x.gten")), tensors())


def test_every_dtype_and_shape_comes_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    written: Arrays = {
        f"{np.dtype(dtype)} {shape}": (100 * random.standard_normal(shape)).astype(dtype)
        for dtype in DTYPES
        for shape in SHAPES
    }
    written["nan"] = np.array([np.nan, -0.0, np.inf], np.float32)
    write_archive(tmp_path / "x", written)
    assert_same(read_archive(tmp_path / "x"), written)
    for array in read_archive(tmp_path / "x").values():
        array[...] = 0  # they are their reader's own


def test_views_and_tensors_are_written(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    write_archive(
        tmp_path / "x", {"view": array.T[::2], "big": array.astype(">f4"), "t": ptir.tensor(array)}
    )
    expected = {"view": array.T[::2].copy(), "big": array, "t": array}
    assert_same(read_archive(tmp_path / "x"), expected)


def test_no_tensors(tmp_path: Path) -> None:
    write_archive(tmp_path / "x", {})
    assert (tmp_path / "x").read_bytes() == b"GPTRSTEN" + struct.pack("<III", 2, 4, 0)
    assert read_archive(tmp_path / "x") == {}


def test_tensors_may_lie_anywhere_and_reserved_bytes_do_not_matter(tmp_path: Path) -> None:
    """Other writers pack them closely, in another order, and keep a flag in the reserved byte."""
    entries = entry("b", offset=104, reserved=1) + entry("a", offset=96, reserved=1)
    data = struct.pack("<ff", 1, 2) + struct.pack("<ff", 3, 4)
    (tmp_path / "x").write_bytes(archive(entries, 2, data))
    found = read_archive(tmp_path / "x")
    assert {name: array.tolist() for name, array in found.items()} == {"b": [3, 4], "a": [1, 2]}


def test_writing_keeps_the_old_file_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    write_archive(path, tensors())
    fill_disk(monkeypatch)
    with pytest.raises(ArgumentError, match="x cannot be written: No space left on device"):
        write_archive(path, {"other": np.zeros(9, np.float32)})
    assert path.read_bytes() == BY_HAND
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": np.zeros(3)}, "'a' has dtype f64, expected one of f32, f16, bf16, si32"),
        ({"a": np.zeros(3, np.int64)}, "'a' has dtype si64"),
        ({"a": 3}, "'a' is a int, expected an array or a Tensor"),
        ({"\udc80": np.zeros(3, np.float32)}, "is no UTF-8 text"),
        ({"a\0": np.zeros(3, np.float32)}, r"'a\\x00' holds a NUL"),
    ],
    ids=["f64", "i64", "number", "name", "nul"],
)
def test_what_an_archive_cannot_hold(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        write_archive(tmp_path / "x", given)
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be written: No such file or directory"):
        write_archive(tmp_path / "no" / "x", tensors())
    with pytest.raises(ArgumentError, match="is a directory, expected a file"):
        write_archive(tmp_path, tensors())
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="none does not exist"):
        read_archive(tmp_path / "none")
    with pytest.raises(LoadError, match="cannot be read: "):
        read_archive(tmp_path)


def entry(
    name: str | bytes = "a",
    dims: tuple[int, ...] = (2,),
    tag: int = 0,
    offset: int = 58,
    length: int = 8,
    reserved: int = 0,
    rank: int | None = None,
) -> bytes:
    """A tensor of the index; the first one's data begin at 58 when its name has one letter."""
    raw = name if isinstance(name, bytes) else name.encode()
    head = (
        struct.pack("<I", len(raw)) + raw + struct.pack("<I", len(dims) if rank is None else rank)
    )
    tail = struct.pack("<IBQQ", tag, reserved, offset, length)
    return head + struct.pack(f"<{len(dims)}Q", *dims) + tail


def archive(
    entries: bytes | None = None,
    count: int = 1,
    data: bytes = bytes(8),
    magic: bytes = b"GPTRSTEN",
    version: int = 2,
    index_length: int | None = None,
) -> bytes:
    entries = entry() if entries is None else entries
    index = struct.pack("<I", count) + entries
    length = len(index) if index_length is None else index_length
    return magic + struct.pack("<II", version, length) + index + data


TWICE = entry(offset=96) + entry(offset=104)
OVERLAPPING = entry("a", offset=96) + entry("b", offset=100)
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file has 0 bytes left for magic, expected at least 8"),
    "short": (b"GPTRSTEN\x02\0\0", "the file has 3 bytes left for version, expected at least 4"),
    "magic": (archive(magic=b"GPTRSCHK"), r"magic is b'GPTRSCHK', expected b'GPTRSTEN'"),
    "version-1": (archive(version=1), "version is 1, expected 2"),
    "version-3": (archive(version=3), "version is 3, expected 2"),
    "index-long": (archive(index_length=2**32 - 1), "index_len is 4294967295, expected at most 50"),
    "index-zero": (archive(index_length=0), "the index has 0 bytes left for tensor_count"),
    "index-cut": (
        archive(index_length=40),
        "the index has 6 bytes left for tensor 0 'a': byte_len",
    ),
    "index-over": (
        archive(entry(offset=62), index_length=45, data=bytes(12)),
        "index_len is 45, expected 42, the bytes of its",
    ),
    "count": (archive(count=2**32 - 1), "tensor_count is 4294967295, expected at most 1"),
    "count-zero": (archive(count=0), "index_len is 42, expected 4, the bytes of its tensors"),
    "name-long": (
        archive(b"\xff\xff\xff\xff" + entry()[4:]),
        "the index has 34 bytes left for tensor 0: name, expected at least 4294967295",
    ),
    "name-bytes": (archive(entry(b"\xff")), r"tensor 0: name is b'\\xff', expected UTF-8 text"),
    "name-nul": (archive(entry(b"\0")), r"tensor 0: name is '\\x00', expected text without NUL"),
    "name-twice": (
        archive(TWICE, 2, data=bytes(24)),
        "tensor 1: name is 'a', expected a name that is",
    ),
    "rank": (archive(entry(rank=65)), "tensor 0 'a': rank is 65, expected at most 64"),
    "rank-beyond": (archive(entry(rank=9)), "bytes left for tensor 0 'a': dims"),
    "dims-overflow": (
        archive(entry(dims=(2**32, 2**32), length=0, offset=66)),
        r"tensor 0 'a': dims is \[4294967296,4294967296\], expected a size that memory can",
    ),
    "dims-overflow-empty": (
        archive(entry(dims=(0, 2**63), length=0, offset=66)),
        r"tensor 0 'a': dims is \[0,9223372036854775808\]",
    ),
    "tag": (archive(entry(tag=4)), r"dtype_tag is 4, expected one of 0 \(f32\), 1 \(f16\)"),
    "length-short": (archive(entry(length=7)), r"byte_len is 7, expected 8, the bytes of f32\[2\]"),
    "length-long": (archive(entry(length=2**63)), "byte_len is 9223372036854775808, expected 8"),
    "length-tag": (archive(entry(tag=1)), r"byte_len is 8, expected 4, the bytes of f16\[2\]"),
    "offset-in-index": (
        archive(entry(offset=16)),
        "offset_abs is 16, expected 58 to 58, so that 8",
    ),
    "offset-beyond": (archive(entry(offset=59)), "offset_abs is 59, expected 58 to 58"),
    "offset-huge": (
        archive(entry(offset=2**64 - 1)),
        "offset_abs is 18446744073709551615, expected",
    ),
    "data-cut": (archive(data=bytes(7)), "offset_abs is 58, expected 8 bytes after the index"),
    "overlap": (
        archive(OVERLAPPING, 2, data=bytes(24)),
        "tensor 'b': offset_abs is 100, expected at least 104, where 'a' ends",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(tmp_path: Path, name: str) -> None:
    data, said = MALFORMED[name]
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(LoadError, match=said) as caught:
        read_archive(tmp_path / "x")
    assert caught.value.problem.startswith(str(tmp_path / "x"))
    assert caught.value.fix


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(archive())
    opened = ArchiveFile.open(path)
    path.write_bytes(archive(data=bytes(4)))
    with pytest.raises(LoadError, match="x has 62 bytes, it had 66 when it was opened"):
        opened.tensors["a"].read()


def changed(data: bytearray, random: np.random.Generator) -> bytearray:
    """``data`` with some of its bytes, mostly of its header and index, replaced, lost or added."""
    at = int(random.integers(min(len(data), 97) if random.random() < 0.5 else len(data)))
    count = int(random.choice([1, 4, 8]))
    fill = int(random.choice([0, 1, 2, 4, 127, 255]))
    match random.integers(5):
        case 0:
            del data[at:]
        case 1:
            del data[at : at + count]
        case 2:
            data[at:at] = bytes([fill]) * count
        case _:
            data[at : at + count] = bytes([fill]) * len(data[at : at + count])
    return data or bytearray(1)


@pytest.mark.slow
def test_changed_files_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    refused = 0
    for seed in range(500):
        random = np.random.default_rng(seed)
        data = bytearray(BY_HAND)
        for _ in range(random.integers(1, 3)):
            data = changed(data, random)
        path.write_bytes(data)
        try:
            found = read_archive(path)
        except LoadError:
            refused += 1
        else:
            assert sum(array.nbytes for array in found.values()) <= len(data)
    assert 50 < refused < 450
