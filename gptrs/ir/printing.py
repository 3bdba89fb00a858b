"""Printer of programs: Python source that runs, one instruction a line, over ``gptrs.ptir``.

The text re-traces to the same program. It is the format of dumps and of golden tests.
`gptrs.ir.parsing` reads it back.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from itertools import count
from keyword import iskeyword
from typing import cast

import numpy as np

from gptrs.errors import ParseError, PtirError
from gptrs.ir.program import (
    VERSION,
    Instruction,
    Operand,
    Param,
    Program,
    Value,
    float_text,
    key_of,
    printer,
)
from gptrs.ir.types import Array, DType, Type

_INLINE_ELEMENTS = 64  # arrays up to this size are printed as numbers, larger ones as base64
_LINE = 100  # a longer signature has a line for each parameter
IMPORT = "from gptrs.ptir import ops as ptir"
_USED = {"ptir", "float", "complex"}  # names that the text itself uses


@printer
def to_text(program: Program) -> str:
    """The program as Python source."""
    lines = [f"# {VERSION}", IMPORT, ""]
    symbols = sorted(all_symbols(program))
    lines += [f'{name} = ptir.dim("{name}")' for name in symbols] + [""] * bool(symbols)
    taken = {*symbols, *_USED}
    return "\n".join([*lines, *_function(program, free_name(program.name, taken), taken)])


def free_name(name: str, taken: set[str]) -> str:
    """``name`` made an identifier that is not taken."""
    free = _ascii(name) or "_"
    free = f"_{free}" if free[0].isdigit() else free
    while free in taken or iskeyword(free):
        free += "_"
    return free


def all_symbols(program: Program) -> set[str]:
    """Every symbol that occurs in the text."""
    found = program.symbols()
    for instruction in program.body:
        for region in instruction.regions():
            found |= all_symbols(region)
    return found


def _ascii(name: str) -> str:
    """``name`` in characters that Python's identifier normalisation keeps."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII)


def _function(program: Program, name: str, taken: set[str]) -> list[str]:
    names: dict[Value, str] = {}
    values = (f"v{n}" for n in count() if f"v{n}" not in taken)
    regions = (f"region{n}" for n in count() if f"region{n}" not in taken)
    for param in program.params:
        made = _ascii(param.name).strip("_") or "x"  # as `Recorder.input` will make it again
        made += "_" * bool(re.fullmatch(r"v\d+|region\d+", made))
        names[param] = free_name(made, {*taken, *names.values()})
    for instruction in program.body:
        names.update((result, next(values)) for result in instruction.results)
    params = [f'{names[p]}: "{_annotation(p)}"' for p in program.params]
    lines = [f"def {name}({', '.join(params)}):"]
    if len(lines[0]) > _LINE:
        lines = [f"def {name}(", *(f"    {param}," for param in params), "):"]
    for instruction in program.body:
        attrs: dict[str, str] = {}
        for key, value in instruction.attrs.items():
            if isinstance(value, Program):
                attrs[key] = next(regions)
                lines += [f"    {line}".rstrip() for line in _function(value, attrs[key], taken)]
            elif key_of(value) != key_of(_default(instruction, key)):
                attrs[key] = _literal(value)
        lines.append(f"    {_instruction(instruction, names, attrs)}")
    returned = ", ".join(names[r] for r in program.results)
    return [*lines, f"    return {returned or '()'}", ""]


def _instruction(
    instruction: Instruction, names: Mapping[Value, str], attrs: Mapping[str, str]
) -> str:
    operands = [_operand(o, names) for o in _without_absent_tail(instruction.operands)]
    arguments = ", ".join([*operands, *(f"{k}={v}" for k, v in attrs.items())])
    results = ", ".join(names[r] for r in instruction.results)
    types = ", ".join(str(r.type) for r in instruction.results)
    return f"{results} = ptir.{instruction.op.name}({arguments})  # {types}"


def instruction_text(instruction: Instruction, names: Mapping[Value, str]) -> str:
    """The line of an instruction in a program's text, with these names of values; a region has the
    name of its attribute."""
    attrs = {
        key: key if isinstance(value, Program) else _literal(value)
        for key, value in instruction.attrs.items()
        if isinstance(value, Program) or key_of(value) != key_of(_default(instruction, key))
    }
    return _instruction(instruction, names, attrs)


def _annotation(param: Param) -> str:
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


def _operand(operand: Operand, names: Mapping[Value, str]) -> str:
    if isinstance(operand, Value):
        return names[operand]
    if isinstance(operand, tuple):
        inner = ", ".join(_operand(o, names) for o in operand)
        return f"({inner},)" if len(operand) == 1 else f"({inner})"
    return _literal(operand)


def _literal(value: object) -> str:
    if isinstance(value, Type):
        return repr(str(value))
    if isinstance(value, DType):
        return repr(value.name)
    if isinstance(value, np.ndarray):
        return _array_text(cast("Array", value))
    if isinstance(value, tuple):
        parts = [*map(_literal, cast("tuple[object, ...]", value))]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{float_text(value)}")'
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
    """Numbers in ``dtype``. Raises `ValueError` for numbers that the dtype does not have."""
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
