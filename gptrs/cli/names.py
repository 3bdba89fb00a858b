"""Names out of files, which may hold anything, for a terminal."""

from __future__ import annotations


def printable(name: str) -> str:
    """``name``, with escapes for what a terminal would not show, or would obey."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)
