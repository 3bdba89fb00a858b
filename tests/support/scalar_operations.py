"""The scalar operations of plans, read from the source of their kernels, beside op by op.

Fusion may compute a value in several loops. However large the arrays are, a plan takes at most
`MOST` times the scalar operations of its instructions when each runs alone: `checked_plans` holds
every plan that is bound to that. What is counted are the lines of the kernels' loops, not what
fusion believes of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

import pytest

from gptrs.backends.faer.blocked_writer import ELEMENTS
from gptrs.backends.faer.bound import Bound
from gptrs.backends.faer.plan import FaerPlan
from gptrs.backends.faer.reduction_writer import GROUP
from gptrs.backends.faer.render import writer_of
from gptrs.backends.faer.short_sum_writer import ShortSumWriter
from gptrs.backends.faer.steps import RegionStep
from gptrs.backends.views import Reduce, walk
from gptrs.ir.dims import size_at
from gptrs.ir.dispatch import OPS
from gptrs.ir.program import Instruction

MOST = 1.5
_REDUCTIONS = frozenset(name.removeprefix("reduce_") for name in OPS if name.startswith("reduce_"))


@dataclass(frozen=True)
class Line:
    """A line of a kernel that does a scalar operation, and the extents of the loops around it."""

    extents: tuple[str, ...]
    share: Fraction = Fraction(1)
    """Of the elements, where a loop has a line for each element of a group."""


@cache
def lines_of(source: str) -> tuple[Line, ...]:
    """The scalar operations in the source of a region's kernel."""
    *_, function = ast.parse(source).body  # after the scalar rules that it calls
    assert isinstance(function, ast.FunctionDef)
    return tuple(_lines(function.body, ()))


def _lines(
    body: list[ast.stmt], extents: tuple[str, ...], share: Fraction = Fraction(1)
) -> Generator[Line]:
    for line in body:
        if isinstance(line, ast.While):  # over tiles
            yield from _lines(line.body, (*extents, "extent"))
        elif isinstance(line, ast.For):
            assert isinstance(line.iter, ast.Call)
            if _in_blocks(line.iter):
                *_, block = line.body
                assert isinstance(block, ast.For)
                yield from _lines(block.body, (*extents, *_extent(line.iter)), share)
                continue
            inside = share * _share(line.iter)
            yield from _lines(line.body, (*extents, *_extent(line.iter)), inside)
        elif isinstance(line, ast.Assign) and _counts(line):
            yield Line(extents, share)


def _in_blocks(loop: ast.Call) -> bool:
    """Whether a loop is over blocks of a row, of which each is a loop."""
    return len(loop.args) == 3 and ast.unparse(loop.args[1]).endswith(" else 0")


def _share(loop: ast.Call) -> Fraction:
    """One over the elements of a group in a loop over groups, none for what is left of these, and
    none for rows shorter than a block, as the loop over blocks counts all of a row."""
    text = ast.unparse(loop)
    if f" % {GROUP}, " in text or text.endswith(" else 0)"):
        return Fraction(0)
    return Fraction(1, GROUP if text.endswith(f" - {GROUP - 1}, {GROUP})") else 1)


def _extent(loop: ast.Call) -> tuple[str, ...]:
    """What a loop multiplies by: the parts of a row together are the row."""
    bounds = [ast.unparse(argument) for argument in loop.args]
    match bounds:
        case ["first", "last"]:
            return ("extent",)
        case ["0", _, blocks] if blocks == str(ELEMENTS):  # what does not depend on j is small
            return ()
        case ["begin", end] if end.startswith("min("):
            return (end.rpartition(" ")[2].removesuffix(")"),)
        case [_, "end_row"]:
            return ()
        case ["begin", "end"] | ["live"]:  # the rows of all tiles are those of the extent
            return ()
        case ["begin", end, _] if end.startswith("end - "):
            return ()
        case [_] | [_, _] if _share(loop) == 0:
            return ()
        case ["0", extent, _] if _in_blocks(loop):
            return (extent.partition(" ")[0],)
        case ["0", extent, _] if _share(loop) != 1:
            return (extent.partition(" ")[0],)
        case ["0", extent, _]:
            return (extent,)
        case [extent]:
            return () if extent.startswith("used") else (extent,)
        case _:
            raise AssertionError(f"a loop over {bounds}")


