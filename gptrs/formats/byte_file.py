"""Random access to an open file: pread instead of mmap, with detection of changes.

Mapped pages would count as memory of the process, and a page that the file lost ends the process
with a bus error. The descriptor stays open, so a file that replaces this one is never read; a file
that is truncated or written to is an error. `memory_for` bounds the memory that a file's metadata
may take.
"""

from __future__ import annotations

import os
import stat
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from gptrs.block_memory import empty
from gptrs.errors import LoadError
from gptrs.ir.types import Array
from gptrs.locks import new_lock

# O_NONBLOCK: opening a pipe without a writer does not block.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_MEMORY = 2**26  # bytes that the metadata of any file may take
_READ = 2**26  # bytes at a time; macOS takes less than 2**31


class ByteFile:
    """A regular file, kept open. Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, _FLAGS)
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is a directory, a device or a pipe, expected a file")
        self.size, self._written = found.st_size, found.st_mtime_ns

    @property
    def memory(self) -> int:
        """`memory_for` its size."""
        return memory_for(self.size)

    def begin(self, count: int) -> bytearray:
        """The first ``count`` bytes, or fewer in a shorter file. Raises as `fill` does."""
        return self.read(0, min(count, self.size))

    def read(self, offset: int, count: int) -> bytearray:
        """``count`` bytes from ``offset`` on. Raises as `fill` does."""
        found = bytearray(count)
        self.fill(memoryview(found), offset)
        return found

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
        """The elements from the byte ``offset`` on. Raises as `fill` does."""
        made = empty(shape, dtype)
        self.fill(as_bytes(made), offset)
        return made

    def fill(self, out: memoryview, offset: int) -> None:
        """Read the bytes from ``offset`` on into ``out``.

        Thread-safe. Raises `OSError`, and `LoadError` when the file is
        shorter than it was, or was written to since it was opened.
        """
        left = out
        while left and (count := _read_at(self._descriptor, left, offset)):
            left, offset = left[count:], offset + count
        status = os.fstat(self._descriptor)
        if left or status.st_size < self.size:
            raise LoadError(
                f"{self.path} has {status.st_size} bytes, it had {self.size} when it was opened",
                fix="load it again when the file is complete",
            )
        if status.st_mtime_ns != self._written:
            raise LoadError(
                f"{self.path} was written to after it was opened, expected what it held then",
                fix="load the model again; give a new file the name of the old one instead of"
                " writing over it",
            )


def memory_for(size: int) -> int:
    """The memory in bytes that the metadata of a file of ``size`` bytes may take: twice its size
    plus a constant."""
    return 2 * size + _MEMORY


def as_bytes(array: Array) -> memoryview:
    """The memory of the contiguous ``array``."""
    return array.reshape(-1).view("u1").data


_seeking = new_lock()


def _read_at(descriptor: int, out: memoryview, offset: int) -> int:
    """Read into the beginning of ``out``; returns the number of bytes, 0 at the end of the file."""
    out = out[:_READ]
    if sys.platform != "win32":
        return os.preadv(descriptor, [out], offset)
    with _seeking:  # no pread on Windows: the offset belongs to the descriptor
        os.lseek(descriptor, offset, os.SEEK_SET)
        read = os.read(descriptor, len(out))
    out[: len(read)] = read
    return len(read)


def begins_with(path: Path, magic: bytes) -> bool:
    """Whether a file begins with ``magic``. Raises `LoadError` if it cannot be read."""
    try:
        return ByteFile(path).begin(len(magic)) == magic
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error}") from None
