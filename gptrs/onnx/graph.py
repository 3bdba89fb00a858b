"""A graph of ONNX as a function of Tensors, which `ptir.jit` traces.

Values are Tensors, or NumPy arrays where they are known when it is traced: constants, sizes, and
what is computed from these. Shapes and axes have to be known; where one depends on an argument of
the model, `ValueNeededError` names that argument, and the model is traced for its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from gptrs.errors import PtirError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.tensor import Tensor
from gptrs.onnx import operators as _operators  # fills the table
from gptrs.onnx.constants import RANDOM, folded
from gptrs.onnx.definitions import TABLE_DOMAINS, definition
from gptrs.onnx.table import (
    Meaning,
    OperandsNeededError,
    UnsupportedOperatorError,
    meaning_of,
)
from gptrs.onnx.tensors import array_of, several
from gptrs.onnx.values import Scope, Value, ValueNeededError, as_tensor

_onnx_helper: Any = helper
_ = _operators


def run_graph(graph: GraphProto, scope: Scope, nodes: Sequence[NodeProto]) -> list[Value]:
    """The results of a graph by its ``nodes``, whose arguments and weights are in the scope."""
    run_nodes(nodes, scope)
    found = [scope.find(result.name) for result in graph.output]
    return [value for value in found if value is not None]


def run_nodes(nodes: Sequence[NodeProto], scope: Scope) -> None:
    """Compute the results of the nodes into the scope."""
    for node in nodes:
        try:
            made = _run_node(node, scope)
        except PtirError as error:
            error.problem = f"{node.op_type} {node.name or node.output[0]!r}: {error.problem}"
            raise
        for name, value in zip(node.output, made, strict=False):
            if name and value is not None:
                scope.values[name] = value


def _run_node(node: NodeProto, scope: Scope) -> Sequence[Value | None]:
    operands = [scope.find(name) for name in node.input]
    while operands and operands[-1] is None:
        operands.pop()
    if (body := scope.functions.get((node.domain, node.op_type))) is not None:
        return _run_function(body, node, operands, scope)
    meaning = None
    if node.domain in TABLE_DOMAINS:
        meaning = meaning_of(node.op_type, scope.opset)
    if meaning is not None:
        return _run_meaning(meaning, node, operands, scope)
    body = definition(node, _own_attributes(node, scope), operands, scope)
    if body is None:
        domain = f" of {node.domain}" if node.domain else ""
        raise UnsupportedOperatorError(
            f"the operator{domain} in opset {scope.opset} is not supported"
        )
    return _run_function(body, node, operands, scope)


def _run_meaning(
    meaning: Meaning, node: NodeProto, operands: list[Value | None], scope: Scope
) -> list[Value]:
    attributes = {a.name: _attribute(a, scope) for a in _own_attributes(node, scope)}
    if meaning.counts_outputs:
        attributes["outputs"] = len([name for name in node.output if name])
    bodies = [v for v in attributes.values() if isinstance(v, Body)]
    sources = frozenset[str]().union(
        *(v.sources for v in operands if v is not None), *(body.sources for body in bodies)
    )
    _need(operands, meaning.known)

    def given(place: int) -> Any:
        value = operands[place]
        if value is None:
            return None
        if place in meaning.known or (bodies and value.known is not None):
            return value.known
        return as_tensor(value.content)

    def run() -> Any:
        return meaning.function(*(given(i) for i in range(len(operands))), **attributes)

    try:
        known = None if bodies else folded(node, operands, attributes, run)
        made = run() if known is None else known
    except OperandsNeededError as error:
        _need(operands, error.places)
        raise error.otherwise from None
    return [_value(result, sources) for result in several(made)]


def _need(operands: Sequence[Value | None], places: Iterable[int]) -> None:
    """Raises `ValueNeededError` for operands at ``places`` that are not known."""
    for place in places:
        value = operands[place] if place < len(operands) else None
        if value is None or value.known is not None:
            continue
        if not value.sources:
            raise UnsupportedOperatorError(
                f"operand {place} has to be known when the model is traced"
            )
        raise ValueNeededError(value.sources)


def _value(result: Any, sources: frozenset[str]) -> Value:
    """What is known depends on no argument."""
    return Value(result, sources) if isinstance(result, Tensor) else Value(np.asarray(result))


class Body:
    """A graph among the attributes of a node: a function of its arguments."""

    def __init__(self, graph: GraphProto, scope: Scope) -> None:
        self._graph = graph
        self._scope = scope
        inner = {name for node in graph.node for name in node.input if name}
        made = {name for node in graph.node for name in node.output}
        own = made | {v.name for v in graph.input} | {t.name for t in graph.initializer}
        outer: list[Value] = []
        for name in inner - own:
            try:
                value = scope.find(name)
            except UnsupportedOperatorError:
                continue  # a name of a graph within this one
            if value is not None:
                outer.append(value)
        self.sources: frozenset[str] = frozenset[str]().union(*(v.sources for v in outer))

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The results, known ones as arrays."""
        values = {t.name: Value(array_of(t)) for t in self._graph.initializer}
        for argument, content in zip(self._graph.input, operands, strict=True):
            values[argument.name] = Value(content, self.sources)
        scope = Scope(
            self._scope.opsets,
            self._scope.functions,
            values,
            self._scope,
            self._scope.attributes,
        )
        return tuple(value.content for value in run_graph(self._graph, scope, self._graph.node))


