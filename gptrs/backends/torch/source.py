"""The emitted function of a program: Python over torch ops, one line for each instruction.

    def attend(run, x, w):
        N = run.sizes["N"]
        v0 = torch.matmul(x, w)  # f32[?N,4]
        del w
        v1 = torch.softmax(v0, -1)  # f32[?N,4]
        ...
        return (v2,)

Expressions come from `gptrs.backends.torch.op_table`. A region (a branch, the body of a loop) is a
function before it. Values are deleted after their last use, so that their memory is used again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import count
from typing import Any, cast

import numpy as np

from gptrs.backends.base import StepKind, StepReport
from gptrs.backends.torch.carriers import CARRIERS, FP8, is_narrow, is_wider
from gptrs.backends.torch.lifetimes import Lifetimes
from gptrs.backends.torch.op_table import Row, row_of
from gptrs.ir.dims import Dim
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.control import cond, scan, while_loop
from gptrs.ir.ops.literal import constant
from gptrs.ir.printing import all_symbols, free_name
from gptrs.ir.program import Instruction, Operation, Program, Value
from gptrs.ir.types import Array, DType, Type, ui64
from gptrs.lazy_dataclass import dataclass

_HEAD = """import torch
import torch.nn.functional as F

from gptrs.backends.torch import functions as pt
"""
_USED = {"torch", "F", "pt", "run", "float", "complex", "bool"}
_ON_HOST = "on the host by its NumPy meaning; operands and results travel"


@dataclass
class Emitted:
    """The source of a program, and what it names by number."""

    name: str = ""
    """Of the function."""
    functions: list[str] = field(default_factory=list[str])
    host: list[Instruction] = field(default_factory=list[Instruction])
    """Instructions that run by their NumPy meaning."""
    constants: list[Array] = field(default_factory=list[Array])
    steps: list[StepReport] = field(default_factory=list[StepReport])

    @property
    def source(self) -> str:
        """A module."""
        return "\n\n".join([_HEAD, *self.functions])


def emit(program: Program, *, on_cpu: bool) -> Emitted:
    """The source of ``program``; ``on_cpu`` for torch's CPU device."""
    emitted = Emitted()
    symbols = all_symbols(program)
    taken = {*_USED, *symbols}
    emitted.name = free_name(program.name, taken)
    taken.add(emitted.name)
    _Function(program, emitted, taken, symbols, on_cpu).write(emitted.name)
    return emitted


