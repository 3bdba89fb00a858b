"""Atomic writes: a file is complete or absent, and special files are left alone."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from gptrs.errors import ArgumentError
from gptrs.formats.atomic_write import atomic_write


def write(path: Path, content: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(content)


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write(tmp_path / "x", content)
        assert (tmp_path / "x").read_bytes() == content
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_is_replaced_and_the_file_behind_it_is_not(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    for target in ("x", "nothing"):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(target)
        write(tmp_path / "link")
        assert (tmp_path / "link").read_bytes() == b"new"
        assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are none of these files")
@pytest.mark.parametrize("name", ["device", "link", "pipe", "descriptor", "directory", "here"])
def test_what_is_no_file_is_refused_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = {"device": Path(os.devnull), "here": Path()}.get(name, tmp_path / name)
    if name == "link":
        path.symlink_to(os.devnull)
    elif name == "pipe":
        os.mkfifo(path)
    elif name == "descriptor":  # as /dev/stdout, which may be a regular file
        path.symlink_to("/proc/self/fd/1")
    elif name == "directory":
        path.mkdir()
    before, found = path.lstat(), os.listdir(tmp_path)
    kind = "directory" if path.is_dir() else "device, a pipe or the like"
    with pytest.raises(ArgumentError, match=f"is a {kind}, expected a file") as raised:
        write(path)
    assert raised.value.fix
    assert (path.lstat().st_ino, stat.S_IFMT(path.lstat().st_mode)) == (
        before.st_ino,
        stat.S_IFMT(before.st_mode),
    )
    assert os.listdir(tmp_path) == found
