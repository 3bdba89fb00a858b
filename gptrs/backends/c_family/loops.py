"""Code generation of fused loops: a region as a kernel of the C family.

A row, the parallel unit, computes its reductions one after the other and then loops over its
elements. Expressions that do not depend on an index inside the row are computed once a row; in a
region without rows, before the loop.

A reduction of floats along its last axis has `LANES` accumulators, of which element r joins number
r mod `LANES`: compilers make vectors of them, and the order depends on nothing but the extents.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.c_family import scalars
from gptrs.backends.c_family.element_types import arithmetic
from gptrs.backends.c_family.expressions import ExpressionWriter, Scope
from gptrs.backends.c_family.index_text import split
from gptrs.backends.c_family.kernel import KernelCall
from gptrs.backends.regions import Region
from gptrs.backends.views import Reduce
from gptrs.ir.dims import DimLike, product

LANES = 8
_INDENT = "  "


def region_kernel(region: Region) -> KernelCall:
    """The kernel of a fused region."""
    return _LoopWriter(region).call()


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
        if part.accumulator.is_float and names and self._is_long(part.extents[-1]):
            lines = self._in_lanes(part, names, scope.lines, x, total)
        else:
            join = f"{total} = {scalars.joined(part.op, part.accumulator, total, x)};"
            kind = arithmetic(part.accumulator)
            lines = [f"{kind} {total} = {scalars.start(part.op, part.accumulator)};"]
            lines += self._nest(names, part.extents, [*scope.lines, join])
        self.row.lines += lines
        if part.dtype.compute is part.accumulator:
            return total
        text = scalars.cast(part.accumulator, part.dtype, total)
        return self.name(self.row, part.op.name, text, part.dtype)

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
