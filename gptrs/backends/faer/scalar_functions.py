"""The scalar rules of ops as functions in the source of a kernel.

Input: a `gptrs.ir.scalar_rules.ScalarRule` and the dtype of its arithmetic. Output: a function that
Numba compiles and LLVM inlines into the loop. In arithmetic on floats the rule's numbers are of its
dtype, so that f32 stays f32; exp, log, sin, cos and the like are those of
`gptrs.kernels.scalar_functions`, which loops vectorise.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Mapping
from typing import Any

from gptrs.backends.faer.element_types import not_finite
from gptrs.ir.program import Operation
from gptrs.ir.types import DType

_OF_KERNELS = frozenset(["cos", "erf", "exp", "log", "sin", "tanh"])
"""The functions of one number in `gptrs.kernels.scalar_functions`."""
_QUESTIONS = frozenset(["isfinite", "isinf", "isnan"])


def can_write(op: Operation, attrs: Mapping[str, object]) -> bool:
    """Whether a loop can compute an op by its scalar rule, with these attributes."""
    known = all(isinstance(value, bool | int | float) for value in attrs.values())
    return known and op.scalar_rule is not None


def function_of(op: Operation, dtype: DType) -> tuple[str, str]:
    """The name and the source of the function that computes ``op`` in arithmetic on ``dtype``."""
    rule = op.scalar_rule
    assert rule is not None
    name = f"{op.name}_of_{dtype.name}"
    writer = _Writer(dtype)
    written = (writer.visit(copy.deepcopy(statement)) for statement in rule.body)
    body = (ast.unparse(ast.fix_missing_locations(statement)) for statement in written)
    lines = [f"    {line}" for part in body for line in part.splitlines()]
    return name, "\n".join([f"def {name}({', '.join(rule.parameters)}):", *lines, ""])


def attribute(value: object, dtype: DType) -> str:
    """An attribute as an argument of such a function."""
    if isinstance(value, float) and dtype.is_float:
        return ast.unparse(_number(value, dtype))
    return repr(value)


def _number(value: float, dtype: DType) -> ast.expr:
    """A constant in arithmetic on ``dtype``; a float stays one in arithmetic on integers."""
    text = repr(value)
    if not math.isfinite(value):
        text = not_finite(value)
    return ast.parse(f"{dtype.numpy.name}({text})" if dtype.is_float else text, mode="eval").body


class _Writer(ast.NodeTransformer):
    """Numbers as numbers of the dtype, and functions as the kernels' own."""

    def __init__(self, dtype: DType) -> None:
        self._dtype = dtype

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value: Any = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return node
        return _number(value, self._dtype)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            node.left = self.visit(node.left)  # a power that is multiplied
            return node
        return self.generic_visit(node)  # pyright: ignore[reportReturnType]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "range":
            return node
        node.args = [self.visit(argument) for argument in node.args]
        if self._dtype.is_float:
            node = self._of_kernels(node)
        return node

    def _of_kernels(self, node: ast.Call) -> ast.Call:
        match node.func:
            case ast.Attribute(attr=name) if name in _OF_KERNELS:
                kind, function = f"float{self._dtype.bits}", f"{name}{self._dtype.bits}"
                argument = ast.Call(ast.Name(kind, ast.Load()), node.args, [])
                return ast.Call(ast.Name(function, ast.Load()), [argument], [])
            case ast.Attribute(attr=name) if name not in _QUESTIONS:
                return ast.Call(ast.Name(self._dtype.numpy.name, ast.Load()), [node], [])
            case _:
                return node
