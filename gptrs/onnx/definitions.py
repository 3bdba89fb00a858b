"""Operators that ONNX, or a file, defines by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto, defs, helper

from gptrs.onnx.table import meaning_of
from gptrs.onnx.values import STANDARD, Scope, Value, as_tensor

_onnx_helper: Any = helper
_schemas: Any = defs
TABLE_DOMAINS = (*STANDARD, "ai.onnx.ml")
"""The domains of the operators in the table."""


def definition(
    node: NodeProto,
    attributes: Sequence[AttributeProto],
    operands: Sequence[Value | None],
    scope: Scope,
) -> FunctionProto | None:
    """How ONNX defines the operator by others; None where it does not."""
    version = scope.opsets.get(node.domain, scope.opset)
    try:
        schema = _schemas.get_schema(node.op_type, version, node.domain)
    except _schemas.SchemaError:
        return None
    called = NodeProto()
    called.CopyFrom(node)
    del called.attribute[:]
    called.attribute.extend(attributes)
    data: bytes | None = None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        if versions:
            data = schema.get_function_with_opset_version(max(versions))
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        types = [_type_of(v).SerializeToString() for v in operands]
        if versions:
            data = schema.get_context_dependent_function_with_opset_version(
                max(versions), called.SerializeToString(), types
            )
    if not data:
        return None
    made = FunctionProto()
    made.ParseFromString(data)
    return made


def _type_of(value: Value | None) -> TypeProto:
    """The type of an operand, as ONNX writes it."""
    made = TypeProto()
    if value is not None:
        tensor = as_tensor(value.content)
        made.tensor_type.elem_type = _onnx_helper.np_dtype_to_tensor_dtype(tensor.dtype.numpy)
        for extent in tensor.shape:
            dim = made.tensor_type.shape.dim.add()
            if isinstance(extent, int):
                dim.dim_value = extent
            else:
                dim.dim_param = str(extent)
    return made


def unsupported_operators(graph: GraphProto, scope: Scope) -> list[str]:
    """The operators of a graph, and of the graphs in it, that are not in the table, and that
    neither the file nor ONNX defines."""
    found: dict[str, None] = {}
    for node in graph.node:
        version = scope.opsets.get(node.domain, scope.opset)
        is_known = (node.domain, node.op_type) in scope.functions or (
            node.domain in TABLE_DOMAINS and meaning_of(node.op_type, scope.opset) is not None
        )
        if not is_known and not _has_definition(node, version):
            found[f"{node.domain}.{node.op_type}".removeprefix(".")] = None
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                found.update(dict.fromkeys(unsupported_operators(attribute.g, scope)))
    return list(found)


def _has_definition(node: NodeProto, version: int) -> bool:
    try:
        schema = _schemas.get_schema(node.op_type, version, node.domain)
    except _schemas.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function
