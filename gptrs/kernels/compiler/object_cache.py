"""Cache of compiled kernels on disk: one checksummed file per kernel, named by its cache key.

There is no index and no lock. A file appears complete or not at all (it is renamed into place), so
processes may share a folder; a file that cannot be read or trusted is a miss and is written again.
No state of the folder is an error: at worst kernels are compiled in every process, with one warning
(`KernelCacheWarning`). The least recently used files are evicted above the size limit. Only a
folder of this user alone is used, as its files are machine code. `gptrs cache` looks after it
(`gptrs.kernels.compiler.cache_upkeep`).
"""

from __future__ import annotations

import errno
import os
import time
import warnings
from pathlib import Path

from gptrs import settings
from gptrs.kernels.compiler.cache_entry import pack, unpack
from gptrs.kernels.compiler.cache_folder import (
    SUFFIX,
    TEMPORARY,
    TEMPORARY_SECONDS,
    flags,
    is_usable,
    kernel_folder,
    listing,
    made_folder,
    read_entry,
    remove,
)

# A use is noted no more often than this, so that reading rarely writes.
_USE_SECONDS = 3600.0
# An eviction makes room for more than one kernel.
_KEEP = 0.75
# A process looks through the folder at its first write, and then after each such part of the limit:
# in between the limit may be passed by as much.
_SCAN_PART = 1 / 64
_WRITE = flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_CLOEXEC", "O_BINARY")

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
        return self.folder / (key + SUFFIX)

    def load(self, key: str) -> bytes | None:
        """The payload stored under ``key``; None if there is none or it cannot be trusted."""
        try:
            data, used = read_entry(self.path(key), self.limit)
            payload = unpack(key, data)
        except (OSError, ValueError):
            return None
        if time.time() - used > _USE_SECONDS:
            self._note_use(key)
        return payload

    def store(self, key: str, payload: bytes, label: str = "") -> bool:
        """Keep ``payload`` under ``key``; False when that was not possible. ``label`` names the
        versions that made it."""
        data = pack(key, payload, label)
        if len(data) > self.limit:
            return False
        temporary = self.folder / (os.urandom(8).hex() + TEMPORARY)
        try:
            try:
                descriptor = os.open(temporary, _WRITE, 0o600)
                try:
                    _write_all(descriptor, data)
                finally:
                    os.close(descriptor)
                os.replace(temporary, self.path(key))
            except BaseException:
                remove(temporary)
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
        try:
            kernels, temporary, _ = listing(self.folder)
        except OSError:
            return
        for file in temporary:
            if now - file.used > TEMPORARY_SECONDS:
                remove(file.path)
        total = sum(file.size for file in kernels)
        if total <= self.limit:
            return
        for file in sorted(kernels)[:-1]:  # all but the newest, which is in use
            remove(file.path)
            total -= file.size
            if total <= self.limit * _KEEP:
                return


def open_cache() -> KernelCache | None:
    """The cache that the settings name, its folder made if need be; None when there can be none.

    A folder that others may enter or that belongs to another user is not used: its files are
    machine code, which would run. Warns once per folder.
    """
    limit = settings.cache_bytes()
    if limit == 0:
        return None
    folder = kernel_folder()
    if folder is None:
        _warn_once("", "no home folder is known", "set GPTRS_CACHE_DIR to a folder")
        return None
    try:
        status = made_folder(folder)
    except OSError as error:
        _warn_once(
            str(folder),
            f"{error.strerror or error}: {folder}",
            "set GPTRS_CACHE_DIR to a folder that can be written",
        )
        return None
    if not is_usable(status):
        _warn_once(
            str(folder),
            f"{folder} is not a folder of this user alone",
            "make it so (chown, chmod 700) or set GPTRS_CACHE_DIR to another",
        )
        return None
    return KernelCache(folder, limit)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]
