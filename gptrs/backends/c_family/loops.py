"""Code generation of fused loops: a region as a kernel of the C family.

A row, the parallel unit, computes its reductions one after the other and then loops over its
elements. Expressions that do not depend on an index inside the row are computed once a row; in a
region without rows, before the loop.

A reduction of floats along its last axis has `LANES` accumulators, of which element r joins number
r mod `LANES`: compilers make vectors of them, and the order depends on nothing but the extents.

On devices whose groups of work items share memory, long rows are a group's: `GROUP` work items
reduce every `GROUP`-th element each, then halves of their results until one is left, and share the
elements of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic
from gptrs.backends.c_family.expressions import ExpressionWriter, Scope
from gptrs.backends.c_family.index_text import split
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.regions import Region
from gptrs.backends.views import Reduce, walk
from gptrs.ir.dims import DimLike, product
from gptrs.ir.types import f32, f64, si32

LANES = 8
GROUP = 256
"""Work items that share a row."""
_LONG_ROW = 256
"""Elements of a reduction from which on a group shares it."""
_MOST = 2**62
_SHARED = frozenset((f32, f64, si32))
"""The accumulators that groups share."""
_MOST_SHARED = 8
"""Reductions of a row, of which each has an array of a group's memory."""
_INDENT = "  "


def region_kernels(region: Region, *, grouped: bool = False) -> tuple[KernelCall, ...]:
    """The kernels of a fused region: for each number of elements of a row there is one. Groups
    share long rows where the device is ``grouped``."""
    alone = _LoopWriter(region).call()
    length = _reduced(region) if grouped else 0
    if isinstance(length, int):
        return (_GroupWriter(region).call(),) if length >= _LONG_ROW else (alone,)
    shared = _GroupWriter(region).call()
    return (
        replace(alone, when=(length, 0, _LONG_ROW - 1)),
        replace(shared, when=(length, _LONG_ROW, _MOST)),
    )


def _reduced(region: Region) -> DimLike:
    """The elements that decide whether a group shares a row: the last axis of a reduction; 0 where
    none can."""
    parts = [part for part in walk(region.expression) if isinstance(part, Reduce)]
    lasts = [part.extents[-1] for part in parts if part.extents]
    if region.is_flat or not 0 < len(parts) <= _MOST_SHARED or len(lasts) < len(parts):
        return 0
    if any(part.accumulator not in _SHARED for part in parts):
        return 0
    known = [extent for extent in lasts if isinstance(extent, int)]
    return max(known) if len(known) == len(lasts) else next(n for n in lasts if n not in known)


