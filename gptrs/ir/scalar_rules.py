"""Scalar rules: what an elementwise op computes of one element of each operand, in Python.

A rule is kept as syntax: a backend writes it into the source of its loops, so that kernels are
text, known by their contents and compiled anywhere. It may use its parameters and local names,
arithmetic, comparisons, ``if``, loops, numbers that its module or closure holds when the rule is
given, ``abs``, ``min``, ``max``, ``int``, ``float``, ``range``, and functions of `math` or NumPy
that `FUNCTIONS` lists.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from gptrs.errors import ArgumentError
from gptrs.lazy_dataclass import dataclass

_BUILTINS = frozenset(["abs", "min", "max", "int", "float", "range"])
_BOTH = (
    *("ceil", "copysign", "cos", "cosh", "exp", "expm1", "fabs", "floor", "hypot"),
    *("isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt"),
    *("tan", "tanh"),
)
_INVERSE = ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")
FUNCTIONS: Mapping[ModuleType, Mapping[str, str]] = {
    math: {name: name for name in (*_BOTH, *_INVERSE, "erf", "erfc")},
    np: {name: name for name in _BOTH} | {f"arc{name[1:]}": name for name in _INVERSE},
}
"""By module: the functions that a rule may call, and what they are called in `math`."""
_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
_REFUSED = (
    *(ast.Attribute, ast.Subscript, ast.Lambda, ast.FunctionDef, ast.ListComp, ast.Await),
    *(ast.Raise, ast.Try, ast.With, ast.Assert, ast.Import, ast.ImportFrom, ast.Global),
    *(ast.Nonlocal, ast.JoinedStr, ast.Dict, ast.Set, ast.List, ast.GeneratorExp, ast.ClassDef),
)


@dataclass(frozen=True)
class ScalarRule:
    """A function of scalars: the op's operands in order, then its attributes."""

    parameters: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    """Functions of `math` are ``math.<name>`` and numbers of the module constants in it."""


def scalar_rule(
    function: Callable[..., Any], op: str, operands: Sequence[str], attrs: Sequence[str]
) -> ScalarRule:
    """The rule that ``function`` says for the op called ``op``.

    Raises `ArgumentError` naming what a rule may not use, or a source that cannot be read.
    """
    node = _syntax_of(function, op)
    names = tuple(inspect.signature(function).parameters)
    if names != (*operands, *attrs):
        raise ArgumentError(
            f"the scalar rule of {op} takes ({', '.join(names)})",
            fix=f"it takes the op's operands and attributes: ({', '.join((*operands, *attrs))})",
        )
    assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_stored(n)}
    known = inspect.getclosurevars(function)
    values: dict[str, Any] = {**known.globals, **known.nonlocals}
    resolved = _Resolver(op, {*names, *assigned}, values)
    body = [resolved.visit(part) for part in node.body if not _is_text(part)]
    return ScalarRule(names, tuple(body))


def _syntax_of(function: Callable[..., Any], op: str) -> ast.FunctionDef:
    if not isinstance(function, FunctionType):
        raise ArgumentError(f"the scalar rule of {op} is no function: {function!r}")
    linecache.checkcache(function.__code__.co_filename)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError) as error:
        raise ArgumentError(
            f"the source of the scalar rule of {op} cannot be read: {error}",
            fix="define it in a file or a cell of a notebook, by def",
        ) from None
    (node,) = tree.body
    if not isinstance(node, ast.FunctionDef):
        raise ArgumentError(f"the scalar rule of {op} is no function", fix="define it by def")
    return node


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_text(part: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


class _Resolver(ast.NodeTransformer):
    """Puts in what names of the module stand for. Raises `ArgumentError` for what is refused."""

    def __init__(self, op: str, local: set[str], values: Mapping[str, Any]) -> None:
        self._op = op
        self._local = local
        self._values = values

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, _REFUSED):
            raise self._refused(ast.unparse(node))
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._local:
            return node
        value = self._values.get(node.id)
        if isinstance(value, bool | int | float):
            return ast.Constant(value)
        if node.id in _BUILTINS and node.id not in self._values:
            return node
        raise self._refused(node.id)

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        module: Any = self._values.get(name)
        if module is math or module is np:
            if node.attr in _CONSTANTS:
                return ast.Constant(_CONSTANTS[node.attr])
            if node.attr in FUNCTIONS[module]:
                name = FUNCTIONS[module][node.attr]
                return ast.Attribute(ast.Name("math", ast.Load()), name, ast.Load())
        raise self._refused(ast.unparse(node))

    def _refused(self, what: str) -> ArgumentError:
        return ArgumentError(
            f"the scalar rule of {self._op} uses {what}",
            fix="a rule uses its parameters, numbers, arithmetic, `if`, abs, min, max, and"
            " functions of math such as math.exp; docs/extending.md has them all",
        )
