"""What a compiled module runs: the plan of each of its graphs, and what torch runs in them.

model = torch.compile(model, backend="gptrs")
print(gptrs.torch.explain(model, x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.debug.explain import Explanation
from gptrs.ir.program import Program
from gptrs.lazy_dataclass import dataclass
from gptrs.torch.compiled import GraphCall, noted_calls
from gptrs.torch.operators import Fallback


@dataclass(frozen=True)
class GraphExplanation:
    """A graph of a compiled module: print it."""

    call: GraphCall

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """The operators that torch runs, each with the reason."""
        return tuple(dict.fromkeys(self.call.fallbacks))

    @property
    def plan(self) -> Explanation | None:
        """The plan that the graph runs by; None where torch runs it."""
        function: Any = self.call.function
        return None if function is None else function.explain(*self.call.arrays)

    @property
    def program(self) -> Program | None:
        """The graph as it was traced; None where torch runs it."""
        function: Any = self.call.function
        return None if function is None else function.program(*self.call.arrays)

    def __str__(self) -> str:
        lines = [f"torch runs {f.operator}: {f.reason}" for f in self.fallbacks]
        return "\n".join([*([] if self.plan is None else [str(self.plan)]), *lines])

    __repr__ = __str__


class Graphs(list[GraphExplanation]):
    """The graphs that a call ran, in order: more than one where torch broke it up, or where it
    computed gradients."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "no graph was run by gptrs"

    __repr__ = __str__


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graphs:
    """Call a module or function that ``torch.compile(backend="gptrs")`` returned, and explain what
    it ran."""
    with noted_calls() as calls:
        function(*args, **kwargs)
    return Graphs(map(GraphExplanation, calls))
