"""The folder of the kernel cache: where it is, whose it may be, and which files in it are entries.

An entry is a regular file named by a cache key (40 hexadecimal digits) that ends in ``.kernel``; a
writer's temporary file is 16 such digits and ``.tmp``. No other file of the folder is read or
removed.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gptrs import settings

SUFFIX = ".kernel"
TEMPORARY = ".tmp"
_ENTRY = re.compile(r"[0-9a-f]{40}\.kernel")
_UNFINISHED = re.compile(r"[0-9a-f]{16}\.tmp")

TEMPORARY_SECONDS = 3600.0
"""The age at which temporary files of killed writers are removed; a writer takes milliseconds."""


def flags(*names: str) -> int:
    """Flags of `os.open`, as far as this system has them."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


# A link is not followed and a pipe is not waited for.
_READ = flags("O_RDONLY", "O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK")


class CacheFile(NamedTuple):
    """A file of the cache, by the time of its last use in seconds since 1970."""

    used: float
    path: str
    size: int

    @property
    def key(self) -> str:
        """The cache key that it is named by."""
        return os.path.basename(self.path).removesuffix(SUFFIX)


class Listing(NamedTuple):
    """The files of a folder: entries, temporary files, and how many others there are."""

    kernels: list[CacheFile]
    temporary: list[CacheFile]
    others: int


def kernel_folder() -> Path | None:
    """The kernels' own folder, below one that may hold other things and have other rights; None
    where no home folder is known."""
    if chosen := settings.cache_dir():
        return Path(os.path.abspath(os.path.expanduser(chosen))) / "kernels"
    # The XDG base directory specification: a relative path is invalid and is ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base) / "gptrs" / "kernels" if os.path.isabs(base) else None


def made_folder(folder: Path) -> os.stat_result:
    """What ``folder`` is, made if it was not there. Raises `OSError`."""
    try:
        return folder.lstat()
    except FileNotFoundError:
        pass
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir(mode=0o700)
    return folder.lstat()


def is_usable(status: os.stat_result) -> bool:
    """Whether it is a folder of this user alone: its files are machine code, which would run."""
    return stat.S_ISDIR(status.st_mode) and _private(status, 0o077)


def _private(status: os.stat_result, forbidden: int) -> bool:
    """Whether a file or folder is this user's and grants none of the ``forbidden`` rights."""
    if sys.platform == "win32":
        return True  # the profile's folder is private, and modes say nothing
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & forbidden


def read_entry(path: str | Path, most: int | None = None) -> tuple[bytes, float]:
    """The bytes of an entry and the time of its last use.

    Raises `OSError`, and `ValueError` for a file that is not read: no regular one, one that others
    may write, or one of more than ``most`` bytes.
    """
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _private(status, 0o022):
            raise ValueError("no regular file that this user alone may write")
        if most is not None and status.st_size > most:
            raise ValueError(f"{status.st_size} bytes, more than the limit of the cache")
        return _read_all(descriptor, status.st_size), status.st_mtime
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)


def listing(folder: Path) -> Listing:
    """The files of ``folder``. Raises `OSError` where it cannot be read."""
    found = Listing([], [], 0)
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # removed by another process
            file = CacheFile(status.st_mtime, entry.path, status.st_size)
            if not stat.S_ISREG(status.st_mode):
                found = found._replace(others=found.others + 1)
            elif _ENTRY.fullmatch(entry.name):
                found.kernels.append(file)
            elif _UNFINISHED.fullmatch(entry.name):
                found.temporary.append(file)
            else:
                found = found._replace(others=found.others + 1)
    return found


def remove(path: str | Path) -> None:
    """Remove a file, if that is possible."""
    try:
        os.unlink(path)
    except OSError:
        return  # gone already, or not ours to remove
