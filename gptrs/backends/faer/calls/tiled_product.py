"""Matrix products of arguments of any dtype, with operands of any strides, in batches.

Those of f32 whose rows are contiguous are in `product`, which has more kernels; here are those of
transposed operands, with the same epilogue, and all of f64, f16, bf16, integers and complex
numbers.
"""

from __future__ import annotations

from gptrs.backends.faer.calls.arguments import Arguments, Side
from gptrs.backends.faer.calls.base import Binder, Call, is_stable
from gptrs.backends.faer.calls.contraction import OperandAxes, ProductEpilogue, match_epilogue
from gptrs.backends.faer.calls.dot_steps import bind_dots, compile_dots
from gptrs.backends.faer.calls.tiled_steps import bind_tiled, compile_tiled
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import DimLike, same
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.number_types import PLAIN, NumberTypes, number_types
from gptrs.kernels.gemm.product import Product
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class TiledProduct(Call):
    """act(A·B + bias) + residual of f32, A·B of other dtypes, for each position of batch axes."""

    target = "gpt_rs.faer.matmul.typed.v1"

    core: Arguments
    epilogue: ProductEpilogue

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> TiledProduct | None:
        members = Members()
        found = _arguments(core, graph, members)
        members.add(core)
        if found is None:
            return None
        result, epilogue = core.result, ProductEpilogue()
        if found.types == PLAIN:
            result, epilogue = match_epilogue(core, found.columns, graph, members)
        return cls(result, tuple(members.found), found, epilogue)

    @classmethod
    def reads(cls, core: Instruction, graph: Graph) -> bool:
        """Whether kernels can read the operands of a product in their layout."""
        return _arguments(core, graph, Members()) is not None

    @classmethod
    def supports(cls, core: Instruction) -> bool:
        """Whether kernels can compute a product of these dtypes."""
        return core.op is dot_general and _types_of(core) is not None

    def compile(self, isa: Isa) -> None:
        core = self.core
        if not self._rounds_on(isa):
            return
        if self._may_be_dots:
            compile_dots(isa, core.types, core.depth, Product())
        if not self._may_be_dots or not same(core.columns, 1):
            compile_tiled(isa, core, self.epilogue)

    def _rounds_on(self, isa: Isa) -> bool:
        """Whether there is an instruction that rounds to the result's dtype."""
        return isa.half or self.core.types.result != "f16"

    @property
    def _may_be_dots(self) -> bool:
        """Whether the product is one of contiguous rows and vectors at some size."""
        core = self.core
        if core.types.parts > 1 or core.types == PLAIN:
            return False
        one = not isinstance(core.columns, int) or core.columns == 1
        return one and same(core.a.depth, 1) and same(core.b.depth, 1)

    def bind(self, b: Binder) -> bool:
        if not self._rounds_on(b.isa):
            return False
        core, rest = self.core, (self.epilogue, self.result)
        if self._may_be_dots and b.size(core.columns) == 1:
            bind_dots(b, core, Product(), *rest)
        else:
            # The transpose of a column is a row, for which Aᵀ is read a row at a time.
            turned = b.size(core.columns) == 1 == b.size(core.a.outer)
            bind_tiled(b, core.transposed() if turned else core, *rest)
        return True


def _arguments(core: Instruction, graph: Graph, members: Members) -> Arguments | None:
    """The product, if kernels can read its operands in their layout."""
    types = _types_of(core) if core.op is dot_general else None
    lhs, rhs = core.operands
    if types is None or not isinstance(lhs, Value) or not isinstance(rhs, Value):
        return None
    left, right = (
        OperandAxes.of(core, name, v.type.rank) for name, v in (("lhs", lhs), ("rhs", rhs))
    )
    a, b = _operand(graph, lhs, left), _operand(graph, rhs, right)
    if a is None or b is None:
        return None
    columns = right.count(rhs.type.shape, right.rest)
    # A weight is packed once; a product with one column has an order of sums of its own.
    if types == PLAIN and (is_stable(b[0].value, graph) or same(columns, 1)):
        return None
    members.read(a[0])
    members.read(b[0])
    return Arguments(
        a=a[1],
        b=b[1],
        types=types,
        batch=tuple(lhs.type.shape[i] for i in left.batch),
        rows=left.count(lhs.type.shape, left.rest),
        depth=left.count(lhs.type.shape, left.contracted),
        columns=columns,
    )


def _types_of(core: Instruction) -> NumberTypes | None:
    """The element types of a product; None where there are no kernels for them here."""
    lhs, result = core.operands[0], core.result.type.dtype
    if not isinstance(lhs, Value):
        return None
    stored, given = lhs.type.dtype, core.attrs["accum_dtype"]
    through: DType = (given or stored).compute
    if given is not None and given.bits < 8:
        return None
    return number_types(stored.name, through.name, result.name)


def _operand(graph: Graph, value: Value, axes: OperandAxes) -> tuple[Source, Side] | None:
    """The stored value behind an operand whose strides kernels can take."""

    def strides(view: View) -> tuple[DimLike, DimLike] | None:
        found: list[DimLike] = []
        for group in (axes.rest, axes.contracted):
            spaced = [(view.shape[i], view.strides[i]) for i in group if not same(view.shape[i], 1)]
            if not evenly_spaced(spaced):
                return None
            found.append(spaced[-1][1] if spaced else 1)
        return found[0], found[1]

    source = graph.source(value, lambda view: strides(view) is not None)
    if source is None or (found := strides(source.view)) is None:
        return None
    return source, Side(source.value, source.view.offset, *found, axes.strides(source.view))
