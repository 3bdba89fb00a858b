"""Calls of linear algebra: LAPACK, by the inner loops of `numpy.linalg`.

Each matrix is read with any strides; the batch axes of an operand are one axis with a step.
LAPACK's own threads divide large matrices, ours the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Address, Binder, Call
from gptrs.backends.faer.calls.blocks import compile_copies, copy_block, element_bytes
from gptrs.backends.faer.calls.gufunc import Placed, add_loop, compile_loop, contiguous, loop_of
from gptrs.backends.faer.element_types import POINTERS
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import Shape, product, same, surely_greater
from gptrs.ir.ops import linalg
from gptrs.ir.program import Attrs, Fails, Instruction, Operation, Value
from gptrs.ir.types import Type
from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gufunc.inner_loop import InnerLoop

_LAPACK = "numpy.linalg._umath_linalg"
_MATRIX_NS, _ELEMENT_NS = 500.0, 0.5

_NAMES: dict[Operation, Callable[[Attrs], str]] = {
    linalg.cholesky: lambda attrs: "cholesky_up" if attrs["upper"] else "cholesky_lo",
    linalg.det: lambda _: "det",
    linalg.eig: lambda _: "eig",
    linalg.eigh: lambda attrs: "eigh_lo" if attrs["lower"] else "eigh_up",
    linalg.eigvals: lambda _: "eigvals",
    linalg.eigvalsh: lambda attrs: "eigvalsh_lo" if attrs["lower"] else "eigvalsh_up",
    linalg.inv: lambda _: "inv",
    linalg.slogdet: lambda _: "slogdet",
    linalg.solve: lambda _: "solve",
    linalg.svd: lambda attrs: "svd_f" if attrs["full_matrices"] else "svd_s",
    linalg.svdvals: lambda _: "svd",
}


@dataclass(frozen=True, eq=False)
class Lapack(Call):
    """Ops of `gptrs.ir.ops.linalg` that are one loop."""

    target = "gpt_rs.faer.lapack.v1"
    rounds = True

    sources: tuple[Source, ...]
    name: str
    made: tuple[Type, ...]
    """The types of all results; those that nothing reads go to scratch memory."""
    read: tuple[bool, ...]
    fails: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Lapack | None:
        name = _NAMES[core.op](core.attrs)
        types = [value.type for value in core.values()]
        made = tuple(result.type for result in core.results)
        read = tuple(graph.is_read(result) for result in core.results)
        if loop_of(_LAPACK, name, types, made) is None or not any(read):
            return None
        members = Members()
        sources = [_read(members, graph, value) for value in core.values()]
        members.add(core)
        results = [r for r, is_read in zip(core.results, read, strict=True) if is_read]
        return cls(
            results[0],
            tuple(members.found),
            tuple(sources),
            name,
            made,
            read,
            core.fails is not Fails.NEVER,
            more_results=tuple(results[1:]),
        )

    @property
    def _loop(self) -> InnerLoop:
        types = [source.value.type for source in self.sources]
        loop = loop_of(_LAPACK, self.name, types, self.made)
        assert loop is not None
        return loop

    def compile(self, isa: Isa) -> None:
        compile_loop(isa, self._loop, fails=self.fails)

    def bind(self, b: Binder) -> bool:
        loop, stored = self._loop, iter(self.results)
        arrays = [_operand(b, source) for source in self.sources]
        batch = b.size(product(self.sources[0].view.shape[:-2]))
        for type, is_read in zip(self.made, self.read, strict=True):
            core = len(loop.signature[len(arrays)])
            value = next(stored) if is_read else None
            arrays.append(_result(b, type, value, core))
        add_loop(b, loop, arrays, (1, batch), batch * _time(arrays[0].extents), fails=self.fails)
        return True


@dataclass(frozen=True, eq=False)
class Qr(Call):
    """qr: Householder reflectors in a copy of the matrix, the product of them, and the triangle
    above them."""

    target = "gpt_rs.faer.qr.v1"
    rounds = True

    x: Source
    q: Value | None
    r: Value | None
    full: bool
    """Whether Q has more columns than the matrix."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Qr | None:
        (x,) = core.values()
        rows, columns = x.type.shape[-2:]
        q, r = (result if graph.is_read(result) else None for result in core.results)
        results = [result for result in (q, r) if result is not None]
        full = core.attrs["complete"] and surely_greater(rows, columns)
        if not results or not all(_qr_loops(x.type, full=full)):
            return None
        members = Members()
        source = members.read_strided(graph, x)
        members.add(core)
        found = tuple(members.found)
        return cls(results[0], found, source, q, r, full, more_results=tuple(results[1:]))

    def _kernel(self) -> Kernel:
        pointer = POINTERS[self.x.value.type.dtype.name]
        name = f"upper_triangle_{pointer}"
        return compile_source(_triangle(name, pointer), name)

    def _loops(self) -> tuple[InnerLoop, InnerLoop]:
        factor, multiply = _qr_loops(self.x.value.type, full=self.full)
        assert factor is not None
        assert multiply is not None
        return factor, multiply

    def compile(self, isa: Isa) -> None:
        for loop in self._loops():
            compile_loop(isa, loop)
        compile_copies(isa, self.x.value)
        self._kernel()

    def bind(self, b: Binder) -> bool:
        factor, multiply = self._loops()
        view, size = self.x.view, element_bytes(self.x.value)
        *before, rows, columns = map(b.size, view.shape)
        batch, rank = prod(before), min(rows, columns)
        if not batch:
            return True
        copy, tau = b.scratch(batch * rows * columns * size), b.scratch(batch * rank * size)
        axes = [*zip(map(b.size, view.shape), map(b.size, view.strides), strict=True)]
        steps = [prod(n for n, _ in axes[i + 1 :]) for i in range(len(axes))]
        block = [Axis(n, stride, step) for (n, stride), step in zip(axes, steps, strict=True)]
        copy_block(b, (b.address(self.x.value, view.offset), copy), block, size)
        factors = contiguous(copy, size, (rows, columns))
        scales = contiguous(tau, size, (rank,))
        time = batch * _time((rows, columns))
        add_loop(b, factor, [factors, scales], (1, batch), time)
        if self.q is not None:
            made = b.address(self.q), size, (rows, rows if self.full else rank)
            add_loop(b, multiply, [factors, scales, contiguous(*made)], (1, batch), time)
        if self.r is not None:
            kept = b.size(self.r.type.shape[-2])
            words = [copy, b.address(self.r), rows, kept, columns]
            b.step(self._kernel(), words, batch, _ELEMENT_NS * batch * kept * columns)
        return True


