"""The cache of compiled objects on disk: damage, eviction and races never break a kernel."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gptrs.kernels.compiler import loaded_object, object_cache
from gptrs.kernels.compiler.cache_folder import Listing
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.object_cache import KernelCacheWarning
from tests.support import ROOT
from tests.support.kernels import COUNT_IR, again, check_count, files, opened

KEY, OTHER = "ab" * 20, "cd" * 20

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders have owners and modes")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for everything, no settings, and nothing remembered from other tests."""
    for name in ("GPTRS_CACHE_DIR", "GPTRS_CACHE_BYTES", "GPTRS_ISA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(object_cache, "_warned", set[str]())
    monkeypatch.setattr(object_cache, "_unscanned", dict[Path, int]())
    monkeypatch.setattr(loaded_object, "_libraries", dict[str, Any]())
    return tmp_path


def test_what_was_stored_is_found(home: Path) -> None:
    store = opened()
    assert store.folder == home / "gptrs" / "kernels"
    assert store.load(KEY) is None
    for payload in (b"", b"code", os.urandom(100_000)):
        assert store.store(KEY, payload)
        assert opened().load(KEY) == payload
    assert files(store) == [KEY + ".kernel"]
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.path(KEY).stat().st_mode) == 0o600


def test_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_ir(COUNT_IR, "count")
    assert not first.library.cached
    second = again(monkeypatch)
    assert second.library.cached
    assert second.address != first.address
    check_count(first)
    check_count(second)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)


def replace_head(path: Path) -> None:
    path.write_bytes(b"GPTRS" + path.read_bytes()[5:])


def replace_version(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:8] + b"\xff" + data[9:])


def become_link(path: Path) -> None:
    shutil.move(path, path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def become_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_unreadable_object(path: Path) -> None:
    assert opened().store(path.stem, b"well kept, but no object code")


def become_half_an_object(path: Path) -> None:
    store = opened()
    data = store.load(path.stem)
    assert data is not None
    assert store.store(path.stem, data[: len(data) // 2])


DAMAGES: list[Callable[[Path], object]] = [
    *(truncate, flip, replace_head, replace_version, become_link, become_pipe),
    *(become_unreadable_object, become_half_an_object),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:20]),
    lambda path: path.write_bytes(path.read_bytes() * 2),
    lambda path: path.chmod(0o666),
    lambda path: path.unlink(),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_replaced(
    damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = opened().path(compile_ir(COUNT_IR, "count").library.key)
    damage(path)
    mended = again(monkeypatch)
    assert not mended.library.cached
    check_count(mended)
    healthy = again(monkeypatch)
    assert healthy.library.cached, "slow once"
    check_count(healthy)


def test_every_cut_of_an_entry_is_a_miss() -> None:
    store = opened()
    store.store(KEY, bytes(range(200)))
    data = store.path(KEY).read_bytes()
    for length in range(len(data)):
        store.path(KEY).write_bytes(data[:length])
        assert store.load(KEY) is None
    store.path(OTHER).write_bytes(data)
    assert store.load(OTHER) is None, "the entry of another key"
    store.path(KEY).write_bytes(data)
    assert store.load(KEY) is not None


def test_a_write_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    some: Callable[[int, bytes], int] = lambda descriptor, data: real(descriptor, data[:7])
    nothing: Callable[[int, bytes], int] = lambda descriptor, data: 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", some)
        assert opened().store(KEY, b"a payload of some length")
        patch.setattr(os, "write", nothing)
        with pytest.warns(KernelCacheWarning):
            assert not opened().store(OTHER, b"nothing gets through")
    assert opened().load(KEY) == b"a payload of some length"


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "10000")
    store = opened()
    keys = [f"{i:040d}" for i in range(9)]
    for age, key in enumerate(keys):
        assert store.store(key, bytes(1000))
        used = time.time() - 10_000 + age
        os.utime(store.path(key), (used, used))
    assert store.load(keys[0]) is not None, "a use"
    assert store.store(KEY, bytes(1000))
    left = [key for key in keys if store.load(key) is not None]
    assert left == [keys[0], *keys[4:]], "down to three quarters"
    assert store.load(KEY) is not None
    assert not store.store(OTHER, bytes(10_000)), "more than all room"
    assert sum(path.stat().st_size for path in store.folder.iterdir()) < 10_000


def test_the_folder_is_looked_through_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "64000")
    scans: list[Path] = []
    found: Callable[[Path], Listing] = lambda folder: scans.append(folder) or Listing([], [], 0)
    monkeypatch.setattr(object_cache, "listing", found)
    for i in range(11):
        assert opened().store(f"{i:040d}", bytes(180))
    assert len(scans) == 3, "at the first write, and whenever 1000 bytes more were written"


def test_uses_are_noted_seldom() -> None:
    store = opened()
    store.store(KEY, b"code")
    recent = time.time() - 60
    os.utime(store.path(KEY), (recent, recent))
    store.load(KEY)
    assert abs(store.path(KEY).stat().st_mtime - recent) < 1


KILLED = """
import os, signal, sys
from gptrs.kernels.compiler.object_cache import open_cache
write = os.write
def half(descriptor, data):
    write(descriptor, bytes(data)[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
os.write = half
open_cache().store(sys.argv[1], bytes(1000))
"""


def test_a_writer_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, KEY], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    store = opened()
    (left,) = files(store)
    assert left.endswith(".tmp")
    assert store.load(KEY) is None
    assert store.store(KEY, b"code")
    assert left in files(store), "it could be another writer's"
    old = time.time() - 2 * 3600
    os.utime(store.folder / left, (old, old))
    monkeypatch.setattr(object_cache, "_unscanned", dict[Path, int]())
    assert store.store(OTHER, b"code"), "by the next process"
    assert files(store) == sorted([KEY + ".kernel", OTHER + ".kernel"])


TOGETHER = """
import ctypes, sys
from gptrs.kernels.compiler.compile import compile_ir
text = sys.stdin.readline().replace("\\\\n", "\\n")
for i in range(4):
    word = ctypes.c_int64(40)
    compile_ir(text + ";" * i, "count")(ctypes.addressof(word), 5, 7)
    assert word.value == 42
"""


@pytest.mark.slow
def test_eight_processes_on_a_cold_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-W", "error", "-c", TOGETHER]
    processes = [
        subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(8)
    ]
    time.sleep(1.5)  # all have imported what they need, and wait for the text
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(COUNT_IR.replace("\n", "\\n") + "\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[1] for process in processes]
    assert said == [""] * 8
    assert [process.returncode for process in processes] == [0] * 8
    names = files(opened())
    assert len(names) == 4
    assert all(name.endswith(".kernel") for name in names)
    text = COUNT_IR + "\n"
    assert compile_ir(text, "count").library.cached