def _counts(line: ast.Assign) -> bool:
    """Whether a line does an op on elements, or takes one into a reduction."""
    target = ast.unparse(line.targets[0])
    if target.startswith("scratch"):
        return "[" in target
    if target.startswith("lanes"):
        return target in ast.unparse(line.value)
    target = target.removesuffix("[t]")
    name = re.sub(r"\d+$", "", target)
    if name == "joined" or (name == "part" and target in ast.unparse(line.value)):
        return True
    if name in _REDUCTIONS:
        return re.search(rf"\b{target}\b", ast.unparse(line.value)) is not None and not re.search(
            r"\bpart\d+\b|\blanes\d+\[", ast.unparse(line.value)
        )
    return name in OPS and OPS[name].elementwise


def operations_of(step: RegionStep, sizes: Mapping[str, int]) -> int:
    """The scalar operations of a region's kernel."""
    rendered = step.rendered
    words: dict[str, Any] = dict(zip(rendered.word_names, rendered.words, strict=True))
    words["extent"] = step.region.extent
    sized = {name: word for name, word in words.items() if not isinstance(word, float)}
    counts = {name: Fraction(size_at(word, sizes)) for name, word in sized.items()}
    lines = lines_of(rendered.canonical)
    parts = [part for part in walk(step.region.expression) if isinstance(part, Reduce)]
    for part in parts:
        if part.chunks is not None:  # the last one may be shorter; each has a name for its length
            whole, chunks = part.chunks.extent, step.region.rows[0]
            length = Fraction(size_at(whole, sizes), max(size_at(chunks, sizes), 1))
            extents = (extent for line in lines for extent in line.extents)
            counts |= {name: length for name in extents if name.startswith("length")}
    known = {e for line in lines for e in line.extents if e.isdigit()}
    if known:
        # Rows beside each other, which the extent counts, and those that fill up a vector.
        beside = writer_of(step.region) is ShortSumWriter
        rows = size_at(step.region.rows[-1], sizes) if beside else 1
        counts |= {e: Fraction(int(e), rows) for e in known}
    return int(sum(line.share * prod(counts[e] for e in line.extents) for line in lines))


def operations_alone(instruction: Instruction, sizes: Mapping[str, int]) -> int:
    """The scalar operations of an instruction run by itself."""
    if instruction.op.name.startswith("reduce_"):
        (x,) = instruction.values()
        return size_at(x.type.size, sizes)
    return size_at(instruction.result.type.size, sizes) if instruction.op.elementwise else 0


def has_elements(step: RegionStep, sizes: Mapping[str, int]) -> bool:
    """Whether the results of a region have elements, and none is a reduction of nothing; the outer
    loops of others may still run."""
    reduced = [m for m in step.region.members if m.op.name.startswith("reduce_")]
    some = all(size_at(result.type.size, sizes) for result in step.region.results)
    return some and all(size_at(x.type.size, sizes) for m in reduced for x in m.values())


def check_plan(bound: Bound, sizes: Mapping[str, int]) -> None:
    """Fail if the regions of a plan take too many scalar operations at ``sizes``."""
    regions = [assigned.step for assigned in bound.assignment.steps if not assigned.view]
    steps = [work for work in regions if isinstance(work, RegionStep) and has_elements(work, sizes)]
    members = {member for step in steps for member in step.region.members}
    taken = sum(operations_of(step, sizes) for step in steps)
    alone = sum(operations_alone(member, sizes) for member in members)
    assert taken <= MOST * alone, (
        f"{taken} scalar operations, {alone} op by op, in\n{bound.assignment.program}"
    )


@contextmanager
def checked_plans() -> Generator[None]:
    """Inside the block every plan is checked at all sizes that it is bound to."""
    bind: Any = FaerPlan.bind

    def checked(plan: FaerPlan, sizes: Mapping[str, int], key: tuple[int, ...]) -> Bound:
        bound = bind(plan, sizes, key)
        check_plan(bound, sizes)
        return bound

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FaerPlan, "bind", checked)
        yield
