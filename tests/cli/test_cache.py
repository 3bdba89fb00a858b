"""``gptrs cache``: report, check, prune and clear the compiled kernels on disk."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gptrs import __version__
from gptrs.kernels.compiler import cache_upkeep, loaded_object, object_cache
from gptrs.kernels.compiler.cache_key import made_by
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.object_cache import KernelCache
from tests.support.cli import Cli, in_process, rows
from tests.support.kernels import COUNT_IR, opened

KEYS = [f"{i:040x}" for i in range(6)]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders have owners and modes")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that GPTRS_CACHE_DIR names, and nothing remembered from other tests."""
    monkeypatch.setenv("GPTRS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GPTRS_CACHE_BYTES", raising=False)
    monkeypatch.setattr(object_cache, "_unscanned", dict[Path, int]())
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Any]())
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "cache")


@pytest.fixture
def store() -> KernelCache:
    """Six entries of 1000 bytes and a head, the first one least recently used; two of another
    version, one without a label."""
    made = opened()
    labels = [*["gptrs 0.0.1, llvmlite 0.1"] * 2, "", f"gptrs {__version__}", made_by(), made_by()]
    for age, (key, label) in enumerate(zip(KEYS, labels, strict=True)):
        assert made.store(key, bytes(1000), label)
        used = time.time() - 10_000 + age
        os.utime(made.path(key), (used, used))
    return made


def left(store: KernelCache) -> list[str]:
    return sorted(path.stem for path in store.folder.glob("*.kernel") if len(path.stem) == 40)


def test_a_folder_that_is_not_there(cli: Cli, home: Path) -> None:
    said = rows(cli("info").out)
    assert said[:3] == [["kernel", "cache"], ["folder", f"{home},", "not", "made", "yet"], said[2]]
    for verb, text in (("verify", "0 entries checked, 0 damaged"), ("clear", "0 entries removed")):
        done = cli(verb)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(text)
    assert cli("prune", "--bytes", "1kB", "--other-versions").out.startswith("0 entries removed")
    assert not home.exists(), "looking makes none"


def test_info(cli: Cli, store: KernelCache) -> None:
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / f"{'a' * 16}.tmp").write_text("half")
    said = json.loads(cli("info", "--json").out)
    assert said["folder"] == str(store.folder)
    assert (said["entries"], said["limit"], said["problem"]) == (6, 512 * 2**20, "")
    assert said["bytes"] == sum(store.path(key).stat().st_size for key in KEYS)
    assert said["newest"] - said["oldest"] == pytest.approx(5, abs=0.1)
    assert (said["temporary"], said["others"]) == (1, 1)
    counts = {version: share["entries"] for version, share in said["versions"].items()}
    assert counts == {
        "gptrs 0.0.1, llvmlite 0.1": 2,
        "unknown": 1,
        f"gptrs {__version__}": 1,
        made_by(): 2,
    }
    printed = cli("info").out
    assert "entries" in printed
    assert "1, which are left alone" in printed
    assert f"{made_by()}  " in printed


def test_compiled_kernels_are_labelled(cli: Cli) -> None:
    compile_ir(COUNT_IR, "count")
    assert list(json.loads(cli("info", "--json").out)["versions"]) == [made_by()]


def test_verify_finds_what_is_damaged(cli: Cli, store: KernelCache) -> None:
    done = cli("verify")
    assert (done.code, done.out, done.err) == (0, "6 entries checked, 0 damaged\n", "")
    for key, damage in zip(KEYS, DAMAGES, strict=False):
        damage(store.path(key))
    done = cli("verify", "--json")
    assert done.code == 1
    damaged = {Path(entry["path"]).stem: entry for entry in json.loads(done.out)["damaged"]}
    assert list(damaged) == [key for key in left(store) if store.load(key) is None]
    assert len(damaged) == len(DAMAGES)
    assert all(entry["problem"] and not entry["is_removed"] for entry in damaged.values())
    done = cli("verify", "--remove")
    assert done.code == 1
    assert done.out.count("(removed)") == len(DAMAGES)
    assert left(store) == KEYS[len(DAMAGES) :]
    assert cli("verify").code == 0


DAMAGES: list[Callable[[Path], object]] = [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(b"GPTRS" + path.read_bytes()[5:]),
    lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1"),
    lambda path: path.chmod(0o666),
]


def test_the_label_is_checked_too(store: KernelCache) -> None:
    path = store.path(KEYS[4])
    path.write_bytes(path.read_bytes().replace(b"llvmlite", b"LLVMlite"))
    assert store.load(KEYS[4]) is None


def test_prune_to_a_size(cli: Cli, store: KernelCache) -> None:
    done = cli("prune", "--bytes", "3.5kB", "--json")
    assert json.loads(done.out)["removed"]["entries"] == 3
    assert left(store) == KEYS[3:]
    assert cli("prune").out == "0 entries removed, 0 B\n"
    assert cli("prune", "--bytes", "many").code == 2


