"""Progress event of comparisons with torch."""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Comparing:
    """Event: the logits of an input called ``name`` come next; ``done`` of ``total`` are compared
    already."""

    name: str
    done: int
    total: int
