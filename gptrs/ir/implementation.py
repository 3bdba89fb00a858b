"""`Implementation`: an alternative way to compute a composite, with the condition for its use.

Registered by `gptrs.ir.implementations.registry`, picked by overrides (`gptrs.jit.overrides`),
substituted by the pass `gptrs.passes.choose_implementations`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gptrs.lazy_dataclass import dataclass

PORTABLE = "portable"
"""The implementation that every composite has: its definition."""
KERNEL = "kernel"
"""The composite is left whole for the backend's kernel."""


@dataclass(frozen=True, eq=False)
class Implementation:
    """A function over ops that computes a composite, for operands and attributes where ``when``
    holds.

    ``revision`` counts the earlier functions of this name: programs made from them are not reused.
    """

    name: str
    function: Callable[..., Any]
    when: Callable[..., bool] | None
    revision: int

    def __str__(self) -> str:
        return f"{self.name} (revision {self.revision})" if self.revision else self.name

    def fits(self, given: Mapping[str, Any]) -> bool:
        """Whether ``when`` holds for operands (as types) and attributes, by name."""
        if self.when is None:
            return True
        names = names_asked(self.when, given)
        return bool(self.when(**{name: given[name] for name in names}))


def names_asked(function: Callable[..., Any], names: Iterable[str]) -> tuple[str, ...]:
    """The parameters of ``function`` by name; all of ``names`` where it takes any keyword."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return tuple(names)
    return tuple(parameter.name for parameter in parameters)
