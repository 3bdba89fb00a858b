"""Code generation of fused loops: a region as Python source for Numba.

Input: a region; output: the lines before, at and inside of its outermost loop, and the words that
they use. `gptrs.backends.faer.render` makes a function of them.

A row, the parallel unit, computes its reductions one after the other and then loops over its
elements. Expressions that do not depend on an index inside the row are computed once a row; in a
region without rows, before the loop.

Reductions are written by `gptrs.backends.faer.reduction_writer`.
"""

from __future__ import annotations

from gptrs.backends.faer import scalars
from gptrs.backends.faer.bit_rules import bits_of, in_memory
from gptrs.backends.faer.expression_writer import Scope
from gptrs.backends.faer.reduction_writer import ReductionWriter
from gptrs.backends.regions import Region
from gptrs.backends.views import Apply, Expression, Reduce
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.bitcast import bitcast, bits_dtype
from gptrs.ir.ops.elementwise import cast
from gptrs.ir.types import DType


class LoopWriter(ReductionWriter):
    """Writes the loops of one region, row by row."""

    def __init__(self, region: Region, *, precise: bool = False, shared: bool = False) -> None:
        super().__init__(region, precise=precise, shared=shared)
        self.lines: list[str] = []
        self.grain = 1
        """The items of the parallel extent that are computed together."""
        self._next_row: list[str] = []  # the steps to the indices of the next row

    def write(self) -> None:
        region, row = self.region, self._row
        if region.is_flat:
            inner = Scope(("j",), 2)
            for name, one in zip(self.out_names, self.outputs, strict=True):
                self._store(one, name, inner)
            self.head += row.lines
            self.lines = inner.lines
        else:
            self._split_rows()
            outputs = list(zip(self.out_names, self.outputs, strict=True))
            for name, one in outputs:
                if not one.inner:
                    self._store(one, name, row)
            with self._loop(self._words_of(region.inner), "j") as inner:
                if self._kept is not None:
                    self._read_kept(self._kept, inner)
                for name, one in outputs:
                    if one.inner:
                        self._store(one, name, inner)
            self.lines = [*self._row_lines(), *self._next_row]

    @property
    def loop(self) -> str:
        """The head of the outermost loop, over the parallel extent."""
        return f"for {'j' if self.region.is_flat else 'row'} in range(first, last):"

    @property
    def extent(self) -> DimLike:
        """The parallel extent."""
        return self.region.extent

    def _split_rows(self) -> None:
        """The indices of a row along the axes of rows."""
        if self._row_count == 1:
            self._row.indices = ("row",)
        else:
            self._count(self._row_count - 1)

    def _count(self, last: int) -> None:
        """The indices along the axes of rows up to ``last``, counted from those of the first row: a
        division takes as long as a short row."""
        self.head += [f"    {line}" for line in self._split("first", last)]
        for depth, axis in enumerate(range(last, -1, -1), 2):
            indent = "    " * depth
            self._next_row.append(f"{indent}i{axis} += 1")
            if axis:
                extent = self.words.size(self.region.rows[axis], "n")
                self._next_row += [f"{indent}if i{axis} == {extent}:", f"{indent}    i{axis} = 0"]

    def _split(self, rest: str, last: int) -> list[str]:
        """The indices along the axes of rows up to ``last``, from one that counts them all."""
        lines: list[str] = []
        for axis in range(last, 0, -1):
            extent = self.words.size(self.region.rows[axis], "n")
            lines.append(f"i{axis} = {rest} % {extent}")
            lines.append(f"{'i0' if axis == 1 else 'rest'} = {rest} // {extent}")
            rest = "rest"
        return lines

    def _row_lines(self) -> list[str]:
        return self._row.lines

    def _store(self, region: Region, name: str, scope: Scope) -> None:
        """Store an element of the result of ``region`` in the array ``name``."""
        dtype = region.result.type.dtype
        place = self._result_at(name, region, scope)
        if bits := self._bits(region.expression, scope):
            scope.add(f"{place} = {bits}")
            return
        value = self._unrounded(region.expression, dtype, scope)
        if dtype.bits < 32 and dtype.is_float and not value.isidentifier():
            value = self._name(scope, "wide", value, dtype.compute)
        scope.add(f"{place} = {scalars.stored(dtype, value)}")

    def _bits(self, part: Expression, scope: Scope) -> str:
        """The bits to store of a narrow float that is made of bits; empty for any other value."""
        narrow = part.dtype.is_float and part.dtype.bits < 32
        if not narrow or not (isinstance(part, Apply) and part.op is bitcast):
            return ""
        (x,) = part.operands
        self._ops[bitcast.name] = bitcast
        bits = bits_of(x.dtype, self._emit(x, scope))
        return self._name(scope, bitcast.name, in_memory(part.dtype, bits), bits_dtype(part.dtype))

    def _read_kept(self, part: Reduce, scope: Scope) -> None:
        """The elements of a reduction, which it has left in the result's memory."""
        dtype = part.body.dtype
        text = scalars.loaded(dtype, self._result_at("out", self.region, scope))
        scope.names[self._values.number(part.body)] = self._name(scope, "kept", text, dtype)

    def _unrounded(self, part: Expression, dtype: DType, scope: Scope) -> str:
        """The value to store; that of a conversion before it rounds, as storing rounds."""
        if not (isinstance(part, Apply) and part.op is cast) or dtype.compute is dtype:
            return self._emit(part, scope)
        (x,) = part.operands
        self._ops[cast.name] = cast
        text = scalars.before_rounding(x.dtype.compute, dtype, self._emit(x, scope))
        return self._name(scope, cast.name, text, dtype.compute)
