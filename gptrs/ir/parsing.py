"""Printed programs, read back without running them.

A text goes through a whitelisted syntax tree, so one from anywhere can be opened safely.
"""

from __future__ import annotations

import ast
from typing import Any

from gptrs.errors import ParseError, PtirError
from gptrs.ir.dims import Dim, dim, dim_arithmetic
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.printing import array
from gptrs.ir.program import VERSION, Program
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type

_FLAGS = {"parameter", "donated"}


def parse(text: str) -> Program:
    """Read a printed program without running it. Raises `ParseError` naming the line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.strip() != f"# {VERSION}":
        raise ParseError(f"the first line is {first!r}, expected '# {VERSION}'")
    try:
        return _read_module(ast.parse(text))
    except ParseError:
        raise
    except SyntaxError as error:
        raise ParseError(f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise ParseError(str(error)) from None
    except (RecursionError, MemoryError):
        raise ParseError("the text is nested too deeply") from None


def _read_module(tree: ast.Module) -> Program:
    scope: dict[str, Any] = {}
    program: Program | None = None
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="gptrs", names=[ast.alias(name="ptir", asname=None)]):
                pass
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="ptir"), attr="dim")) as call,
            ):
                scope[name] = _call(call, scope)
            case ast.FunctionDef() if program is None:
                program = _read_function(node, scope)
            case _:
                raise _unexpected(node)
    if program is None:
        raise ParseError("there is no function in the text")
    return program


def _read_function(node: ast.FunctionDef, outer: dict[str, Any]) -> Program:
    recorder = Recorder(node.name)
    arguments = node.args.args
    plain = ast.arguments([], arguments, None, [], [], None, [])
    if node.decorator_list or node.returns or ast.dump(node.args) != ast.dump(plain):
        raise ParseError(f"line {node.lineno}: {node.name} has more than arguments with a type")
    scope = dict(outer)
    for argument in arguments:
        type, flags = _read_annotation(argument)
        if any(argument.arg == param.name for param in recorder.params):
            raise ParseError(f"line {argument.lineno}: two arguments are called {argument.arg}")
        scope[argument.arg] = recorder.input(
            type,
            argument.arg,
            role="parameter" if "parameter" in flags else "input",
            donated="donated" in flags,
        )
    results: list[Any] | None = None
    with interpreter(recorder):
        for line in node.body:
            match line:
                case ast.FunctionDef():
                    scope[line.name] = _read_function(line, outer)
                case ast.Assign(targets=[target], value=ast.Call() as call):
                    _assign(target, _call(call, scope), scope)
                case ast.Return(value=ast.Tuple(elts=values)):
                    results = [_evaluate(value, scope) for value in values]
                case ast.Return(value=ast.expr() as value):
                    results = [_evaluate(value, scope)]
                case _:
                    raise _unexpected(line)
            if results is not None and (line is not node.body[-1] or not _are_tensors(results)):
                raise ParseError(f"line {line.lineno}: expected a last line that returns values")
    if results is None:
        raise ParseError(f"line {node.lineno}: {node.name} returns nothing")
    return recorder.finish(results)


def _are_tensors(results: list[Any]) -> bool:
    return all(isinstance(result, Tensor) for result in results)


def _read_annotation(argument: ast.arg) -> tuple[Type, list[str]]:
    """The type of an argument, and the words after it."""
    match argument.annotation:
        case ast.Constant(value=str(text)) if text.strip() and _FLAGS.issuperset(text.split()[1:]):
            type, *flags = text.split()
        case _:
            raise ParseError(f"line {argument.lineno}: {argument.arg} has no type")
    try:
        return Type.parse(type), flags
    except PtirError as error:
        raise ParseError(f"line {argument.lineno}: {error}") from None


def _assign(target: ast.expr, result: Any, scope: dict[str, Any]) -> None:
    match target:
        case ast.Name(id=name):
            scope[name] = result
        case ast.Tuple(elts=targets) if isinstance(result, tuple) and len(targets) == len(result):  # pyright: ignore[reportUnknownArgumentType]
            for part, value in zip(targets, result, strict=True):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                _assign(part, value, scope)
        case _:
            raise _unexpected(target)


def _call(node: ast.Call, scope: dict[str, Any]) -> Any:
    match node.func:
        case ast.Attribute(value=ast.Name(id="ptir"), attr="dim"):
            function: Any = dim
        case ast.Attribute(value=ast.Name(id="ptir"), attr="array"):
            function = array
        case ast.Attribute(value=ast.Name(id="ptir"), attr=name) if name in OPS:
            function = OPS[name]
        case ast.Name(id="float"):
            function = float
        case ast.Name(id="complex"):
            function = complex
        case _:
            raise _unexpected(node)
    if any(keyword.arg is None for keyword in node.keywords):
        raise _unexpected(node)
    arguments = [_evaluate(a, scope) for a in node.args]
    keywords = {k.arg: _evaluate(k.value, scope) for k in node.keywords if k.arg is not None}
    try:
        return function(*arguments, **keywords)
    except Exception as error:  # a text can offend a type rule in any way
        raise ParseError(f"line {node.lineno}: {error}") from None


def _evaluate(node: ast.expr, scope: dict[str, Any]) -> Any:
    """The value of an expression of names, numbers, strings, tuples, lists, dims and calls."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in scope:
            return scope[name]
        case ast.Tuple(elts=parts):
            return tuple(_evaluate(part, scope) for part in parts)
        case ast.List(elts=parts):
            return [_evaluate(part, scope) for part in parts]
        case ast.Call():
            return _call(node, scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, scope)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _evaluate(left, scope), _evaluate(right, scope)
            if not isinstance(a, int | Dim) or not isinstance(b, int | Dim):
                raise _unexpected(node)
            try:
                return dim_arithmetic(operator, a, b)
            except PtirError:
                raise _unexpected(node) from None
        case _:
            raise _unexpected(node)


def _number(node: ast.expr, scope: dict[str, Any]) -> Any:
    value = _evaluate(node, scope)
    if not isinstance(value, int | float | complex | Dim):
        raise _unexpected(node)
    return value


def _unexpected(node: ast.stmt | ast.expr) -> ParseError:
    text = ast.unparse(node)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return ParseError(f"line {node.lineno}: {shown!r} does not belong in a program")
