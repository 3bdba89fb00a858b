"""Names that do not exist: the nearest ones that do."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], count: int = 2) -> list[str]:
    """At most ``count`` of the ``known`` names that ``name`` may be a slip of, nearest first."""
    from difflib import get_close_matches  # for errors only, and slow to import

    return get_close_matches(name, known, n=count, cutoff=0.7)
