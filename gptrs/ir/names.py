"""Names that do not exist: the nearest ones that do, and the errors of attributes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from gptrs.errors import UnknownAttributeError
from gptrs.locks import late_import


def nearest(name: str, known: Iterable[str], count: int = 2) -> list[str]:
    """At most ``count`` of the ``known`` names that ``name`` may be a slip of, nearest first."""
    from difflib import get_close_matches  # for errors only, and slow to import

    return get_close_matches(name, known, n=count, cutoff=0.7)


def unknown_name(owner: str, name: str) -> UnknownAttributeError:
    """The error for ``name``, which ``owner`` ("ptir", "ptir.linalg", "Tensor") does not have."""
    problem = f"{'a Tensor' if owner == 'Tensor' else owner} has no attribute {name!r}"
    return UnknownAttributeError(problem, name=name, find=partial(_counterpart, owner, name))


def _counterpart(owner: str, name: str) -> str:
    found: str = late_import("gptrs.numpy_api.counterparts").counterpart(owner, name)
    return found
