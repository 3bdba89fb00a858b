"""Parsing and formatting of sizes in bytes: ``"500MB"``, ``"2GiB"``, ``1.5 GB``."""

from __future__ import annotations

import re
from contextlib import suppress

from gptrs.errors import ArgumentError

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(i?)B?", re.IGNORECASE)


def read_size(text: str) -> int:
    """``"500MB"`` in bytes; K, M, G and T are powers of 1000, with an i of 1024.

    Raises `ValueError` for text that is no size, and for 0.
    """
    found = _SIZE.fullmatch(text.strip())
    count = 0
    if found is not None:
        number, unit, binary = found.groups()
        power = " KMGT".index(unit.upper() or " ")
        count = int(float(number) * (1024 if binary else 1000) ** power)
    if count < 1:
        raise ValueError(text)
    return count


def size_text(count: int) -> str:
    """``count`` bytes in the largest decimal unit that leaves at least 1: ``"1.5 GB"``."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def as_size(size: object, what: str) -> int:
    """``size`` in bytes; it is an integer from 0 up, or a text for `read_size`.

    Raises `ArgumentError`, which calls it ``what``.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    if isinstance(size, str):
        with suppress(ValueError):
            return read_size(size)
    raise ArgumentError(
        f"{what} is {size!r}, expected bytes", fix="give an integer, or a text such as '2GB'"
    )
