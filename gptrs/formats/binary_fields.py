"""Sequential reader of binary header fields, with errors that name the field.

Used for the headers and indices of checkpoints and archives.
"""

from __future__ import annotations

import struct
from pathlib import Path

from gptrs.errors import LoadError
from gptrs.formats.byte_file import ByteFile

AGAIN = "copy or write the file again"


class Fields:
    """The bytes of one part of a file, read in order; ``part`` names it in errors ("the index")."""

    def __init__(self, path: Path, part: str, data: bytes | bytearray) -> None:
        self._path = path
        self._part = part
        self._data = data
        self._at = 0

    @classmethod
    def of(cls, file: ByteFile, start: int, count: int) -> Fields:
        """The fields in at most ``count`` bytes of ``file`` from ``start`` on."""
        count = max(0, min(count, file.size - start))
        return cls(file.path, "the file", file.read(start, count))

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self._data) - self._at

    def wrong(self, field: str, found: object, expected: str) -> LoadError:
        """The error for a field with an invalid value."""
        return LoadError(f"{self._path}: {field} is {found}, expected {expected}", fix=AGAIN)

    def take(self, count: int, field: str) -> bytes:
        """The next ``count`` bytes. Raises `LoadError` where there are fewer."""
        if count > self.left:
            raise LoadError(
                f"{self._path}: {self._part} has {self.left} bytes left for {field},"
                f" expected at least {count}",
                fix=AGAIN,
            )
        self._at += count
        return bytes(memoryview(self._data)[self._at - count : self._at])

    def number(self, form: str, field: str) -> int:
        """An unsigned integer: ``B``, ``I`` or ``Q`` of 1, 4 or 8 bytes."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), field))[0]

    def large_number(self, field: str) -> int:
        """An unsigned integer of 16 bytes."""
        return int.from_bytes(self.take(16, field), "little")