class _Function:
    """Writes the function of a program or region."""

    def __init__(
        self, program: Program, emitted: Emitted, taken: set[str], symbols: set[str], on_cpu: bool
    ) -> None:
        self._program, self._emitted, self._symbols = program, emitted, symbols
        self._taken, self._on_cpu = taken, on_cpu
        self.lifetimes = Lifetimes(program)
        self._names: dict[Value, str] = {}
        values = (f"v{n}" for n in count() if f"v{n}" not in taken)
        for param in program.params:
            name = param.name + "_" * bool(re.fullmatch(r"v\d+", param.name))
            self._names[param] = free_name(name, {*taken, *self._names.values()})
        for instruction in program.body:
            self._names.update((result, next(values)) for result in instruction.results)

    def write(self, name: str) -> None:
        """Append the function, called ``name``, after those of its regions."""
        lines: list[str] = []
        for number, instruction in enumerate(self._program.body):
            lines += self._instruction(instruction)
            if dead := self.lifetimes.dying(number):
                lines.append(f"del {', '.join(self._names[v] for v in dead)}")
        lines.append(f"return {_tuple([self._names[r] for r in self._program.results])}")
        text = "\n".join(lines)
        used = [s for s in sorted(self._symbols) if re.search(rf"\b{s}\b", text)]
        head = [f'{symbol} = run.sizes["{symbol}"]' for symbol in used]
        params = ", ".join(["run", *(self._names[p] for p in self._program.params)])
        body = "\n".join(f"    {line}" for line in [*head, *lines])
        self._emitted.functions.append(f"def {name}({params}):\n{body}")

    def _instruction(self, i: Instruction) -> list[str]:
        op: Operation = i.op
        if op is constant:
            self._emitted.constants.append(i.attrs["value"])
            self._report(i, "call", "constant")
            return [self._assigned(i, f"run.constants[{len(self._emitted.constants) - 1}]")]
        if op.control:
            return self._control(i)
        row = row_of(i)
        if row is None:
            return self._by_host(i)
        function = self._called(row.text)
        is_view = i.op.kind is OpKind.VIEW
        self._report(i, "view" if is_view else "call", i.op.name if is_view else function)
        settles = ["run.settle()"] * (i in self.lifetimes.settles)
        return [*settles, *self._by_row(i, row)]

    def _by_row(self, i: Instruction, row: Row) -> list[str]:
        direct = row.is_direct(i, on_cpu=self._on_cpu)
        computed = row.computed(i, direct=direct)
        text = row.text.format(*self._operands(i, row, direct), **self._attrs(i, row, computed))
        if i in self.lifetimes.in_place:
            text = text.replace("dynamic_update_slice(", "dynamic_update_slice_(")
        if len(i.results) == 1:
            return [self._assigned(i, self._finished(text, computed, i.result.type.dtype, row))]
        lines = [self._assigned(i, text)]
        for result in i.results:
            if not direct and is_narrow(result.type.dtype):
                name = self._names[result]
                lines.append(f"{name} = {_narrowed(name, result.type.dtype)}")
        return lines

    def _finished(self, text: str, computed: DType, result: DType, row: Row) -> str:
        """An expression of dtype ``computed`` as one of ``result``."""
        if is_wider(computed) and not row.moves:
            text = f'pt.wrap({text}, "{computed}")'
        if computed is result:
            return text
        if is_narrow(result) and computed is result.compute:
            return _narrowed(text, result)
        return f'pt.cast({text}, "{computed}", "{result}")'

    def _operands(self, i: Instruction, row: Row, direct: bool) -> list[str]:
        values = [*i.values()]
        number = i.results[0].type.dtype if row.moves or not values else values[-1].type.dtype

        def text(operand: Any, *, is_part: bool = False) -> str:
            if isinstance(operand, Value):
                name, dtype = self._names[operand], operand.type.dtype
                return name if direct or not is_narrow(dtype) else _widened(name, dtype)
            if isinstance(operand, tuple):
                parts = cast("tuple[Any, ...]", operand)
                return _tuple([text(part, is_part=True) for part in parts])
            if is_part:  # a place, and no element
                return _literal(operand)
            return _number(operand, number, encoded=row.moves)

        return [text(operand) for operand in i.operands]

    def _attrs(self, i: Instruction, row: Row, computed: DType) -> dict[str, str]:
        result = i.results[0].type.dtype
        attrs = {name: _literal(value) for name, value in i.attrs.items()}
        if "value" in i.attrs:
            attrs["value"] = _number(i.attrs["value"], result, encoded=True)
        if row.extras is not None:
            attrs |= {name: _literal(value) for name, value in row.extras(i).items()}
        source = next((v.type.dtype for v in i.values()), result)
        return {
            **attrs,
            "out": _torch(result),
            "acc": _torch(computed),
            "source": f'"{source}"',
            "target": f'"{result}"',
            "bits": str(result.bits),
        }

    def _by_host(self, i: Instruction) -> list[str]:
        self._emitted.host.append(i)
        number = len(self._emitted.host) - 1
        self._report(i, "reference", i.op.name, note=_ON_HOST)
        how = "effect" if i.op.kind is OpKind.EFFECT else "host"
        given = ", ".join([str(number), *(self._names[v] for v in i.values())])
        return [self._assigned(i, f"run.{how}({given})", several=True, note=i.op.name)]

    def _control(self, i: Instruction) -> list[str]:
        self._report(i, "control", i.op.name)
        regions = {
            name: self._region(value, name)
            for name, value in i.attrs.items()
            if isinstance(value, Program)
        }
        given = [self._tuple_of(o) for o in i.operands]
        if i.op is cond:
            pred, operands = given
            call = ", ".join(["run", *([f"*{operands}"] if operands != "()" else [])])
            text = f"({regions['then']} if bool({pred}) else {regions['otherwise']})({call})"
        elif i.op is while_loop:
            names = f"{regions['condition']}, {regions['body']}"
            text = f"pt.while_loop(run, {names}, {', '.join(given)})"
        else:
            assert i.op is scan
            outputs = i.results[len(cast("tuple[Any, ...]", i.operands[0])) :]
            shapes = [f"({_torch(r.type.dtype)}, {_shape(r.type)})" for r in outputs]
            rest = [_literal(i.attrs["length"]), str(i.attrs["reverse"]), _tuple(shapes)]
            text = f"pt.scan(run, {', '.join([regions['body'], *given, *rest])})"
        return [self._assigned(i, text, several=True)]

    def _region(self, program: Program, role: str) -> str:
        name = next(n for n in (f"{role}{k}" for k in count()) if n not in self._taken)
        self._taken.add(name)
        _Function(program, self._emitted, self._taken, self._symbols, self._on_cpu).write(name)
        return name

    def _tuple_of(self, operand: Any) -> str:
        if isinstance(operand, Value):
            return self._names[operand]
        return _tuple([self._names[value] for value in operand])

    def _assigned(self, i: Instruction, text: str, *, several: bool = False, note: str = "") -> str:
        names = [self._names[r] for r in i.results]
        target = f"({names[0]},)" if several and len(names) == 1 else ", ".join(names)
        types = ", ".join(str(r.type) for r in i.results)
        return f"{target} = {text}  # {note}{': ' * bool(note)}{types}"

    def _report(self, i: Instruction, kind: StepKind, name: str, note: str = "") -> None:
        types = ", ".join(str(r.type) for r in i.results)
        kernels = (name,) if kind == "call" else ()
        step = StepReport(kind, name, 1, types, kernels, note, members=(i,))
        self._emitted.steps.append(step)

    @staticmethod
    def _called(text: str) -> str:
        """The function of torch that an expression calls, or the expression where it is an
        operator."""
        found = re.match(r"(?:\{0\}\.)?([\w.]+)\(", text)
        return found[1] if found else re.sub(r"[{}]", "", text).replace("0", "x").replace("1", "y")


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _torch(dtype: DType) -> str:
    return f"torch.{CARRIERS[dtype]}"


