"""Programs as text: Python that runs, and that is read back without running it.

A printed program is a function over ``gptrs.ptir`` with one instruction per line. `parse` reads it
through a whitelisted syntax tree, so a text from anywhere can be opened safely.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gptrs.errors import ParseError, PtirError
from gptrs.ir.dims import Dim, dim
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.program import VERSION, Instruction, Operand, Program, Value, key_of
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, DType, Type

_INLINE_ELEMENTS = 64  # arrays up to this size are printed as numbers, larger ones as base64


def to_text(program: Program) -> str:
    """The program as Python source."""
    lines = [f"# {VERSION}", "from gptrs import ptir", ""]
    symbols = sorted(_symbols(program))
    lines += [f'{name} = ptir.dim("{name}")' for name in symbols] + [""] * bool(symbols)
    return "\n".join([*lines, *_function(program, re.sub(r"\W+", "_", program.name), set(symbols))])


def _symbols(program: Program) -> set[str]:
    """Every symbol that the text will name."""
    found = program.symbols()
    for instruction in program.body:
        for region in instruction.regions():
            found |= _symbols(region)
    return found


def _function(program: Program, name: str, taken: set[str]) -> list[str]:
    names: dict[Value, str] = {}
    for param in program.params:
        free = param.name not in taken and not re.fullmatch(r"v\d+|region\d+|ptir", param.name)
        names[param] = param.name if free else f"{param.name}_"
    for instruction in program.body:
        for result in instruction.results:
            names[result] = f"v{len(names) - len(program.params)}"
    params = ", ".join(f"{names[p]}: {_annotation(p)!r}" for p in program.params)
    lines = [f"def {name}({params}):"]
    regions = 0
    for instruction in program.body:
        attrs: dict[str, str] = {}
        for key, value in instruction.attrs.items():
            if isinstance(value, Program):
                attrs[key] = f"region{regions}"
                regions += 1
                lines += [f"    {line}" for line in _function(value, attrs[key], taken)]
            elif key_of(value) != key_of(_default(instruction, key)):
                attrs[key] = _literal(value)
        operands = [_operand(o, names) for o in _without_absent_tail(instruction.operands)]
        arguments = ", ".join([*operands, *(f"{k}={v}" for k, v in attrs.items())])
        results = ", ".join(names[r] for r in instruction.results)
        types = ", ".join(str(r.type) for r in instruction.results)
        lines.append(f"    {results} = ptir.{instruction.op.name}({arguments})  # {types}")
    returned = ", ".join(names[r] for r in program.results)
    return [*lines, f"    return {returned or '()'}", ""]


def _annotation(param: Any) -> str:
    words = [str(param.type)]
    words += ["parameter"] * (param.role == "parameter") + ["donated"] * param.donated
    return " ".join(words)


def _default(instruction: Instruction, attr: str) -> object:
    defaults: dict[str, object] = getattr(instruction.op, "attr_defaults", {})
    return defaults.get(attr)


def _without_absent_tail(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    while operands and operands[-1] is None:
        operands = operands[:-1]
    return operands


def _operand(operand: Operand, names: dict[Value, str]) -> str:
    if isinstance(operand, Value):
        return names[operand]
    if isinstance(operand, tuple):
        inner = ", ".join(_operand(o, names) for o in operand)
        return f"({inner},)" if len(operand) == 1 else f"({inner})"
    return _literal(operand)


def _literal(value: object) -> str:
    if isinstance(value, DType):
        return repr(value.name)
    if isinstance(value, np.ndarray):
        return _array_text(cast("Array", value))
    if isinstance(value, tuple):
        parts = [*map(_literal, cast("tuple[object, ...]", value))]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    return repr(value)


def _array_text(array: Array) -> str:
    type = Type.of(array)
    finite = not (type.dtype.is_float or type.dtype.is_complex) or bool(
        np.isfinite(array.astype(np.complex128)).all()
    )
    if array.size <= _INLINE_ELEMENTS and finite and not type.dtype.is_complex:
        wide = array.astype(np.float64) if type.dtype.is_float else array
        plain = wide.astype(np.int64) if type.dtype.bits == 4 else wide
        return f'ptir.array("{type}", {plain.ravel().tolist()})'
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return f'ptir.array("{type}", "{data}")'


def array(type: str, data: str | Sequence[float]) -> Array:
    """An array from its printed form: a list of numbers in row-major order, or base64 of its bytes
    (little-endian). Raises `ParseError` when they do not fit the type."""
    parsed = Type.parse(type)
    try:
        if isinstance(data, str):
            flat = np.frombuffer(base64.b64decode(data, validate=True), parsed.dtype.numpy)
        else:
            flat = np.asarray(data).astype(parsed.dtype.numpy)
        return flat.reshape([int(n) for n in parsed.shape])
    except (ValueError, PtirError) as error:
        raise ParseError(f"the elements do not fit {type}: {error}") from None


def parse(text: str) -> Program:
    """Read a printed program without running it. Raises `ParseError` naming the line."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.strip() != f"# {VERSION}":
        raise ParseError(f"the first line is {first!r}, expected '# {VERSION}'")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ParseError(f"line {error.lineno}: {error.msg}") from None
    scope: dict[str, Any] = {}
    program: Program | None = None
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="gptrs", names=[ast.alias(name="ptir", asname=None)]):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                scope[name] = _evaluate(value, scope)
            case ast.FunctionDef() if program is None:
                program = _read_function(node, scope)
            case _:
                raise _unexpected(node)
    if program is None:
        raise ParseError("there is no function in the text")
    return program


def _read_function(node: ast.FunctionDef, outer: dict[str, Any]) -> Program:
    recorder = Recorder(node.name)
    scope = dict(outer)
    for argument in node.args.args:
        if not isinstance(argument.annotation, ast.Constant):
            raise ParseError(f"line {argument.lineno}: {argument.arg} has no type")
        type, *flags = str(argument.annotation.value).split()
        scope[argument.arg] = recorder.input(
            Type.parse(type),
            argument.arg,
            role="parameter" if "parameter" in flags else "input",
            donated="donated" in flags,
        )
    results: list[Tensor] | None = None
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
    if results is None:
        raise ParseError(f"{node.name} returns nothing")
    return recorder.finish(results)


def _assign(target: ast.expr, result: Any, scope: dict[str, Any]) -> None:
    match target:
        case ast.Name(id=name):
            scope[name] = result
        case ast.Tuple(elts=targets) if isinstance(result, tuple):
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
    arguments = [_evaluate(a, scope) for a in node.args]
    keywords = {k.arg: _evaluate(k.value, scope) for k in node.keywords if k.arg is not None}
    try:
        return function(*arguments, **keywords)
    except PtirError as error:
        raise ParseError(f"line {node.lineno}: {error}") from None
    except (TypeError, ValueError) as error:
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
            a, b = _number(left, scope), _number(right, scope)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return a // b
                case ast.Pow() if isinstance(a, Dim) and isinstance(b, int) and 0 < b < 16:
                    power: Any = a
                    for _ in range(b - 1):
                        power = power * a
                    return power
                case _:
                    raise _unexpected(node)
        case _:
            raise _unexpected(node)


def _number(node: ast.expr, scope: dict[str, Any]) -> Any:
    value = _evaluate(node, scope)
    if not isinstance(value, int | float | complex | Dim):
        raise _unexpected(node)
    return value


def _unexpected(node: ast.stmt | ast.expr) -> ParseError:
    return ParseError(f"line {node.lineno}: {ast.unparse(node)!r} does not belong in a program")
