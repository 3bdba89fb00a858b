"""Checks of sizes: where an instruction has no result at some sizes, as a C condition.

A fused loop does not fail at sizes, so a program checks its sizes before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gptrs.backends.c_family.index_text import dim_text
from gptrs.ir.dims import Dim, DimLike, surely_greater
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.reduce import argmax, argmin, reduce_max, reduce_min
from gptrs.ir.ops.shape import slice_, slice_ends
from gptrs.ir.ops.sort import top_k
from gptrs.ir.program import Fails, Instruction, Operation, Program, Value
from gptrs.ir.types import dim_text as shown
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class SizeCheck:
    """A condition on sizes under which there is no result."""

    condition: str
    message: str


Less = Iterator[tuple[DimLike, DimLike]]
"""Pairs of which the first must not be less than the second."""


def _slice(instruction: Instruction) -> Less:
    (x,) = instruction.values()
    attrs = instruction.attrs
    rows = zip(attrs["starts"], attrs["sizes"], attrs["strides"], x.type.shape, strict=True)
    for start, size, stride, extent in rows:
        low, end = slice_ends(start, size, stride)
        yield low, 0
        yield extent, end
        yield size, 0


def _box(instruction: Instruction) -> Less:
    x, *rest = instruction.operands
    assert isinstance(x, Value)
    sizes = instruction.attrs.get("sizes")
    if sizes is None:
        (update, *_) = rest
        assert isinstance(update, Value)
        sizes = update.type.shape
    yield from zip(x.type.shape, sizes, strict=True)


def _extreme(instruction: Instruction) -> Less:
    (x,) = instruction.values()
    attrs = instruction.attrs
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    for axis in axes:
        yield x.type.shape[axis], 1


def _best(instruction: Instruction) -> Less:
    (x,) = instruction.values()
    yield x.type.shape[instruction.attrs["axis"]], instruction.attrs["k"]


_CHECKS: Mapping[Operation, Callable[[Instruction], Less]] = {
    slice_: _slice,
    dynamic_slice: _box,
    dynamic_update_slice: _box,
    reduce_max: _extreme,
    reduce_min: _extreme,
    argmax: _extreme,
    argmin: _extreme,
    top_k: _best,
}


def has_size_check(instruction: Instruction) -> bool:
    """Whether an instruction that may fail at sizes has a check."""
    return instruction.op in _CHECKS


def size_checks(program: Program) -> list[SizeCheck]:
    """The checks of a program, each once."""
    found: dict[str, SizeCheck] = {}
    for instruction in program.body:
        if instruction.fails is Fails.AT_SIZES and has_size_check(instruction):
            for more, less in _CHECKS[instruction.op](instruction):
                if not surely_greater(more + 1, less):
                    condition = f"{dim_text(more)} < {dim_text(less)}"
                    where = "" if instruction.where is None else f"\n  at {instruction.where}"
                    text = f"{instruction.op.name}: {shown(more)} is less than {shown(less)}{where}"
                    found.setdefault(condition, SizeCheck(condition, text))
        for result in instruction.results:
            for extent in result.type.shape:
                if isinstance(extent, Dim) and not surely_greater(extent, -1):
                    condition = f"{dim_text(extent)} < 0"
                    text = f"{instruction.op.name}: the extent {shown(extent)} is negative"
                    found.setdefault(condition, SizeCheck(condition, text))
    return list(found.values())
