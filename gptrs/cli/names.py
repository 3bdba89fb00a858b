"""Escaping of names from untrusted files for a terminal."""

from __future__ import annotations


def printable(name: str) -> str:
    """``name`` with escapes for unprintable and control characters."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)
