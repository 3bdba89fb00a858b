"""One of several ways to compute a composite, other than its definition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PORTABLE = "portable"
"""The implementation that every composite has: its definition."""
KERNEL = "kernel"
"""Left whole: the backend's kernel."""


@dataclass(frozen=True, eq=False)
class Implementation:
    """A function over ops that computes what a composite does, where ``when`` holds.

    ``revision`` counts the functions that had this name before: programs made of another one are
    not reused.
    """

    name: str
    function: Callable[..., Any]
    when: Callable[..., bool] | None
    revision: int

    def __str__(self) -> str:
        return f"{self.name} (revision {self.revision})" if self.revision else self.name

    def fits(self, given: Mapping[str, Any]) -> bool:
        """Whether ``when`` holds of operands (as types) and attributes, by name."""
        if self.when is None:
            return True
        names = names_asked(self.when, given)
        return bool(self.when(**{name: given[name] for name in names}))


def names_asked(function: Callable[..., Any], names: Iterable[str]) -> tuple[str, ...]:
    """The parameters of ``function``; all of ``names`` where it takes any keywords."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return tuple(names)
    return tuple(parameter.name for parameter in parameters)
