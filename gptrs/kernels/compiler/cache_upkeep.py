"""Upkeep of the kernel cache on disk: report, check, prune and clear its folder (``gptrs cache``).

Other processes may read, write and evict entries meanwhile: an entry that vanishes is none. No file
is removed but entries, as `gptrs.kernels.compiler.cache_folder` knows them, and what killed writers
left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from gptrs import __version__, settings
from gptrs.errors import ArgumentError
from gptrs.kernels.compiler.cache_entry import HEAD_BYTES, label_of, unpack
from gptrs.kernels.compiler.cache_folder import (
    TEMPORARY_SECONDS,
    CacheFile,
    Listing,
    is_usable,
    kernel_folder,
    listing,
    read_entry,
)
from gptrs.kernels.compiler.cache_key import made_by
from gptrs.lazy_dataclass import dataclass

UNKNOWN = "unknown"
"""The label of entries that have none, as those of damaged files and older formats."""

Told = Callable[[int, int], None]
"""Called with how many entries are done, and how many there are."""


class Share(NamedTuple):
    """Some of the entries."""

    entries: int
    bytes: int


@dataclass(frozen=True)
class CacheState:
    """The kernel cache on disk, as it was found."""

    folder: Path | None
    """None where no home folder is known."""
    problem: str
    """Why the folder is not used, or cannot be written; empty if all is well."""
    exists: bool
    limit: int
    """Bytes, of GPTRS_CACHE_BYTES."""
    entries: int = 0
    bytes: int = 0
    oldest: float | None = None
    newest: float | None = None
    """Of the last uses, in seconds since 1970."""
    temporary: int = 0
    """Files of writers that go on, or were killed."""
    others: int = 0
    """Files that are none of the cache; they are left alone."""


class Damaged(NamedTuple):
    """An entry that cannot be used."""

    path: str
    problem: str
    is_removed: bool


class Checked(NamedTuple):
    """What `verify` found."""

    entries: int
    damaged: list[Damaged]


def cache_state() -> CacheState:
    """The state of the folder that the settings name; makes none."""
    folder, limit = kernel_folder(), settings.cache_bytes()
    if folder is None:
        return CacheState(None, "no home folder is known: set GPTRS_CACHE_DIR", False, limit)
    problem = "" if limit else "GPTRS_CACHE_BYTES is 0: nothing is kept"
    try:
        status = folder.lstat()
        if not is_usable(status):
            return CacheState(folder, _NOT_OURS, True, limit)
        found = listing(folder)
    except FileNotFoundError:
        return CacheState(folder, problem, False, limit)
    except OSError as error:
        return CacheState(folder, error.strerror or str(error), True, limit)
    if not os.access(folder, os.W_OK | os.X_OK):
        problem = "it cannot be written: kernels that are not here are compiled in each process"
    uses = [file.used for file in found.kernels]
    return CacheState(
        folder,
        problem,
        True,
        limit,
        len(found.kernels),
        sum(file.size for file in found.kernels),
        min(uses, default=None),
        max(uses, default=None),
        len(found.temporary),
        found.others,
    )


_NOT_OURS = "it is not a folder of this user alone, and not used"


def by_version() -> dict[str, Share]:
    """The entries by the versions that made them, the largest share first.

    Reads the beginning of each entry. Raises `ArgumentError` for a folder that cannot be read.
    """
    found: dict[str, Share] = {}
    for file in _opened().kernels:
        if (label := _label(file)) is not None:
            before = found.get(label, Share(0, 0))
            found[label] = Share(before.entries + 1, before.bytes + file.size)
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def verify(*, remove: bool = False, told: Told = lambda done, total: None) -> Checked:
    """Read every entry, and compare its checksum; ``remove`` deletes damaged ones.

    Raises `ArgumentError` for a folder that cannot be read, or changed where it has to be.
    """
    files = sorted(_opened().kernels, key=lambda file: file.path)
    count, damaged = 0, list[Damaged]()
    for done, file in enumerate(files):
        told(done, len(files))
        problem = _problem(file)
        count += problem is not None
        if problem:
            damaged.append(Damaged(file.path, problem, remove and bool(_remove([file]).entries)))
    told(len(files), len(files))
    return Checked(count, damaged)


def prune(limit: int) -> Share:
    """Remove the least recently used entries until no more than ``limit`` bytes are left, and what
    killed writers left. Raises `ArgumentError` as `verify` does."""
    found = _opened()
    total, chosen = sum(file.size for file in found.kernels), list[CacheFile]()
    for file in sorted(found.kernels):
        if total <= limit:
            break
        chosen.append(file)
        total -= file.size
    _remove(_abandoned(found))
    return _remove(chosen)


def prune_other_versions() -> Share:
    """Remove the entries that other versions of gptrs or llvmlite made, and those without a label.
    Raises `ArgumentError` as `verify` does."""
    current: Collection[str | None] = (made_by(), f"gptrs {__version__}", None)
    return _remove([file for file in _opened().kernels if _label(file) not in current])


def clear() -> Share:
    """Remove all entries, and what killed writers left. Raises `ArgumentError` as `verify` does."""
    found = _opened()
    _remove(_abandoned(found))
    return _remove(found.kernels)


def _opened() -> Listing:
    """The files of the folder; none where it is absent."""
    folder, problem = kernel_folder(), _NOT_OURS
    if folder is None:
        return Listing([], [], 0)
    try:
        if is_usable(folder.lstat()):
            return listing(folder)
    except FileNotFoundError:
        return Listing([], [], 0)
    except OSError as error:
        problem = error.strerror or str(error)
    raise ArgumentError(
        f"the kernel cache {folder} cannot be used: {problem}",
        fix="chmod 700 it, or name another folder by GPTRS_CACHE_DIR",
    )


def _label(file: CacheFile) -> str | None:
    """The versions that made an entry; None where it vanished."""
    try:
        with open(file.path, "rb") as opened:
            return label_of(opened.read(HEAD_BYTES)) or UNKNOWN
    except FileNotFoundError:
        return None
    except OSError:
        return UNKNOWN


def _problem(file: CacheFile) -> str | None:
    """What is wrong with an entry; empty if nothing is, None where it vanished."""
    try:
        unpack(file.key, read_entry(file.path)[0])
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
    return ""


def _abandoned(found: Listing) -> list[CacheFile]:
    now = time.time()
    return [file for file in found.temporary if now - file.used > TEMPORARY_SECONDS]


def _remove(files: Iterable[CacheFile]) -> Share:
    """Remove files. Raises `ArgumentError` where the folder cannot be changed."""
    removed = Share(0, 0)
    for file in files:
        try:
            os.unlink(file.path)
        except FileNotFoundError:
            continue  # another process was faster
        except OSError as error:
            raise ArgumentError(
                f"{file.path} cannot be removed: {error.strerror or error}"
                f" ({removed.entries} files were removed before it)",
                fix="make its folder writable",
            ) from None
        removed = Share(removed.entries + 1, removed.bytes + file.size)
    return removed
