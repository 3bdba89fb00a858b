"""Damaged or hostile checkpoints and archives: read, or refused by one error."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gptrs.errors import LoadError
from gptrs.formats.archive import read_archive, write_archive
from gptrs.formats.checkpoint import CheckpointFile, write_checkpoint
from gptrs.params import base_param_id
from tests.support.stored import Arrays, read_checkpoint
from tests.support.traced_memory import least_peak

CONFIG = b'{"kind":"gpt","config":{}}'
DATA = 16 + len(CONFIG) + 4 + 4 + 54  # where the data of one tensor with a short name begin


def entry(
    name: str | bytes = "a",
    dims: tuple[int, ...] = (2,),
    tag: int = 0,
    offset: int = DATA,
    length: int = 8,
    reserved: int = 0,
    rank: int | None = None,
    stored: int | None = None,
) -> bytes:
    """A tensor of the index."""
    raw = name if isinstance(name, bytes) else name.encode()
    if stored is None:
        stored = base_param_id(raw.decode(errors="replace"))
    head = struct.pack("<I", len(raw)) + raw + stored.to_bytes(16, "little")
    tail = struct.pack("<IBQQ", tag, reserved, offset, length)
    counted = struct.pack("<I", len(dims) if rank is None else rank)
    return head + counted + struct.pack(f"<{len(dims)}Q", *dims) + tail


def checkpoint(
    entries: bytes | None = None,
    count: int = 1,
    data: bytes = bytes(8),
    magic: bytes = b"GPTRSCHK",
    version: int = 2,
    config: bytes = CONFIG,
    config_length: int | None = None,
    index_length: int | None = None,
) -> bytes:
    index = struct.pack("<I", count) + (entry() if entries is None else entries)
    lengths = (
        len(config) if config_length is None else config_length,
        len(index) if index_length is None else index_length,
    )
    head = magic + struct.pack("<II", version, lengths[0])
    return head + config + struct.pack("<I", lengths[1]) + index + data


def test_an_id_may_be_left_out_and_reserved_bytes_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(checkpoint(entry(stored=0, reserved=1)))
    found = read_checkpoint(tmp_path / "x")
    assert {name: array.tolist() for name, array in found.items()} == {"a": [0, 0]}


def test_a_json_that_ends_with_spaces(tmp_path: Path) -> None:
    config = json.dumps({"config": {}, "kind": "gpt", "more": 1}).encode() + b"  \n"
    moved = DATA + len(config) - len(CONFIG)
    (tmp_path / "x").write_bytes(checkpoint(entry(offset=moved), config=config))
    assert CheckpointFile.open(tmp_path / "x").kind == "gpt"


FIRST, SECOND = entry(offset=DATA + 54), entry("b", offset=DATA + 58)
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file has 0 bytes left for magic, expected at least 8"),
    "magic": (checkpoint(magic=b"GPTRSTEN"), "magic is b'GPTRSTEN', expected b'GPTRSCHK'"),
    "version": (checkpoint(version=1), "version is 1, expected 2"),
    "config-long": (
        checkpoint(config_length=2**32 - 1),
        f"config_len is 4294967295, expected at most {DATA + 8 - 20}",
    ),
    "config-cut": (checkpoint()[:18], "config_len is 26, expected at most 0"),
    "config-short": (checkpoint(config_length=25), "config_json is no JSON"),
    "config-zero": (checkpoint(config_length=0), "config_json is no JSON"),
    "config-json": (checkpoint(config=b"{,}"), "config_json is no JSON .*, expected a JSON object"),
    "config-bytes": (checkpoint(config=b'"\xff"'), "config_json is no JSON .'utf-8' codec"),
    "config-deep": (checkpoint(config=b"[" * 10**5), "config_json is no JSON"),
    "config-digits": (checkpoint(config=b"9" * 10**5), "config_json is no JSON"),
    "config-list": (checkpoint(config=b"[]"), "config_json is a list, expected a JSON object"),
    "kind": (checkpoint(config=b"{}"), "config_json: kind is None, expected a string"),
    "config": (
        checkpoint(config=b'{"kind":"gpt","config":[]}'),
        r"config_json: config is \[\], expected an object",
    ),
    "runtime": (
        checkpoint(config=b'{"kind":"gpt","config":{},"runtime":1}'),
        "config_json: runtime is 1, expected an object",
    ),
    "index-long": (
        checkpoint(index_length=2**32 - 1),
        "index_len is 4294967295, expected at most 66, the rest",
    ),
    "index-zero": (checkpoint(index_length=0), "the index has 0 bytes left for tensor_count"),
    "index-cut": (checkpoint(index_length=50), "0 bytes left for tensor 0 'a': byte_len"),
    "index-over": (
        checkpoint(entry(offset=DATA + 2), index_length=60, data=bytes(10)),
        "index_len is 60, expected 58, the bytes of its",
    ),
    "count": (checkpoint(count=2**32 - 1), "tensor_count is 4294967295, expected at most 1"),
    "count-zero": (checkpoint(count=0), "index_len is 58, expected 4, the bytes of its tensors"),
    "name-long": (
        checkpoint(b"\xff\xff\xff\xff" + entry()[4:]),
        "the index has 50 bytes left for tensor 0: name, expected at least 4294967295",
    ),
    "name-bytes": (checkpoint(entry(b"\xff")), r"tensor 0: name is b'\\xff', expected UTF-8 text"),
    "name-nul": (checkpoint(entry(b"\0")), r"tensor 0: name is '\\x00', expected text without NUL"),
    "name-twice": (
        checkpoint(FIRST + entry(offset=DATA + 62), 2, bytes(24)),
        "tensor 1: name is 'a', expected a name that is not taken",
    ),
    "id": (
        checkpoint(entry(stored=1)),
        "tensor 0 'a': stored_base_id is 0x00000000000000000000000000000001, expected 0 or"
        " 0xa2eec37a71655d9253a469d9dd2f7617, the id of that name",
    ),
    "id-of-another": (checkpoint(entry(stored=base_param_id("b"))), "tensor 0 'a': stored_base_id"),
    "rank": (checkpoint(entry(rank=65)), "tensor 0 'a': rank is 65, expected at most 64"),
    "rank-beyond": (checkpoint(entry(rank=9)), "bytes left for tensor 0 'a': dims"),
    "dims-overflow": (
        checkpoint(entry(dims=(2**32, 2**32), length=0, offset=DATA + 8)),
        r"dims is \[4294967296,4294967296\], expected a size that memory can have",
    ),
    "dims-overflow-empty": (
        checkpoint(entry(dims=(0, 2**63), length=0, offset=DATA + 8)),
        r"tensor 0 'a': dims is \[0,9223372036854775808\]",
    ),
    "dims-beyond": (
        checkpoint(entry(dims=(2**40,), length=2**42)),
        "offset_abs is 104, expected 4398046511104 bytes after the index, which ends at 104 of 112",
    ),
    "tag": (checkpoint(entry(tag=4)), r"dtype_tag is 4, expected one of 0 \(f32\), 1 \(f16\)"),
    "length": (checkpoint(entry(length=2**63)), "byte_len is 9223372036854775808, expected 8"),
    "length-tag": (checkpoint(entry(tag=2)), r"byte_len is 8, expected 4, the bytes of bf16\[2\]"),
    "offset-in-index": (
        checkpoint(entry(offset=16)),
        "offset_abs is 16, expected 104 to 104, so that 8",
    ),
    "offset-beyond": (checkpoint(entry(offset=DATA + 1)), "offset_abs is 105, expected 104 to 104"),
    "offset-huge": (checkpoint(entry(offset=2**64 - 1)), "offset_abs is 18446744073709551615"),
    "data-cut": (checkpoint(data=bytes(7)), "offset_abs is 104, expected 8 bytes after the index"),
    "overlap": (
        checkpoint(FIRST + SECOND, 2, bytes(24)),
        "tensor 'b': offset_abs is 162, expected at least 166, where 'a' ends",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files(tmp_path: Path, name: str) -> None:
    data, said = MALFORMED[name]
    (tmp_path / "x").write_bytes(data)

    def opened() -> None:
        with pytest.raises(LoadError, match=said) as caught:
            CheckpointFile.open(tmp_path / "x")
        assert caught.value.problem.startswith(str(tmp_path / "x"))
        assert caught.value.fix
        assert len(str(caught.value)) < 500

    assert least_peak(opened) < 2 * len(data) + 2**17


@pytest.mark.parametrize("kind", ["checkpoint", "archive"])
def test_reading_takes_no_more_memory_than_twice_the_file(tmp_path: Path, kind: str) -> None:
    path, array = tmp_path / "x", {"a": np.ones(2**20, np.float32)}
    if kind == "archive":
        write_archive(path, array)
    else:
        write_checkpoint(path, "gpt", {}, array)
    reader: Callable[[Path], Arrays] = read_archive if kind == "archive" else read_checkpoint
    assert reader(path)["a"].sum() == 2**20
    assert least_peak(lambda: reader(path)) < 2 * path.stat().st_size


def variants(data: bytes) -> list[bytes]:
    """``data`` cut at every byte, and with every bit, and every byte, turned over."""
    cut = [data[:at] for at in range(len(data))]
    turned = [
        data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
        for at in range(len(data))
        for mask in (*(1 << bit for bit in range(8)), 0xFF)
    ]
    return cut + turned


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["checkpoint", "archive"])
def test_every_byte_is_lost_or_changed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    small = {"a": np.array([[1.0, -2.5]], np.float32), "b": np.array(3, np.int32)}
    if kind == "archive":
        write_archive(path, small)
    else:
        write_checkpoint(path, "gpt", {"n": 1}, small, runtime={"functional_overrides": {}})
    reader: Callable[[Path], Arrays] = read_archive if kind == "archive" else read_checkpoint
    data = path.read_bytes()
    refused, named = 0, True
    for changed in variants(data):
        path.write_bytes(changed)
        try:
            found = reader(path)
        except LoadError as error:
            refused += 1
            named &= error.problem.startswith(str(path))
        else:
            assert len(changed) == len(data), "a file that is cut short was read"
            assert sum(array.nbytes for array in found.values()) <= len(data)
    assert named
    assert len(data) < refused < 9 * len(data)
