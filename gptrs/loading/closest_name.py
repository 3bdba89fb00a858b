"""The name nearest to one that is not there, for errors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

# A model or a file may have many names, and long ones, and each takes time to compare.
_COMPARED, _LONGEST = 1000, 200


def nearest(name: str, names: Iterable[str]) -> str | None:
    """That of ``names`` which is most like ``name``; of many, of the first ones; None of none."""
    from difflib import get_close_matches  # for errors only: a start should not wait for it

    short = (other for other in names if len(other) <= _LONGEST)
    found = get_close_matches(name[:_LONGEST], islice(short, _COMPARED), n=1, cutoff=0)
    return found[0] if found else None