def _shape(type: Type) -> str:
    """The shape of a step's output of `scan`, without the axis of the steps."""
    return _tuple([str(n) for n in type.shape[1:]])


def _widened(name: str, dtype: DType) -> str:
    return f'pt.widen({name}, "{dtype}")' if dtype in FP8 else f"{name}.float()"


def _narrowed(text: str, dtype: DType) -> str:
    if dtype in FP8:
        return f'pt.narrow({text}, "{dtype}")'
    return f"({text}).to({_torch(dtype)})"


def _literal(value: object) -> str:
    """An attribute as Python."""
    if isinstance(value, DType):
        return f'"{value}"'
    if isinstance(value, tuple):
        return _tuple([_literal(part) for part in cast("tuple[object, ...]", value)])
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return str(value) if isinstance(value, Dim) else repr(value)


def _number(value: Any, dtype: DType, *, encoded: bool) -> str:
    """A number beside elements of ``dtype``, or, ``encoded``, as their carrier has it."""
    if value is None or isinstance(value, Dim):
        return f"({value})" if isinstance(value, Dim) else "None"
    if encoded and (dtype in FP8 or is_narrow(dtype)):
        with np.errstate(all="ignore"):
            array = np.asarray(value, np.float32).astype(dtype.numpy)
        value = int(array.view(np.uint8)) if dtype in FP8 else float(array)
    elif dtype is ui64 and isinstance(value, int) and value >= 2**63:
        value -= 2**64
    elif encoded and dtype.is_integer:
        value = int(value)
    if isinstance(value, complex):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    text = _literal(value)
    return f"({text})" if text.startswith("-") else text
