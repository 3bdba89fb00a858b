"""The options of ``torch.compile(backend="gptrs", options={...})``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class GraphOptions:
    """How graphs are compiled."""

    strict: bool = False
    """Whether an operator that only torch can run is an error."""
    precise: bool | None = None
    """As of ``ptir.jit``."""
    backend: str | None = None
    """As of ``ptir.jit``: the backend that runs programs."""
    name: str = "torch"
    """Of the programs, in messages and dumps."""

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> GraphOptions:
        """The options of a call. Raises `ArgumentError` for others."""
        known = [field.name for field in fields(cls)]
        given = dict(options or {})
        if unknown := sorted(set(given) - set(known)):
            raise ArgumentError(
                f"torch.compile(backend='gptrs') has no option {unknown[0]!r}",
                fix=f"its options are: {', '.join(known)}",
            )
        return cls(**given)
