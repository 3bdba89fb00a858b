"""Groups of instructions: the user's calls, nested as they were while the function was traced.

Each call of a module or function is one group. A module's group is named by its path in the
outermost module (``h.0.attn``), a function's by its name; calls alike in one group are numbered.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gptrs.errors import Location
from gptrs.ir.call_stack import Call, CallSite

Json = dict[str, Any]


class Groups:
    """The tree of calls; group 0 is the traced function."""

    def __init__(self, name: str) -> None:
        self._root = name
        self._of: dict[Call, int] = {}
        self._seen: Counter[tuple[int, str]] = Counter()
        self.entries: list[Json] = [{"label": name, "kind": "program", "parent": None}]

    def of(self, where: Location | None) -> int | None:
        """The group of an instruction from this line; None where its calls are not known."""
        if not isinstance(where, CallSite) or not where.calls:
            return None
        first, *inner = where.calls
        if first.kind:
            self.entries[0].setdefault("class", first.kind)
        group = 0
        for call in inner:
            group = self._child(group, call)
        return group

    def _child(self, parent: int, call: Call) -> int:
        found = self._of.get(call)
        if found is not None:
            return found
        method = call.function.rpartition(".")[2]
        entry: Json = {"kind": "function", "parent": parent}
        label = method
        if call.kind:
            entry |= {"kind": "module", "class": call.kind, "path": call.path}
            label = call.path or call.kind
            if method != "__call__":
                label = f"{label}.{method}"
        self._seen[parent, label] += 1
        if (count := self._seen[parent, label]) > 1:
            label = f"{label} #{count}"
        entry |= {"label": label, "function": call.function, "line": call.line}
        self._of[call] = len(self.entries)
        self.entries.append(entry)
        return self._of[call]