def _qr_loops(type: Type, *, full: bool) -> tuple[InnerLoop | None, InnerLoop | None]:
    """The loop that makes the reflectors, and the one that multiplies them."""
    name = "qr_complete" if full else "qr_reduced"
    factor = loop_of(_LAPACK, "qr_r_raw", [type], [type])
    return factor, loop_of(_LAPACK, name, [type, type], [type])


def _triangle(name: str, pointer: str) -> str:
    """The source of a kernel that copies the upper triangles of matrices, and zeros below."""
    return f"""
def {name}(x: {pointer}, result: {pointer}, rows: int64, kept: int64, columns: int64, first, last):
    for item in range(first, last):
        for i in range(kept):
            source = (item * rows + i) * columns
            target = (item * kept + i) * columns
            for j in range(min(i, columns)):
                result[target + j] = 0
            for j in range(i, columns):
                result[target + j] = x[source + j]
"""


def _time(extents: Sequence[int]) -> float:
    """About how long one matrix takes."""
    return _MATRIX_NS + _ELEMENT_NS * prod(extents) * max(extents, default=0)


def _read(members: Members, graph: Graph, value: Value) -> Source:
    source = members.read(graph.source(value, _has_one_batch))
    assert source is not None  # the value itself at least
    return source


def _has_one_batch(view: View) -> bool:
    """Whether the axes before the last two are one axis with a step."""
    axes = zip(view.shape[:-2], view.strides[:-2], strict=True)
    return evenly_spaced([axis for axis in axes if not same(axis[0], 1)])


def _operand(b: Binder, source: Source) -> Placed:
    view = source.view
    size = source.value.type.dtype.numpy.itemsize
    step = step_of(b, view.shape[:-2], view.strides[:-2])
    extents = tuple(map(b.size, view.shape[-2:]))
    strides = tuple(map(b.size, view.strides[-2:]))
    return Placed(b.address(source.value, view.offset), size, extents, strides, step)


def step_of(b: Binder, shape: Shape, strides: Shape) -> int:
    """The step of axes that are traversed as one: that of the last one that has more than one
    element."""
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if b.size(extent) != 1:
            return b.size(stride)
    return 0


def _result(b: Binder, type: Type, value: Value | None, core: int) -> Placed:
    """A result, the last ``core`` axes of which belong to one matrix."""
    size = type.dtype.numpy.itemsize
    sizes = [b.size(extent) for extent in type.shape]
    address: Address = b.scratch(prod(sizes) * size) if value is None else b.address(value)
    return contiguous(address, size, tuple(sizes[len(sizes) - core :]))
