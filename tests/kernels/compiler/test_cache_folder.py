"""Cache folders that cannot be used: kernels run all the same, with one warning."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gptrs.kernels.compiler import loaded_object, object_cache
from gptrs.kernels.compiler.compile import compile_ir
from gptrs.kernels.compiler.object_cache import KernelCacheWarning, open_cache
from tests.support import ROOT
from tests.support.kernels import COUNT_IR, again, check_count, files, opened

KEY = "ab" * 20

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


def test_what_belongs_to_somebody_else_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    store.store(KEY, b"code")
    monkeypatch.setattr(os, "geteuid", lambda: store.folder.stat().st_uid + 1)
    assert store.load(KEY) is None
    with pytest.warns(KernelCacheWarning, match="not a folder of this user alone"):
        assert open_cache() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_cache() is None, "said once"


def test_a_folder_open_to_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    opened().folder.chmod(0o750)
    with pytest.warns(KernelCacheWarning, match="chmod 700"):
        check_count(compile_ir(COUNT_IR, "count"))
    assert os.listdir(Path(os.environ["XDG_CACHE_HOME"]) / "gptrs" / "kernels") == []
    check_count(again(monkeypatch))


def test_a_folder_that_is_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    (home / "real").mkdir(mode=0o700)
    (home / "linked").mkdir()
    (home / "linked" / "kernels").symlink_to(home / "real")
    for name in ("file", "linked"):
        monkeypatch.setenv("GPTRS_CACHE_DIR", str(home / name))
        with pytest.warns(KernelCacheWarning):
            check_count(again(monkeypatch))
        check_count(again(monkeypatch))
    assert os.listdir(home / "real") == []


def test_where_the_folder_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "me"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert opened().folder == home / "me" / ".cache" / "gptrs" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert opened().folder == home / "me" / ".cache" / "gptrs" / "kernels"
    monkeypatch.setenv("GPTRS_CACHE_DIR", "~/mine")
    assert opened().folder == home / "me" / "mine" / "kernels"
    monkeypatch.setenv("GPTRS_CACHE_BYTES", "0")
    assert open_cache() is None


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    unchanged: Callable[[str], str] = lambda path: path
    monkeypatch.setattr(os.path, "expanduser", unchanged)
    with pytest.warns(KernelCacheWarning, match="no home folder is known"):
        check_count(compile_ir(COUNT_IR, "count"))
    check_count(again(monkeypatch))


def failing(error: int) -> Callable[..., Any]:
    def fail(*arguments: object, **options: object) -> Any:
        raise OSError(error, os.strerror(error))

    return fail


@pytest.mark.parametrize("function", ["write", "replace"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_write_that_fails(function: str, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing(error))
        with pytest.warns(KernelCacheWarning, match=os.strerror(error)):
            check_count(compile_ir(COUNT_IR, "count"))
        check_count(again(patch))
    assert files(store) == []
    check_count(again(monkeypatch))
    assert again(monkeypatch).library.cached, "kept when there is room again"


def test_a_folder_that_can_only_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ir(COUNT_IR, "count")
    real = os.open

    def read_only(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", failing(errno.EROFS))
    store = opened()
    key = os.listdir(store.folder)[0].removesuffix(".kernel")
    past = time.time() - 1e6
    monkeypatch.setattr(time, "time", lambda: past + 2e6)
    assert store.load(key) is not None
    assert again(monkeypatch).library.cached
    with pytest.warns(KernelCacheWarning, match="Read-only"):
        check_count(compile_ir(COUNT_IR + ";", "count"))


MOUNTED = """
import os, subprocess, sys, warnings
folder = os.environ["GPTRS_CACHE_DIR"]
os.makedirs(folder)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=True)
from gptrs.kernels.compiler import compile, loaded_object
text = sys.stdin.read()
cached = []
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for text_of_this in [text + ";" * i for i in range(12)] * 2:
        loaded_object._libraries.clear()
        cached.append(compile.compile_ir(text_of_this, "count").library.cached)
assert [str(w.message) for w in said if "No space left" in str(w.message)], said
assert len(said) == 1, "said once"
assert not any(name.endswith(".tmp") for name in os.listdir(folder + "/kernels"))
kept = os.listdir(folder + "/kernels")
assert kept and sum(cached) == len(kept), (kept, cached)
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
loaded_object._libraries.clear()
assert compile.compile_ir(text, "count").library.cached, "a folder that can only be read serves"
print("done")
"""


@pytest.mark.slow
def test_a_real_disk_that_is_full(home: Path) -> None:
    unshare = ["unshare", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode:
        pytest.skip("needs a mount namespace")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", MOUNTED],
        cwd=ROOT,
        input=COUNT_IR,
        capture_output=True,
        text=True,
        env={**os.environ, "GPTRS_CACHE_DIR": str(home / "small")},
    )
    if "mount:" in done.stderr:
        pytest.skip("needs a tmpfs")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
