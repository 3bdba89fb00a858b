"""Arithmetic and memory traffic of single instructions: FLOPs, bytes read, bytes written.

The figures are of the instruction as the program has it, before fusion and without the blocking of
kernels: the counts by which profilers and papers compare programs. Composites, custom calls and
control flow cost what their definitions and regions do; `gptrs.backends.operation_counts` counts
the scalar operations of fused regions instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log2, prod

from gptrs.ir.dims import DimLike, size_at
from gptrs.ir.kinds import OpKind
from gptrs.ir.ops.control import cond, scan
from gptrs.ir.ops.dynamic import dynamic_update_slice
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.ops.fft import fft_c2c, fft_c2r, fft_r2c
from gptrs.ir.ops.index import scatter_add, scatter_reduce
from gptrs.ir.program import Instruction, Program, Value
from gptrs.passes.legalize import definition_of

_ELEMENT_BY_ELEMENT = (OpKind.ELEMENTWISE, OpKind.ACTIVATION, OpKind.ROWWISE, OpKind.NORM)
_UPDATES = (dynamic_update_slice, scatter_add, scatter_reduce)
_MOVING = (OpKind.VIEW, OpKind.MOVEMENT)
_PICKING = (OpKind.MOVEMENT, OpKind.INDEX)  # they read the elements that they return


def flops(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """Floating-point operations: one an element and elementwise op, 2·m·n·k for a product, eight
    times as many in complex numbers.

    Not counted are integers, comparisons, sorts, random numbers and matrix decompositions. A loop
    without a known count is counted once, of a branch the longer side.
    """
    definition = definition_of(instruction)
    if definition is not None:
        return _total(definition, sizes)
    regions = [_total(region, sizes) for region in instruction.regions()]
    if regions:
        if instruction.op is cond:
            return max(regions)
        turns = size_at(instruction.attrs["length"], sizes) if instruction.op is scan else 1
        return turns * sum(regions)
    dtype = instruction.results[0].type.dtype if instruction.results else None
    if dtype is None or not (dtype.is_float or dtype.is_complex):
        return 0
    return _primitive(instruction, sizes) * (4 if dtype.is_complex else 1)


def _primitive(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    op, operands = instruction.op, list(instruction.values())
    size = elements(instruction.results[0], sizes)
    if op.kind is OpKind.CONTRACTION:
        lhs = operands[0].type.shape
        axes: tuple[int, ...] = instruction.attrs["contract_lhs"]
        return 2 * size * _extent([lhs[axis] for axis in axes], sizes)
    if op.kind is OpKind.REDUCTION:
        return elements(operands[0], sizes)
    if op.kind is OpKind.WINDOW:  # patches are moved, windows are reduced
        return size * prod(instruction.attrs["window"]) if "reduce" in instruction.attrs else 0
    if op is fft_c2c or op is fft_r2c or op is fft_c2r:
        extent = max(2, size_at(instruction.attrs["n"], sizes))
        return round((5 if op is fft_c2c else 2.5) * size * log2(extent) / 4)
    if op is scatter_add or op is scatter_reduce:
        return elements(operands[-1], sizes)
    return size if op.kind in _ELEMENT_BY_ELEMENT else 0


def _total(program: Program, sizes: Mapping[str, int]) -> int:
    return sum(flops(instruction, sizes) for instruction in program.body)


def traffic(
    instruction: Instruction, sizes: Mapping[str, int], *, in_place: bool = False
) -> tuple[int, int]:
    """Bytes that it reads and writes, each array once; none for views. An update ``in_place``
    moves the new elements alone."""
    definition = definition_of(instruction)
    if definition is not None and definition.body:
        return _traffic_of(definition, sizes, in_place=in_place)
    if instruction.op.kind is OpKind.VIEW:
        return 0, 0
    values = list(dict.fromkeys(instruction.values()))
    written = sum(value_bytes(result, sizes) for result in instruction.results)
    if instruction.op in _UPDATES and in_place:
        updates = [value_bytes(value, sizes) for value in values[1:]]
        return sum(updates), max(updates, default=0)
    return sum(_read(instruction, value, sizes) for value in values), written


def _read(instruction: Instruction, value: Value, sizes: Mapping[str, int]) -> int:
    """What an instruction reads of an operand."""
    size = value_bytes(value, sizes)
    definition = definition_of(instruction)
    if definition is not None and definition.body:
        own = zip(instruction.values(), definition.params, strict=True)
        readers = _readers(definition)
        return min(size, sum(_read_inside(p, readers, sizes) for v, p in own if v is value))
    if instruction.op.kind in _PICKING:
        return min(size, sum(value_bytes(result, sizes) for result in instruction.results))
    return size


def _traffic_of(
    definition: Program, sizes: Mapping[str, int], *, in_place: bool
) -> tuple[int, int]:
    """The traffic of a kernel that computes ``definition``: what is picked from an operand is read
    alone, and what is between its instructions is in registers or caches."""
    last = definition.body[-1]
    if last.op in _UPDATES and in_place:
        return traffic(last, sizes, in_place=True)
    readers = _readers(definition)
    read = sum(_read_inside(param, readers, sizes) for param in definition.params)
    return read, sum(value_bytes(result, sizes) for result in definition.results)


def _readers(program: Program) -> dict[Value, list[Instruction]]:
    readers: dict[Value, list[Instruction]] = {}
    for instruction in program.body:
        for value in instruction.values():
            readers.setdefault(value, []).append(instruction)
    return readers


def _read_inside(
    value: Value, readers: Mapping[Value, list[Instruction]], sizes: Mapping[str, int]
) -> int:
    """What a program reads of its parameter ``value``; kernels widen what they read of it."""
    item, count = value.type.dtype.numpy.itemsize, elements(value, sizes)
    while len(found := readers.get(value, ())) == 1 and (
        found[0].op.kind in _MOVING or found[0].op is cast
    ):
        value = found[0].results[0]
        count = min(count, elements(value, sizes))
    if len(found) == 1:
        count = min(count, _read(found[0], value, sizes) // value.type.dtype.numpy.itemsize)
    return count * item


def elements(value: Value, sizes: Mapping[str, int]) -> int:
    """The number of elements of a value."""
    return _extent(value.type.shape, sizes)


def value_bytes(value: Value, sizes: Mapping[str, int]) -> int:
    """The size of a value in memory."""
    return elements(value, sizes) * value.type.dtype.numpy.itemsize


def _extent(shape: Iterable[DimLike], sizes: Mapping[str, int]) -> int:
    return prod(size_at(extent, sizes) for extent in shape)
