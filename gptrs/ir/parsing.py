"""Parser of printed programs: text to `Program`, without running the text.

The text is checked by `gptrs.ir.lexing`, parsed by Python's `ast`, and rebuilt from a whitelist of
node types under a `Recorder`, so that an untrusted text can be opened safely. The inverse of
`gptrs.ir.printing`.
"""

from __future__ import annotations

import ast
from typing import Any

from gptrs.errors import ParseError, PtirError
from gptrs.ir.dims import Dim, dim, dim_arithmetic
from gptrs.ir.dispatch import OPS, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.lexing import check_words
from gptrs.ir.printing import IMPORT, array
from gptrs.ir.program import VERSION, Program
from gptrs.ir.promotion import strictness
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type

_FLAGS = {"parameter", "donated"}
_FORMER_IMPORT = "from gptrs import ptir"  # of texts printed before ptir.ops
_USED = {"ptir", "float", "complex"}  # names that have their meaning in every text
_MOST_TYPE = 4096  # characters of a type or another word in quotes; elements may have more
_MOST_BITS = 1024  # of an integer: more than any dtype holds


def parse(text: str) -> Program:
    """Read a printed program without running it.

    A text may have 2²⁸ characters and 2¹⁹ words, 64 brackets in each other, 1,024 operators between
    two of them or two commas, integers of 1,024 bits, and types of 4,096 characters. Raises
    `ParseError` with line and column for a text that has more, or that is no program in any other
    way, and nothing else.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n", 64)
    number = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[number].strip() != f"# {VERSION}":
        shown = lines[number] if len(lines[number]) <= 60 else f"{lines[number][:57]}..."
        problem = f"the first line is {shown!r}, expected '# {VERSION}'"
        raise ParseError(problem, line=number + 1, column=1)
    check_words(text)
    try:
        return _read_module(ast.parse(text))
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        raise ParseError(error.msg, line=line, column=column) from None
    except (RecursionError, MemoryError):
        raise ParseError("the text is nested too deeply", line=number + 1, column=1) from None


def _read_module(tree: ast.Module) -> Program:
    scope: dict[str, Any] = {}
    program: Program | None = None
    for node in tree.body:
        match node:
            case ast.ImportFrom() if ast.unparse(node) in (IMPORT, _FORMER_IMPORT):
                pass
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="ptir"), attr="dim")) as call,
            ):
                scope[_free(name, node)] = _call(call, scope)
            case ast.FunctionDef() if program is None:
                program = _read_function(node, scope)
            case _:
                raise _unexpected(node)
    if program is None:
        raise ParseError("there is no function in the text", line=1, column=1)
    return program


def _read_function(node: ast.FunctionDef, outer: dict[str, Any]) -> Program:
    recorder = Recorder(_free(node.name, node))
    arguments = node.args.args
    plain = ast.arguments([], arguments, None, [], [], None, [])
    more = node.decorator_list or node.returns or getattr(node, "type_params", None)
    if more or ast.dump(node.args) != ast.dump(plain):
        raise _wrong(node, f"{node.name} has more than arguments with a type")
    scope = dict(outer)
    for argument in arguments:
        type, flags = _read_annotation(argument)
        if any(argument.arg == param.name for param in recorder.params):
            raise _wrong(argument, f"two arguments are called {argument.arg}")
        scope[_free(argument.arg, argument)] = recorder.input(
            type,
            argument.arg,
            role="parameter" if "parameter" in flags else "input",
            donated="donated" in flags,
        )
    results: list[Any] | None = None
    with interpreter(recorder), strictness(True):
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
                raise _wrong(line, "expected a last line that returns values")
    if results is None:
        raise _wrong(node, f"{node.name} returns nothing")
    return recorder.finish(results)


def _are_tensors(results: list[Any]) -> bool:
    return all(isinstance(result, Tensor) for result in results)


def _read_annotation(argument: ast.arg) -> tuple[Type, list[str]]:
    """The type of an argument, and the flags after it (parameter, donated)."""
    match argument.annotation:
        case ast.Constant(value=str(text)) if (
            text.strip() and len(text) <= _MOST_TYPE and _FLAGS.issuperset(text.split()[1:])
        ):
            type, *flags = text.split()
        case _:
            raise _wrong(argument, f"{argument.arg} has no type")
    try:
        return Type.parse(type), flags
    except Exception as error:  # dims can be divided by zero
        raise _wrong(argument, str(error)) from None


def _assign(target: ast.expr, result: Any, scope: dict[str, Any]) -> None:
    match target:
        case ast.Name(id=name):
            scope[_free(name, target)] = result
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
    if len({keyword.arg for keyword in node.keywords}) != len(node.keywords):
        raise _wrong(node, "an attribute is given twice")
    arguments = [_evaluate(a, scope) for a in node.args]
    keywords = {k.arg: _evaluate(k.value, scope) for k in node.keywords if k.arg is not None}
    words = arguments[:1] if function is array else [*arguments, *keywords.values()]
    if any(isinstance(word, str) and len(word) > _MOST_TYPE for word in words):
        raise _unexpected(node)
    try:
        return function(*arguments, **keywords)
    except Exception as error:  # a text can offend a type rule in any way
        raise _wrong(node, str(error)) from None


def _evaluate(node: ast.expr, scope: dict[str, Any]) -> Any:
    """The value of an expression of names, numbers, strings, tuples, lists, dims and calls."""
    match node:
        case ast.Constant(value=value):
            return _bounded(node, value)
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
                return _bounded(node, dim_arithmetic(operator, a, b))
            except (PtirError, ZeroDivisionError):
                raise _unexpected(node) from None
        case _:
            raise _unexpected(node)


def _number(node: ast.expr, scope: dict[str, Any]) -> Any:
    value = _evaluate(node, scope)
    if not isinstance(value, int | float | complex | Dim):
        raise _unexpected(node)
    return value


def _bounded(node: ast.expr, value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise _wrong(node, f"an integer has {value.bit_length()} bits, expected {_MOST_BITS}")
    return value


def _free(name: str, node: ast.stmt | ast.expr | ast.arg) -> str:
    """``name``, if a text may define it."""
    if name in _USED:
        raise _wrong(node, f"the name {name} has another meaning")
    return name


def _unexpected(node: ast.stmt | ast.expr) -> ParseError:
    text = ast.unparse(node)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return _wrong(node, f"{shown!r} does not belong in a program")


def _wrong(node: ast.stmt | ast.expr | ast.arg, problem: str) -> ParseError:
    # Columns count bytes; the line before a node is ASCII.
    return ParseError(problem, line=node.lineno, column=node.col_offset + 1)
