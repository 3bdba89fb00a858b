"""Results of a graph that are views of its operands or of other results.

torch makes the views that it returns anew from their base by size, strides and offset in memory: a
program's result has the right elements and none of these. So torch applies the operators of views
itself, which moves no elements, and the program leaves such results out.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from torch._ops import OpOverload
from torch.fx import Graph, GraphModule
from torch.fx.node import Node


def is_view(node: Node) -> bool:
    """Whether a node's result has the memory of the first operand."""
    target: Any = node.target
    if target is operator.getitem:
        (source, _) = node.args
        return isinstance(source, Node) and is_view(source)
    if not isinstance(target, OpOverload):
        return False
    schema: Any = target._schema  # pyright: ignore[reportPrivateUsage]
    aliases = [result.alias_info for result in schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


class Views:
    """The results that are views, and how torch makes them."""

    def __init__(self, module: GraphModule, results: Sequence[Any]) -> None:
        nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
        bases = {*nodes, *(r for r in results if isinstance(r, Node) and not is_view(r))}
        self.places = [
            place
            for place, result in enumerate(results)
            if isinstance(result, Node) and is_view(result) and _base(result) in bases
        ]
        self._kept = [place for place in range(len(results)) if place not in self.places]
        given = [*nodes, *(results[place] for place in self._kept)]
        self._module = _extracted(module, given, [results[place] for place in self.places])

    def others(self, results: Sequence[Any]) -> list[Any]:
        """The results that are no views."""
        return [results[place] for place in self._kept]

    def joined(self, others: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """All results, for those that are no views and the operands of the graph."""
        if not self.places:
            return [*others]
        views: Sequence[Any] = self._module(*operands, *others)
        made = dict(zip(self._kept, others, strict=True))
        made |= zip(self.places, views, strict=True)
        return [made[place] for place in range(len(made))]


def _base(node: Node) -> Any:
    """What a view is one of, in the end."""
    while is_view(node):
        source: Any = node.args[0]
        node = source
    return node


def _extracted(module: GraphModule, given: Sequence[Any], results: Sequence[Node]) -> Any:
    """The part of a graph that computes ``results`` from ``given`` nodes, as a function."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for number, node in enumerate(given):
        copy = graph.placeholder(f"given_{number}")
        if isinstance(node, Node):
            copies.setdefault(node, copy)
    needed = set[Node]()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node not in copies and node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    for node in module.graph.nodes:
        if node in needed:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[result] for result in results])
    return GraphModule(module, graph)
