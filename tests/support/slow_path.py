"""Counts of slow-path calls, for tests of the fast path."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gptrs import tree
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.jit.captures import Captures
from gptrs.nn.module import Module

X = np.arange(1, 4, dtype=np.float32)


class Scale:
    factor = 2.0

    def __init__(self) -> None:
        self.extra = 1.0

    def times(self, x: Any) -> Any:
        return x * self.factor

    def __call__(self, x: Any) -> Any:
        return x * 2.0


@dataclass
class Record:
    factor: Any = 2.0

    def times(self, x: Any) -> Any:
        return x * self.factor


class Layer(Module):
    weight: Parameter
    factor: Any = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight * self.factor


def layer(value: float, factor: Any = 1.0) -> Layer:
    return Layer(Parameter(np.full(3, value, np.float32), "w"), factor)


class SlowCalls:
    """How often all that a function reads was walked over: the slow path."""

    count = 0

    def during(self, call: Callable[[], Any]) -> int:
        before = self.count
        call()
        return self.count - before


def counted(monkeypatch: pytest.MonkeyPatch) -> SlowCalls:
    """How many calls take the slow path from now on."""
    calls, entries = SlowCalls(), Captures.entries

    def count(captures: Captures) -> Any:
        calls.count += 1
        return entries(captures)

    monkeypatch.setattr(Captures, "entries", count)
    return calls


def leaves(result: Any) -> list[Any]:
    """The structure of a result, the types of its leaves and their text."""
    found, structure = tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor))
    values = [
        repr(x.numpy().tolist()) if isinstance(x, Tensor) else (type(x), repr(x)) for x in found
    ]
    return [structure, *values]
