"""Captured state that is mutated between two calls: no cached call is stale."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from tests.changes import MUTATIONS
from tests.changes.layers import Stack
from tests.support.captured import HOLDERS, SCALED
from tests.support.slow_path import SlowCalls, X, layer, leaves


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_between_two_calls(name: str, slow_calls: SlowCalls) -> None:
    body, change = MUTATIONS[name]()
    function = ptir.jit(body)
    before = leaves(function(X))
    assert leaves(function(X)) == before
    was_remembered = slow_calls.during(lambda: function(X)) == 0
    assert was_remembered == (name != "closure_assigned_at_last")
    change()
    after = leaves(function(X))
    assert after == leaves(ptir.jit(body)(X))
    assert after != before or name in ("array_reshaped_in_place", "dict_reordered")
    assert slow_calls.during(lambda: function(X)) == 0
    assert leaves(function(X)) == after


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("place", ["closure", "argument"])
def test_what_is_remembered(name: str, place: str, slow_calls: SlowCalls) -> None:
    make, read, change = HOLDERS[name]
    holder = make()
    if place == "closure":
        function, argument = ptir.jit(lambda x, _: x * read(holder)), None
    else:
        function, argument = ptir.jit(lambda x, box: x * read(box)), holder
    for _ in range(2):
        function(X, argument)
        is_torch = name in ("torch", "bf16") and place == "argument"
        assert slow_calls.during(lambda: function(X, argument)) == is_torch
        change(holder, 9.0)


@pytest.mark.parametrize("name", SCALED)
def test_functions_that_are_remembered(name: str, slow_calls: SlowCalls) -> None:
    function = ptir.jit(SCALED[name])
    function(X)
    assert slow_calls.during(lambda: [function(X), function(X + 1)]) == 0
    assert function.cache_info()[:2] == (2, 1)


class Node:
    """Part of a graph that a random walk changes."""

    kind = 1.0

    def __init__(self) -> None:
        self.value: Any = 1.0
        self.items: list[Any] = [1.0, 2.0]
        self.table: dict[str, Any] = {"a": 1.0}
        self.layers = Stack([layer(i + 1.0) for i in range(5)])
        self.array = X.copy()
        self.next: Any = None


def computed(x: Any, node: Any) -> Any:
    total = node.layers(x) * node.kind + node.array
    seen: list[Any] = []
    while node is not None and not any(node is other for other in seen):
        seen.append(node)
        for value in (node.value, *node.items, *node.table.values()):
            total = total + float(value)
        node = node.next
    return total, repr([type(v) for n in seen for v in (n.value, *n.items)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_changes(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes = [Node() for _ in range(3)]
    numbers: list[Any] = [1, True, 1.0, 2.0, 0.0, -0.0]

    def change() -> None:
        node, other = (nodes[i] for i in random.integers(0, 3, 2))
        number = numbers[random.integers(0, 6)]
        layers = node.layers.layers
        here, there = random.integers(0, len(layers), 2)
        changes: list[Callable[[], Any]] = [
            lambda: setattr(node, "value", number),
            lambda: setattr(node, "kind", float(number)),
            lambda: vars(node).pop("kind", None),
            lambda: setattr(Node, "kind", float(number)),
            lambda: node.items.__setitem__(0, number),
            lambda: node.items.append(number),
            lambda: node.items.pop() if len(node.items) > 1 else None,
            lambda: node.table.update(b=number),
            lambda: node.table.pop("b", None),
            lambda: setattr(node, "items", other.items),
            lambda: setattr(node, "items", list(other.items)),
            lambda: setattr(node, "next", other),
            lambda: setattr(node, "next", None),
            lambda: layers.__setitem__(here, layers[there]),
            lambda: layers.__setitem__(here, layer(float(number))),
            lambda: setattr(layers[here], "weight", layers[there].weight),
            lambda: setattr(layers[here], "factor", float(number)),
            lambda: node.array.__setitem__(0, number),
            lambda: setattr(node, "array", other.array.copy()),
            lambda: nodes.__setitem__(0, Node()),
        ]
        changes[random.integers(0, len(changes))]()

    by_argument = ptir.jit(lambda x, node: computed(x, node))
    by_closure = ptir.jit(lambda x: computed(x, nodes[0]))
    for _ in range(60):
        if random.random() < 0.7:
            change()
        expected = leaves(ptir.jit(lambda x: computed(x, nodes[0]))(X))
        assert leaves(by_closure(X)) == expected
        for node in nodes:
            expected = leaves(ptir.jit(lambda x, n=node: computed(x, n))(X))
            assert leaves(by_argument(X, node)) == expected
    Node.kind = 1.0
