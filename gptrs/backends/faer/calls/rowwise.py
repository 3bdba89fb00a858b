"""Row-wise calls: layer_norm, rms_norm and softmax over the last axis."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

from gptrs.backends.faer.calls.base import Address, Binder, Call, kernel
from gptrs.backends.memory_operands import Graph, Matrix, Members, Source, rows_of
from gptrs.backends.views import View
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.composite import layer_norm, softmax
from gptrs.ir.ops.language import rms_norm
from gptrs.ir.program import Instruction, Operation, Value
from gptrs.ir.types import f32
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.norm import (
    NORM_ARGUMENTS,
    SOFTMAX_ARGUMENTS,
    layer_norm_kernel,
    rms_norm_kernel,
    softmax_kernel,
)
from gptrs.lazy_dataclass import dataclass


def _rows(view: View) -> Matrix | None:
    return rows_of(view) if view.shape else None


def _is_row(view: View) -> bool:
    found = rows_of(view, len(view.shape))
    return found is not None and len(view.shape) == 1


@dataclass(frozen=True, eq=False)
class _Rowwise(Call):
    x: Value
    matrix: Matrix
    columns: DimLike

    def words(self, b: Binder) -> dict[str, int | Address]:
        columns = b.size(self.columns)
        return {
            "x": b.address(self.x, self.matrix.offset),
            "result": b.address(self.result),
            "columns": columns,
            "x_row": b.size(self.matrix.stride),
            "result_row": columns,
        }

    def elements(self, b: Binder) -> int:
        return b.size(self.matrix.rows) * b.size(self.columns)


def _read_rows(core: Instruction, graph: Graph, members: Members) -> tuple[Value, Matrix] | None:
    x = core.operands[0]
    if not isinstance(x, Value) or x.type.dtype is not f32:
        return None
    source = members.read(graph.source(x, lambda view: _rows(view) is not None))
    matrix = source and _rows(source.view)
    return (source.value, matrix) if source and matrix else None


@dataclass(frozen=True, eq=False)
class _Norm(_Rowwise):
    """A norm of rows, times a weight, plus a bias."""

    weight: Source | None
    bias: Source | None
    eps: float

    op: ClassVar[Operation]

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Self | None:
        if core.op is not cls.op:
            return None
        members = Members()
        found = _read_rows(core, graph, members)
        vectors: list[Source | None] = []
        for vector in core.operands[1:]:
            at = graph.source(vector, _is_row) if isinstance(vector, Value) else None
            if at is None and vector is not None:
                return None
            vectors.append(members.read(at))
        if found is None:
            return None
        members.add(core)
        weight, bias = (*vectors, None)[:2]
        eps: float = core.attrs["eps"]
        columns = core.result.type.shape[-1]
        return cls(core.result, tuple(members.found), *found, columns, weight, bias, eps)

    @abstractmethod
    def _kernel(self, isa: Isa) -> Kernel: ...

    def compile(self, isa: Isa) -> None:
        self._kernel(isa)

    def bind(self, b: Binder) -> bool:
        words = dict.fromkeys(NORM_ARGUMENTS, 0) | self.words(b)
        for name, source in (("weight", self.weight), ("bias", self.bias)):
            if source is not None:
                words[name] = b.address(source.value, source.view.offset)
        rows = b.size(self.matrix.rows)
        b.step(self._kernel(b.isa), [*words.values()], rows, 0.6 * self.elements(b))
        return True


@dataclass(frozen=True, eq=False)
class LayerNorm(_Norm):
    """(x − mean x) / √(var x + eps) · weight + bias."""

    target = "gpt_rs.faer.layer_norm.f32.v1"
    op = layer_norm

    def _kernel(self, isa: Isa) -> Kernel:
        has = {"weight": self.weight is not None, "bias": self.bias is not None}
        return kernel(layer_norm_kernel, isa, **has, eps=float(self.eps))


@dataclass(frozen=True, eq=False)
class RmsNorm(_Norm):
    """x / √(mean x² + eps) · weight."""

    target = "gpt_rs.faer.rms_norm.f32.v1"
    op = rms_norm

    def _kernel(self, isa: Isa) -> Kernel:
        has_weight = self.weight is not None
        return kernel(rms_norm_kernel, isa, weight=has_weight, eps=float(self.eps))


@dataclass(frozen=True, eq=False)
class Softmax(_Rowwise):
    """exp(x − max x) / Σ exp(x − max x)."""

    target = "gpt_rs.faer.softmax.f32.v1"

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Softmax | None:
        shape = core.results[0].type.shape  # others may have several
        if core.op is not softmax or core.attrs["axis"] not in (-1, len(shape) - 1):
            return None
        members = Members()
        found = _read_rows(core, graph, members)
        members.add(core)
        return cls(core.result, tuple(members.found), *found, shape[-1]) if found else None

    def compile(self, isa: Isa) -> None:
        kernel(softmax_kernel, isa)

    def bind(self, b: Binder) -> bool:
        words = dict.fromkeys(SOFTMAX_ARGUMENTS, 0) | self.words(b)
        rows = b.size(self.matrix.rows)
        b.step(kernel(softmax_kernel, b.isa), [*words.values()], rows, 1.5 * self.elements(b))
        return True
