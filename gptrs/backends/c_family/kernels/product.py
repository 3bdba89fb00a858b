"""The parts of a ``dot_general``: operands by strides, and the axes of its loops."""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.c_family.element_types import NARROW
from gptrs.backends.c_family.kernels.operands import Axes, Operand
from gptrs.backends.memory_operands import Graph
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType, f32
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Product:
    a: Operand
    b: Operand
    batch: Axes
    """Strides of A and B."""
    rows: Axes
    """Strides of A."""
    columns: Axes
    """Strides of B."""
    depth: Axes
    """Strides of A and B."""
    result: Value
    accumulator: DType

    @classmethod
    def of(cls, instruction: Instruction, graph: Graph) -> Product:
        lhs, rhs = instruction.operands
        assert isinstance(lhs, Value)
        assert isinstance(rhs, Value)
        attrs = instruction.attrs
        a, b = Operand.of(graph, lhs), Operand.of(graph, rhs)
        batch = attrs["batch_lhs"], attrs["batch_rhs"]
        depth = attrs["contract_lhs"], attrs["contract_rhs"]
        rest = [
            [i for i in range(len(operand.view.shape)) if i not in (*used, *contracted)]
            for operand, used, contracted in zip((a, b), batch, depth, strict=True)
        ]

        def axes(*of: tuple[Operand, Sequence[int]]) -> Axes:
            first, numbers = of[0]
            extents = tuple(first.view.shape[i] for i in numbers)
            strides = tuple(tuple(o.view.strides[i] for i in numbers) for o, numbers in of)
            return Axes(extents, strides).merged()

        return cls(
            a,
            b,
            axes((a, batch[0]), (b, batch[1])),
            axes((a, rest[0])),
            axes((b, rest[1])),
            axes((a, depth[0]), (b, depth[1])),
            instruction.result,
            (attrs["accum_dtype"] or a.dtype).compute,
        )

    @property
    def is_float(self) -> bool:
        """Whether the products are of f32, in which narrow floats are read."""
        dtypes = (self.a.dtype, self.b.dtype, self.result.type.dtype)
        return self.accumulator is f32 and all(d is f32 or d.name in NARROW for d in dtypes)

    @property
    def is_dot(self) -> bool:
        return self.depth.is_unit(0) and self.depth.is_unit(1)

    @property
    def has_panels(self) -> bool:
        return self.columns.is_unit(0)
