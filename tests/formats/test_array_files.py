"""Compressed files of arrays: bounded decompression, and one error for an invalid file."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gptrs.errors import LoadError
from gptrs.formats.array_files import read_arrays

FLOATS = np.arange(12, dtype=np.float32).reshape(3, 4)
ZEROS = bytes(2**20)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def packed(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes(tmp_path: Path, save: object) -> None:
    assert callable(save)
    save(tmp_path / "x.npz", FLOATS.T, named=FLOATS[:0], whole=np.zeros((512, 2**10), np.uint8))
    found = read_arrays(tmp_path / "x.npz")
    assert found is not None
    assert list(found) == ["named", "whole", "arr_0"]
    np.testing.assert_array_equal(found["arr_0"], FLOATS.T)
    assert found["named"].shape == (0, 4)


def bomb(path: Path, first: bytes) -> Path:
    """A member of 300 MB in 300 kB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("x.npy", "w") as out:
        out.write(first)
        for _ in range(300):
            out.write(ZEROS)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", npy(FLOATS), npy(np.zeros((300, 2**20), np.uint8))[:128]])
def test_what_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, first: bytes) -> None:
    file = bomb(tmp_path / "x.npz", first)
    assert file.stat().st_size < 400_000
    tracemalloc.start()
    try:
        with pytest.raises(LoadError, match=r"x\.npz has .* kB and unpacks to 314\.6 MB, expected"):
            read_arrays(file)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_all_members_count_together(tmp_path: Path) -> None:
    part = npy(np.zeros((30, 2**20), np.uint8))
    file = packed(tmp_path / "x.npz", {f"{number}.npy": part for number in range(10)})
    with pytest.raises(LoadError, match="unpacks to"):
        read_arrays(file)
    large = packed(tmp_path / "y.npz", {"x.npy": part}, zipfile.ZIP_STORED)
    assert read_arrays(large) is not None


WRONG: dict[str, tuple[bytes, str]] = {
    "text": (b"some text", "found no array, expected what numpy.save writes"),
    "nothing": (b"", "found no array"),
    "more": (npy(FLOATS) + ZEROS, r"found more bytes than its header says, float32\[3, 4\]"),
    "less": (npy(FLOATS)[:-1], "EOF"),
    "header": (npy(FLOATS).replace(b"(3, 4)", b"(3, -)"), "header"),
    "huge": (npy(FLOATS).replace(b"(3, 4), }    ", b"(30000, 400), }"), "EOF"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_member_that_is_wrong_is_named(tmp_path: Path, kind: str) -> None:
    data, said = WRONG[kind]
    file = packed(tmp_path / "x.npz", {"good.npy": npy(FLOATS), "bad.npy": data})
    with pytest.raises(LoadError, match=rf"x\.npz, member 'bad\.npy': .*{said}") as found:
        read_arrays(file)
    assert found.value.fix == "save the arrays again with numpy.savez"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_compress_are_refused(tmp_path: Path, method: int) -> None:
    """They unpack a million times as much, in one piece."""
    file = packed(tmp_path / "x.npz", {"x.npy": npy(FLOATS)}, method)
    with pytest.raises(LoadError, match="its way to compress is none of NumPy's"):
        read_arrays(file)


def test_a_directory_that_says_too_little(tmp_path: Path) -> None:
    data = npy(np.zeros(10**6, np.uint8))
    file = packed(tmp_path / "x.npz", {"x.npy": data})
    said = len(data).to_bytes(4, "little")
    changed = file.read_bytes().replace(said, (500).to_bytes(4, "little"))
    file.write_bytes(changed)
    with pytest.raises(LoadError, match=r"x\.npz.*(EOF|CRC)"):
        read_arrays(file)