def test_prune_to_the_setting(
    cli: Cli, store: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "2500")
    assert cli("prune").code == 0
    assert left(store) == KEYS[4:]


def test_prune_other_versions(cli: Cli, store: KernelCache) -> None:
    assert cli("prune", "--other-versions").out.startswith("3 entries removed")
    assert left(store) == KEYS[3:]


def test_clear_leaves_what_is_no_entry(cli: Cli, store: KernelCache, home: Path) -> None:
    others = {
        home / "notes.txt": "file",
        home / "readme.kernel": "file",
        home / f"{'A' * 40}.kernel": "file",
        home / f"{'a' * 40}.kernel": "folder",
        home / f"{'b' * 40}.kernel": "link",
        home / f"{'c' * 16}.tmp": "file",  # a writer that goes on
        home.parent / "limits.json": "file",
        home.parent / f"{'d' * 40}.kernel": "file",
    }
    for path, kind in others.items():
        if kind == "file":
            path.write_text("mine")
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(home / "notes.txt")
    abandoned = home / f"{'e' * 16}.tmp"
    abandoned.write_text("half")
    os.utime(abandoned, (0, 0))
    assert cli("clear").out.startswith("6 entries removed")
    assert set(home.iterdir()) | set(home.parent.iterdir()) == {*others, home}
    assert cli("verify", "--remove").code == 0
    assert all(os.path.lexists(path) for path in others)


@pytest.mark.parametrize(("answer", "code", "count"), [("y\n", 0, 0), ("n\n", 1, 6), ("", 130, 6)])
def test_clear_asks_on_a_terminal(
    cli: Cli,
    store: KernelCache,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    count: int,
) -> None:
    read, write = os.pipe()
    os.write(write, answer.encode())
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(stdin, "isatty", lambda: True, raising=False)
        done = cli("clear")
    assert done.code == code
    assert "Remove 6 entries, " in done.err
    assert len(left(store)) == count
    assert cli("clear", "-y").code == 0
    assert left(store) == []


@pytest.mark.parametrize("verb", ["verify", "prune", "clear"])
def test_a_folder_of_others_is_not_touched(cli: Cli, store: KernelCache, verb: str) -> None:
    store.folder.chmod(0o755)
    done = cli(verb)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("error: ") == 1
    assert "not a folder of this user alone" in done.err
    assert "chmod 700" in done.err
    said = json.loads(cli("info", "--json").out)
    assert "not a folder of this user alone" in said["problem"]
    store.folder.chmod(0o700)
    assert left(store) == KEYS


@pytest.mark.parametrize(
    "arguments", [("clear", "-y"), ("prune", "--bytes", "1B"), ("verify", "--remove")]
)
def test_a_folder_that_can_only_be_read(
    cli: Cli, store: KernelCache, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    store.path(KEYS[0]).write_bytes(b"damaged")

    def fail(path: object, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail)
        done = cli(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("error: ") == 1
    assert "cannot be removed: Read-only file system (0 files were removed before it)" in done.err
    assert left(store) == KEYS


@pytest.mark.parametrize("arguments", [("info",), ("verify",), ("prune", "--bytes", "1B")])
def test_entries_that_vanish_meanwhile(
    cli: Cli, store: KernelCache, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    real = cache_upkeep.listing

    def vanishing(folder: Path) -> Any:
        found = real(folder)
        for key in KEYS[:3]:
            store.path(key).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(cache_upkeep, "listing", vanishing)
    done = cli(*arguments, "--json")
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    if arguments[0] == "verify":
        assert said["entries"] == 3
    if arguments[0] == "prune":
        assert said["removed"]["entries"] == 3


def test_without_a_home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPTRS_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    unchanged: Callable[[str], str] = lambda path: path
    monkeypatch.setattr(os.path, "expanduser", unchanged)
    done = cli("info")
    assert done.code == 0
    assert "no home folder is known" in done.out
    assert cli("clear").out.startswith("0 entries removed")


@pytest.fixture
def full(store: KernelCache) -> Iterator[None]:
    """A file where the folder should be."""
    moved = store.folder.with_name("aside")
    store.folder.rename(moved)
    store.folder.write_text("a file")
    yield
    assert store.folder.read_text() == "a file"


@pytest.mark.usefixtures("full")
def test_a_file_in_its_place(cli: Cli) -> None:
    assert cli("clear", "-y").code == 1
    assert "not a folder of this user alone" in cli("info").out


def test_the_verbs_are_listed(cli: Cli) -> None:
    done = cli()
    assert (done.code, done.err) == (0, "")
    assert all(verb in done.out for verb in ("info", "verify", "prune", "clear"))
