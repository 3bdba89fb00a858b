"""The closest known name to an unknown one, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

# Bounds: each comparison takes time, and a file may have many and long names.
_COMPARED, _LONGEST = 1000, 200


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of ``names`` (of the first 1000); None if there are none."""
    from difflib import get_close_matches  # for errors only, and slow to import

    short = (other for other in names if len(other) <= _LONGEST)
    found = get_close_matches(name[:_LONGEST], islice(short, _COMPARED), n=1, cutoff=0)
    return found[0] if found else None
