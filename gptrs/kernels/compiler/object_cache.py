"""Cache of compiled kernels on disk: one checksummed file per kernel, named by its cache key.

There is no index and no lock. A file appears complete or not at all (it is renamed into place), so
processes may share a folder; a file that cannot be read or trusted is a miss and is written again.
No state of the folder is an error: at worst kernels are compiled in every process, with one warning
(`KernelCacheWarning`). The least recently used files are evicted above the size limit. Only a
folder of this user alone is used, as its files are machine code.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gptrs import settings

_SUFFIX = ".kernel"
_TEMPORARY = ".tmp"
_MAGIC = b"gptrs-k\n"
_VERSION = 1
_HEADER = struct.Struct("<8sIQ32s")  # magic, version, length of the payload in bytes, checksum

# Temporary files of killed writers are removed at this age; a writer takes milliseconds.
_TEMPORARY_SECONDS = 3600.0
# A use is noted no more often than this, so that reading rarely writes.
_USE_SECONDS = 3600.0
# An eviction makes room for more than one kernel.
_KEEP = 0.75
# A process looks through the folder at its first write, and then after each such part of the limit:
# in between the limit may be passed by as much.
_SCAN_PART = 1 / 64


def _flags(*names: str) -> int:
    """Flags of `os.open`, as far as this system has them."""
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    return flags


# A link is not followed and a pipe is not waited for.
_READ = _flags("O_RDONLY", "O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK")
_WRITE = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_CLOEXEC", "O_BINARY")

_warned: set[str] = set()
_unscanned: dict[Path, int] = {}  # bytes written to a folder since this process looked through it


class KernelCacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk; they are compiled again in every process."""


def _warn_once(subject: str, problem: str, fix: str) -> None:
    if subject not in _warned:
        _warned.add(subject)
        warnings.warn(
            f"compiled kernels are not kept: {problem}; {fix}", KernelCacheWarning, stacklevel=2
        )


class KernelCache:
    """The kernels kept in ``folder``, at most ``limit`` bytes of them."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def path(self, key: str) -> Path:
        """The file of the kernel with this key."""
        return self.folder / (key + _SUFFIX)

    def load(self, key: str) -> bytes | None:
        """The payload stored under ``key``; None if there is none or it cannot be trusted."""
        try:
            descriptor = os.open(self.path(key), _READ)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _private(status, 0o022):
                return None
            if status.st_size > self.limit:
                return None
            data = _read_all(descriptor, status.st_size)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        payload = _unpack(key, data)
        if payload is not None and time.time() - status.st_mtime > _USE_SECONDS:
            self._note_use(key)
        return payload

    def store(self, key: str, payload: bytes) -> bool:
        """Keep ``payload`` under ``key``; False when that was not possible."""
        data = _pack(key, payload)
        if len(data) > self.limit:
            return False
        temporary = self.folder / (os.urandom(8).hex() + _TEMPORARY)
        try:
            try:
                descriptor = os.open(temporary, _WRITE, 0o600)
                try:
                    _write_all(descriptor, data)
                finally:
                    os.close(descriptor)
                os.replace(temporary, self.path(key))
            except BaseException:
                _remove(temporary)
                raise
        except OSError as error:
            reason = error.strerror or str(error)
            _warn_once(
                str(self.folder),
                f"{reason} in {self.folder}",
                "make room there or set GPTRS_CACHE_DIR to a folder that can be written",
            )
            return False
        unscanned = _unscanned.get(self.folder, self.limit) + len(data)
        _unscanned[self.folder] = unscanned
        if unscanned > self.limit * _SCAN_PART:
            _unscanned[self.folder] = 0
            self._tidy()
        return True

    def _note_use(self, key: str) -> None:
        try:
            os.utime(self.path(key))
        except OSError:
            return  # a folder that cannot be written serves all the same

    def _tidy(self) -> None:
        """Remove the least recently used kernels above the limit, and old temporary files."""
        now = time.time()
        kernels: list[_Entry] = []
        for entry in _entries(self.folder):
            if entry.path.endswith(_SUFFIX):
                kernels.append(entry)
            elif entry.path.endswith(_TEMPORARY) and now - entry.used > _TEMPORARY_SECONDS:
                _remove(entry.path)
        total = sum(entry.size for entry in kernels)
        if total <= self.limit:
            return
        for entry in sorted(kernels)[:-1]:  # all but the newest, which is in use
            _remove(entry.path)
            total -= entry.size
            if total <= self.limit * _KEEP:
                return


class _Entry(NamedTuple):
    used: float
    path: str
    size: int


def open_cache() -> KernelCache | None:
    """The cache that the settings name, its folder made if need be; None when there can be none.

    A folder that others may enter or that belongs to another user is not used: its files are
    machine code, which would run. Warns once per folder.
    """
    limit = settings.cache_bytes()
    if limit == 0:
        return None
    folder = _folder()
    if folder is None:
        _warn_once("", "no home folder is known", "set GPTRS_CACHE_DIR to a folder")
        return None
    try:
        status = _made(folder)
    except OSError as error:
        _warn_once(
            str(folder),
            f"{error.strerror or error}: {folder}",
            "set GPTRS_CACHE_DIR to a folder that can be written",
        )
        return None
    if not stat.S_ISDIR(status.st_mode) or not _private(status, 0o077):
        _warn_once(
            str(folder),
            f"{folder} is not a folder of this user alone",
            "make it so (chown, chmod 700) or set GPTRS_CACHE_DIR to another",
        )
        return None
    return KernelCache(folder, limit)


def _folder() -> Path | None:
    """The kernels' own folder, below one that may hold other things and have other rights."""
    if chosen := settings.cache_dir():
        return Path(os.path.abspath(os.path.expanduser(chosen))) / "kernels"
    # The XDG base directory specification: a relative path is invalid and is ignored.
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base) / "gptrs" / "kernels" if os.path.isabs(base) else None


def _made(folder: Path) -> os.stat_result:
    try:
        return folder.lstat()
    except FileNotFoundError:
        pass
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir(mode=0o700)
    return folder.lstat()


def _private(status: os.stat_result, forbidden: int) -> bool:
    """Whether a file or folder is this user's and grants none of the ``forbidden`` rights."""
    if sys.platform == "win32":
        return True  # the profile's folder is private, and modes say nothing
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & forbidden


def _pack(key: str, payload: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, _VERSION, len(payload), _checksum(key, payload)) + payload


def _unpack(key: str, data: bytes) -> bytes | None:
    if len(data) < _HEADER.size:
        return None
    magic, version, length, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if (magic, version, length) != (_MAGIC, _VERSION, len(payload)):
        return None
    return payload if checksum == _checksum(key, payload) else None


def _checksum(key: str, payload: bytes) -> bytes:
    # Keyed, so that a file under another kernel's name is no entry either.
    return hashlib.blake2b(payload, digest_size=32, key=key.encode()[:64]).digest()


def _read_all(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]


def _entries(folder: Path) -> list[_Entry]:
    found: list[_Entry] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # removed by another process
                found.append(_Entry(status.st_mtime, entry.path, status.st_size))
    except OSError:
        return []
    return found


def _remove(path: str | Path) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # gone already, or not ours to remove