class _LoopWriter(ExpressionWriter):
    """Writes the loops of one region."""

    def call(self) -> KernelCall:
        region = self.region
        if region.is_flat:
            inner = Scope(("j",))
            self.store(region, self.builder.write(region.result), inner)
            head, body, index = self.row.lines, inner.lines, "j"
        else:
            head, body, index = [], self._row(), "row"
        work = product(region.inner) if not region.is_flat else 1
        return self.builder.call(
            self.title, index, region.extent, body, region.members, head=head, work=work
        )

    def _row(self) -> list[str]:
        """The lines of one row."""
        region = self.region
        self.builder.uses(region.rows)
        lines, indices = split("row", region.rows, "i")
        self.row.indices = indices
        names = [f"j{axis}" for axis in range(len(region.inner))]
        inner = Scope(tuple(names)) if names else self.row
        self.store(region, self.builder.write(region.result), inner)
        body = self.row.lines
        if names:
            body = [*body, *self._nest(names, region.inner, inner.lines)]
        return [*lines, *body]

    def _nest(self, names: Sequence[str], extents: Sequence[DimLike], body: list[str]) -> list[str]:
        """Loops around lines."""
        for name, extent in zip(reversed(names), reversed(extents), strict=True):
            head = f"for (isize {name} = 0; {name} < {self.builder.dim(extent)}; {name}++) {{"
            body = [head, *(_INDENT + line for line in body), "}"]
        return body

    def _reduce(self, part: Reduce) -> str:
        number = self.fresh("r")
        names = [f"{number}_{axis}" for axis in range(len(part.extents))]
        scope = Scope(tuple(names))
        x = self.emit(part.body, scope)
        if part.body.dtype.compute is not part.accumulator:
            x = scalars.cast(part.body.dtype.compute, part.accumulator, x)
        total = f"{part.op.name}_{number}"
        self.row.lines += self._total(part, names, scope.lines, x, total)
        if part.dtype.compute is part.accumulator:
            return total
        text = scalars.cast(part.accumulator, part.dtype, total)
        return self.name(self.row, part.op.name, text, part.dtype)

    def _total(
        self, part: Reduce, names: list[str], body: list[str], x: str, total: str
    ) -> list[str]:
        """The loops that reduce ``x``, after the lines ``body``, to the variable ``total``."""
        if part.accumulator.is_float and names and self._is_long(part.extents[-1]):
            return self._in_lanes(part, names, body, x, total)
        join = f"{total} = {scalars.joined(part.op, part.accumulator, total, x)};"
        kind = arithmetic(part.accumulator)
        start = f"{kind} {total} = {scalars.start(part.op, part.accumulator)};"
        return [start, *self._nest(names, part.extents, [*body, join])]

    def _is_long(self, extent: DimLike) -> bool:
        return not isinstance(extent, int) or extent > LANES

    def _in_lanes(
        self, part: Reduce, names: list[str], body: list[str], x: str, total: str
    ) -> list[str]:
        """The loops of a reduction with several accumulators."""
        dtype, op = part.accumulator, part.op
        kind, last, extent = arithmetic(dtype), names[-1], self.builder.dim(part.extents[-1])
        lane = f"{total}_lanes[lane]"
        join = f"{lane} = {scalars.joined(op, dtype, lane, x)};"
        step = [
            f"isize {total}_at = 0;",
            f"for (; {total}_at + {LANES} <= {extent}; {total}_at += {LANES}) {{",
            f"  for (int lane = 0; lane < {LANES}; lane++) {{",
            f"    const isize {last} = {total}_at + lane;",
            *(f"    {line}" for line in [*body, join]),
            "  }",
            "}",
            f"for (int lane = 0; {total}_at + lane < {extent}; lane++) {{",
            f"  const isize {last} = {total}_at + lane;",
            *(f"  {line}" for line in [*body, join]),
            "}",
        ]
        halves = LANES // 2
        fold: list[str] = []
        while halves:
            pair = [f"{total}_lanes[{at}]" for at in ("lane", f"lane + {halves}")]
            joined = scalars.joined(op, dtype, *pair)
            fold.append(f"for (int lane = 0; lane < {halves}; lane++) {pair[0]} = {joined};")
            halves //= 2
        return [
            f"{kind} {total}_lanes[{LANES}];",
            f"for (int lane = 0; lane < {LANES}; lane++) {lane} = {scalars.start(op, dtype)};",
            *self._nest(names[:-1], part.extents[:-1], step),
            *fold,
            f"const {kind} {total} = {total}_lanes[0];",
        ]


class _GroupWriter(_LoopWriter):
    """Writes the loops of a region whose rows are a group's each."""

    def __init__(self, region: Region) -> None:
        super().__init__(region)
        self._shared: list[tuple[str, str, int]] = []

    def call(self) -> KernelCall:
        region = self.region
        body = self._row()
        if not region.inner:  # one element
            body[-1] = f"if (lane == 0) {body[-1]}"
        return self.builder.call(
            self.title,
            "row",
            region.extent,
            body,
            region.members,
            work=product(region.inner),
            group=GROUP,
            shared=self._shared,
        )

    def _nest(self, names: Sequence[str], extents: Sequence[DimLike], body: list[str]) -> list[str]:
        """Loops around lines, of the last axis one that work items share."""
        last, extent = names[-1], self.builder.dim(extents[-1])
        head = f"for (isize {last} = lane; {last} < {extent}; {last} += {GROUP}) {{"
        shared = [head, *(_INDENT + line for line in body), "}"]
        return super()._nest(names[:-1], extents[:-1], shared)

    def _total(
        self, part: Reduce, names: list[str], body: list[str], x: str, total: str
    ) -> list[str]:
        dtype, op, own = part.accumulator, part.op, f"{total}_own"
        kind, array = arithmetic(dtype), f"{total}_shared"
        self._shared.append((kind, array, GROUP))
        join = f"{own} = {scalars.joined(op, dtype, own, x)};"
        halves: list[str] = []
        half = GROUP // 2
        while half:
            joined = scalars.joined(op, dtype, f"{array}[lane]", f"{array}[lane + {half}]")
            halves += [f"if (lane < {half}) {array}[lane] = {joined};", "BARRIER();"]
            half //= 2
        return [
            f"{kind} {own} = {scalars.start(op, dtype)};",
            *self._nest(names, part.extents, [*body, join]),
            f"{array}[lane] = {own};",
            "BARRIER();",
            *halves,
            f"const {kind} {total} = {array}[0];",
        ]
