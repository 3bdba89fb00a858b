"""Atomic file writes: a temporary file beside the target, fsync, rename.

Used by all writers of this package.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gptrs.errors import ArgumentError


@contextmanager
def atomic_write(path: Path) -> Generator[BinaryIO]:
    """A temporary file to write to, renamed to ``path`` at the end of the block.

    Until then, and when the block raises, ``path`` is unchanged. Raises `ArgumentError` where
    nothing can be written, and where ``path`` exists and is no regular file.
    """
    check_replaceable(path)
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArgumentError(
            f"{path} cannot be written: {error.strerror or error}",
            fix="give a file in a folder that can be written to",
        ) from None


def check_replaceable(path: Path) -> None:
    """Raise `ArgumentError` where ``path`` exists and is no regular file."""
    if path.is_dir() or _is_stream(path):
        kind = "a directory" if path.is_dir() else "a device, a pipe or the like"
        raise ArgumentError(
            f"{path} is {kind}, expected a file or a place for one", fix="give the path of a file"
        )


def _is_stream(path: Path) -> bool:
    """Whether ``path`` exists and is no regular file; so is an open descriptor such as
    ``/dev/stdout``."""
    try:
        target = os.readlink(path)
    except OSError:
        target = ""
    return target.startswith(("/proc/", "/dev/fd/")) or (path.exists() and not path.is_file())
