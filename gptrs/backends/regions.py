"""A region: one fused loop nest that computes one stored value, or a few in the same loops.

The loops run over rows, which are independent of each other (the parallel axis), and inside a row
over ``inner`` axes and over the axes of each reduction. Views have one stride for each row axis,
then one for each axis of the loop that they are in. Adjacent axes that are evenly spaced in all
views are merged. Extents and strides may be symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gptrs.backends.views import (
    Apply,
    Expression,
    Iota,
    Literal,
    Load,
    Reduce,
    View,
    dependence,
    evenly_spaced,
    is_copy,
    walk,
)
from gptrs.ir.dims import DimLike, Shape, product, same
from gptrs.ir.program import Instruction, Value
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import cached_property


@dataclass(frozen=True, eq=False)
class Region:
    """The loop nest ``result[rows, inner] = expression``.

    No expression in the bodies of reductions depends on an inner index, so that a reduction is
    computed once a row.
    """

    result: Value
    expression: Expression
    output: View
    rows: Shape
    inner: Shape
    members: frozenset[Instruction]
    """The instructions that it computes; other regions may compute some of them too."""
    copies: Value | None = None
    """The value that the result is a copy of (same elements, same order), if there is one."""
    others: tuple[Region, ...] = ()
    """Regions over the same rows, computed in these loops too: with the same inner axes, or none
    (`gptrs.backends.faer.joint_regions`)."""

    @property
    def results(self) -> tuple[Value, ...]:
        return self.result, *(other.result for other in self.others)

    @property
    def parts(self) -> Iterator[Expression]:
        """All subexpressions of what the loops compute."""
        for one in (self, *self.others):
            yield from walk(one.expression)

    @cached_property
    def is_flat(self) -> bool:
        """Whether there is a single loop: its elements are then the parallel extent."""
        one_loop = not self.rows and len(self.inner) == 1
        return one_loop and not any(isinstance(part, Reduce) for part in self.parts)

    @property
    def extent(self) -> DimLike:
        """The parallel extent: rows, or elements of a flat region."""
        return self.inner[0] if self.is_flat else product(self.rows)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that the loops read, in the order of their first use."""
        loads = (part for part in self.parts if isinstance(part, Load))
        return tuple(dict.fromkeys(load.value for load in loads))


def region_of(
    result: Value,
    expression: Expression,
    members: frozenset[Instruction],
    into: View | None = None,
) -> Region:
    """The loops for an expression over the axes of ``result``, or of a part of it: ``into``."""
    whole = View.contiguous(result.type.shape) if into is None else into
    shape = whole.shape
    axes = [a for a, n in enumerate(shape) if not same(n, 1)]
    reductions = [part for part in walk(expression) if isinstance(part, Reduce)]
    depends = frozenset[int]().union(*(dependence(r, len(shape)) for r in reductions))
    rows = [a for a in axes if a in depends]
    inner = [a for a in axes if a not in depends]
    output = _select(whole, rows + inner)
    arranged = _arrange(expression, len(shape), rows, inner)
    views = [p.view for p in walk(arranged) if isinstance(p, Load | Iota)]
    row_groups = _groups([output, *views], 0, len(rows))
    inner_groups = _groups([output, *_views_here(arranged)], len(rows), len(axes))
    if not reductions:
        row_groups, inner_groups = inner_groups[:-1], inner_groups[-1:]
    output = _merge(output, row_groups + inner_groups)
    count = len(row_groups)
    return Region(
        result,
        _merge_loops(arranged, row_groups, inner_groups, len(rows)),
        output,
        output.shape[:count],
        output.shape[count:],
        members,
        expression.value
        if into is None and isinstance(expression, Load) and is_copy(expression)
        else None,
    )


Groups = list[list[int]]
"""Groups of axes traversed as one, each from the outermost to the innermost."""


def _select(view: View, axes: Sequence[int]) -> View:
    shape = tuple(view.shape[a] for a in axes)
    return View(shape, tuple(view.strides[a] for a in axes), view.offset)


def _merge(view: View, groups: Groups) -> View:
    shape = tuple(product(tuple(view.shape[a] for a in group)) for group in groups)
    return View(shape, tuple(view.strides[group[-1]] for group in groups), view.offset)


def _groups(views: Sequence[View], first: int, last: int) -> Groups:
    """The axes from ``first`` to ``last`` in groups that are evenly spaced in every view."""
    groups: Groups = [[first]] if first < last else []
    for outer, inner in pairwise(range(first, last)):
        pairs = ([(v.shape[a], v.strides[a]) for a in (outer, inner)] for v in views)
        if all(map(evenly_spaced, pairs)):
            groups[-1].append(inner)
        else:
            groups.append([inner])
    return groups


def _views_here(expression: Expression) -> list[View]:
    """The views in an expression that are not inside of a reduction."""
    parts = walk(expression, into=False)
    return [part.view for part in parts if isinstance(part, Load | Iota)]


def _arrange(
    expression: Expression, rank: int, rows: Sequence[int], tail: Sequence[int]
) -> Expression:
    """The expression with views over rows, then the axes of the loop they are in, without axes of
    extent 1."""

    def reduction(part: Reduce) -> Reduce:
        axes = [a for a, n in enumerate(part.extents, rank) if not same(n, 1)]
        body = _arrange(part.body, rank + len(part.extents), rows, axes)
        return replace(part, body=body, extents=tuple(part.extents[a - rank] for a in axes))

    return _rebuild(expression, lambda view: _select(view, [*rows, *tail]), reduction)


def _merge_loops(
    expression: Expression, row_groups: Groups, tail: Groups, row_count: int
) -> Expression:
    def reduction(part: Reduce) -> Reduce:
        end = row_count + len(part.extents)
        groups = _groups(_views_here(part.body), row_count, end)
        body = _merge_loops(part.body, row_groups, groups, row_count)
        merged = ([part.extents[a - row_count] for a in group] for group in groups)
        return replace(part, body=body, extents=tuple(product(tuple(g)) for g in merged))

    return _rebuild(expression, lambda view: _merge(view, row_groups + tail), reduction)


def _rebuild(
    expression: Expression, change: Callable[[View], View], reduction: Callable[[Reduce], Reduce]
) -> Expression:
    """The expression with the views of this loop changed, and its reductions."""
    made: dict[Expression, Expression] = {}
    for part in walk(expression, into=False):
        match part:
            case Literal():
                made[part] = part
            case Apply():
                made[part] = replace(part, operands=tuple(made[o] for o in part.operands))
            case Reduce():
                made[part] = reduction(part)
            case Load() | Iota():
                made[part] = replace(part, view=change(part.view))
    return made[expression]
