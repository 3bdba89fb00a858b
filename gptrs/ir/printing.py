"""Programs as text: Python that runs, and that is read back without running it.

A printed program is a function over ``gptrs.ptir`` with one instruction per line. `parse` reads it
through a whitelisted syntax tree, so a text from anywhere can be opened safely.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Sequence
from itertools import count
from keyword import iskeyword
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
_USED = {"ptir", "float", "complex"}  # names that the text itself uses
_FLAGS = {"parameter", "donated"}


def to_text(program: Program) -> str:
    """The program as Python source."""
    lines = [f"# {VERSION}", "from gptrs import ptir", ""]
    symbols = sorted(_symbols(program))
    lines += [f'{name} = ptir.dim("{name}")' for name in symbols] + [""] * bool(symbols)
    taken = {*symbols, *_USED}
    return "\n".join([*lines, *_function(program, _free(program.name, taken), taken)])


def _free(name: str, taken: set[str]) -> str:
    """``name`` made an identifier that is not taken."""
    free = _ascii(name) or "_"
    free = f"_{free}" if free[0].isdigit() else free
    while free in taken or iskeyword(free):
        free += "_"
    return free


def _symbols(program: Program) -> set[str]:
    """Every symbol that the text will name."""
    found = program.symbols()
    for instruction in program.body:
        for region in instruction.regions():
            found |= _symbols(region)
    return found


def _ascii(name: str) -> str:
    """``name`` in letters that Python keeps as they are when it reads them."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII)


def _function(program: Program, name: str, taken: set[str]) -> list[str]:
    names: dict[Value, str] = {}
    values = (f"v{n}" for n in count() if f"v{n}" not in taken)
    regions = (f"region{n}" for n in count() if f"region{n}" not in taken)
    for param in program.params:
        made = _ascii(param.name).strip("_") or "x"  # as `Recorder.input` will make it again
        made += "_" * bool(re.fullmatch(r"v\d+|region\d+", made))
        names[param] = _free(made, {*taken, *names.values()})
    for instruction in program.body:
        names.update((result, next(values)) for result in instruction.results)
    params = ", ".join(f"{names[p]}: {_annotation(p)!r}" for p in program.params)
    lines = [f"def {name}({params}):"]
    for instruction in program.body:
        attrs: dict[str, str] = {}
        for key, value in instruction.attrs.items():
            if isinstance(value, Program):
                attrs[key] = next(regions)
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
            flat = _from_numbers(data, parsed.dtype)
        return flat.reshape([int(n) for n in parsed.shape])
    except (ValueError, PtirError) as error:
        raise ParseError(f"the elements do not fit {type}: {error}") from None


def _from_numbers(numbers: Sequence[float], dtype: DType) -> Array:
    """Numbers in ``dtype``. Raises `ValueError` for those that it has not."""
    if dtype.is_integer:
        low, high = dtype.limits
        if not all(type(n) is int and low <= n <= high for n in numbers):
            raise ValueError(f"expected integers from {low} to {high}")
        # In NumPy a list of integers on both sides of 2⁶³ would be floats.
        return np.asarray(numbers, np.uint64 if low == 0 else np.int64).astype(dtype.numpy)
    kinds = (bool,) if dtype.is_bool else (int, float)
    if not all(type(n) in kinds for n in numbers):
        raise ValueError(f"expected numbers of dtype {dtype}")
    return np.asarray(numbers, np.float64).astype(dtype.numpy)


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
    text = ast.unparse(node)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return ParseError(f"line {node.lineno}: {shown!r} does not belong in a program")
