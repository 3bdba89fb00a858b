"""Take calls: rows of weights by index, packed or as they lie (embedding lookup)."""

from __future__ import annotations

from gptrs.backends.faer.calls.base import Address, Binder, Call, is_stable, kernel
from gptrs.backends.faer.calls.packing import product_panels
from gptrs.backends.memory_operands import (
    Graph,
    Matrix,
    Members,
    Source,
    rows_of,
    starts_contiguous,
)
from gptrs.ir.dims import DimLike, product
from gptrs.ir.ops import elementwise
from gptrs.ir.ops.index import take
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType
from gptrs.kernels.rowwise.take import TAKE_ARGUMENTS, take_kernel, take_panels_kernel
from gptrs.lazy_dataclass import dataclass

_INDICES = {"si32": 4, "si64": 8}
_WEIGHTS: dict[str, WeightType] = {"f32": "f32", "f16": "f16", "bf16": "bf16"}
_OUTSIDE = 1  # the code of an index that is not in the table


@dataclass(frozen=True, eq=False)
class Take(Call):
    """take: rows of a weight by index, or of a narrow table, widened to f32 (embedding lookup)."""

    target = "gpt_rs.faer.take.f32.v1"

    table: Value
    matrix: Matrix
    width: DimLike
    weights: WeightType
    indices: Source
    stable: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Take | None:
        if core.op is not take:
            return None
        table, indices = core.operands
        if not isinstance(table, Value) or not isinstance(indices, Value):
            return None
        weights = _WEIGHTS.get(table.type.dtype.name)
        if weights is None or indices.type.dtype.name not in _INDICES:
            return None
        members = Members()
        inner = len(table.type.shape) - 1
        rows = members.read(graph.source(table, lambda view: rows_of(view, inner) is not None))
        places = members.read(graph.source(indices, starts_contiguous))
        if rows is None or places is None:
            return None
        members.add(core)
        result = core.result
        if weights != "f32":  # a kernel gives f32
            cast_to = graph.only_reader(result)
            if (
                cast_to is None
                or cast_to.op is not elementwise.cast
                or cast_to.attrs["dtype"] is not f32
            ):
                return None
            members.add(cast_to)
            result = cast_to.result
        matrix = rows_of(rows.view, inner)
        assert matrix is not None
        width = product(table.type.shape[1:])
        stable = is_stable(rows.value, graph) and not rows.through
        if result is core.result and not stable:
            return None  # `Gather` has more lines in flight
        found = tuple(members.found)
        return cls(result, found, rows.value, matrix, width, weights, places, stable)

    def compile(self, isa: Isa) -> None:
        pass  # the plan decides between two small kernels: compiled when bound

    def bind(self, b: Binder) -> bool:
        builder = take_panels_kernel
        rows, width = b.size(self.matrix.rows), b.size(self.width)
        form = product_panels(False, self.weights, width, rows)
        table = b.panels(self.table, form) if self.stable else None
        if table is None:
            builder, table = take_kernel, b.address(self.table, self.matrix.offset)
        type = self.indices.value.type
        count = b.size(product(self.indices.view.shape))
        words: dict[str, int | Address] = dict.fromkeys(TAKE_ARGUMENTS, 0)
        words.update(table=table, indices=b.address(self.indices.value))
        words.update(result=b.address(self.result), status=b.status, code=_OUTSIDE)
        words.update(rows=rows, width=width, result_row=width)
        words.update(ld=b.size(self.matrix.stride), index_bytes=_INDICES[type.dtype.name])
        given = (
            (self.weights, form.compressed) if builder is take_panels_kernel else (self.weights,)
        )
        b.step(kernel(builder, b.isa, *given), [*words.values()], count, count * width)
        return True