def _own_attributes(node: NodeProto, scope: Scope) -> list[AttributeProto]:
    """The attributes of a node; those of the function's call in place of references to them."""
    made: list[AttributeProto] = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made.append(attribute)
        elif (given := scope.attributes.get(attribute.ref_attr_name)) is not None:
            renamed = AttributeProto()
            renamed.CopyFrom(given)
            renamed.name = attribute.name
            made.append(renamed)
    return made


def _attribute(attribute: AttributeProto, scope: Scope) -> Any:
    if attribute.type == AttributeProto.GRAPH:
        return Body(attribute.g, scope)
    if attribute.type == AttributeProto.TENSOR:
        return array_of(attribute.t)
    value: Any = _onnx_helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if attribute.type == AttributeProto.STRINGS:
        return [each.decode() for each in value]
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def _run_function(
    body: FunctionProto, node: NodeProto, operands: list[Value | None], scope: Scope
) -> list[Value | None]:
    """The results of a node by the nodes of its definition."""
    given = {a.name: a for a in body.attribute_proto}
    given |= {a.name: a for a in _own_attributes(node, scope)}
    values: dict[str, Value] = {}
    for name, value in zip(body.input, operands, strict=False):
        if value is not None:
            values[name] = value
    opsets = {o.domain: o.version for o in body.opset_import} or scope.opsets
    inner = Scope(opsets, scope.functions, values, None, given)
    left_out = set(body.input) - set(values)
    nodes: list[NodeProto] = []
    for each in body.node:
        if left_out & set(each.input):
            kept = NodeProto()
            kept.CopyFrom(each)
            for i, name in enumerate(kept.input):
                if name in left_out:
                    kept.input[i] = ""
            nodes.append(kept)
        else:
            nodes.append(each)
    run_nodes(nodes, inner)
    pairs = zip(body.output, node.output, strict=False)
    return [inner.find(own) if wanted else None for own, wanted in pairs]


def fold_constants(graph: GraphProto, scope: Scope) -> list[NodeProto]:
    """Compute what depends on weights and constants alone into the scope; the other nodes."""
    scope.values.update((t.name, Value(array_of(t))) for t in graph.initializer)
    left: list[NodeProto] = []
    for node in graph.node:
        has_body = any(a.type == AttributeProto.GRAPH for a in node.attribute)
        is_known = all(not name or name in scope.values for name in node.input)
        if has_body or not is_known or node.op_type.startswith(RANDOM):
            left.append(node)
            continue
        with interpreter(None):
            run_nodes([node], scope)
        for name in node.output:
            if name in scope.values:
                scope.values[name] = Value(np.asarray(scope.values[name].content))
    return left
