"""What tests of remembered calls share: a count of slow walks, and results to compare."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gptrs import tree
from gptrs.ir.tensor import Tensor
from gptrs.jit.captures import Captures


class Walks:
    """How often all that a function reads was walked over: the slow path."""

    count = 0

    def during(self, call: Callable[[], Any]) -> int:
        before = self.count
        call()
        return self.count - before


def counted(monkeypatch: pytest.MonkeyPatch) -> Walks:
    """The count of all walks from now on."""
    walks, entries = Walks(), Captures.entries

    def count(captures: Captures) -> Any:
        walks.count += 1
        return entries(captures)

    monkeypatch.setattr(Captures, "entries", count)
    return walks


def leaves(result: Any) -> list[Any]:
    """The structure of a result, the types of its leaves and their text."""
    found, structure = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor))
    values = [
        repr(x.numpy().tolist()) if isinstance(x, Tensor) else (type(x), repr(x)) for x in found
    ]
    return [structure, *values]
