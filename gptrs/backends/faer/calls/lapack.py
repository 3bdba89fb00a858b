"""Calls of linear algebra: LAPACK, by the inner loops of `numpy.linalg`.

Each matrix is read with any strides; the batch axes of an operand are one axis with a step.
LAPACK's own threads divide large matrices, ours the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from gptrs.backends.faer.calls.axes import Axis
from gptrs.backends.faer.calls.base import Address, Binder, Call
from gptrs.backends.faer.calls.blocks import compile_copies, copy_block, element_bytes
from gptrs.backends.faer.calls.gufunc import (
    FAILED,
    Placed,
    add_loop,
    compile_loop,
    contiguous,
    loop_of,
)
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
from gptrs.lazy_dataclass import dataclass

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


_OF_FINITE = frozenset((linalg.eig, linalg.eigvals, linalg.svd, linalg.svdvals))
"""Ops whose routines do not end, or write beyond their arrays, where an element is not finite."""


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
    of_finite: bool

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
            core.op in _OF_FINITE,
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
        if self.of_finite:
            _finite_kernel(self.sources[0].value.type)

    def bind(self, b: Binder) -> bool:
        loop, stored = self._loop, iter(self.results)
        arrays = [_operand(b, source) for source in self.sources]
        batch = b.size(product(self.sources[0].view.shape[:-2]))
        for type, is_read in zip(self.made, self.read, strict=True):
            core = len(loop.signature[len(arrays)])
            value = next(stored) if is_read else None
            arrays.append(_result(b, type, value, core))
        if self.of_finite:
            x = arrays[0]
            words = [x.address, *x.extents, *x.strides, x.step, b.status]
            time = _ELEMENT_NS * batch * prod(x.extents)
            b.step(_finite_kernel(self.sources[0].value.type), words, batch, time)
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
    complete: bool
    """Whether Q has as many columns as rows, where the matrix has fewer."""

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Qr | None:
        (x,) = core.values()
        rows, columns = x.type.shape[-2:]
        q, r = (result if graph.is_read(result) else None for result in core.results)
        results = [result for result in (q, r) if result is not None]
        complete = core.attrs["complete"] and not surely_greater(columns, rows)
        if not results or not all(_qr_loops(x.type)):
            return None
        members = Members()
        source = members.read_strided(graph, x)
        members.add(core)
        found = tuple(members.found)
        return cls(results[0], found, source, q, r, complete, more_results=tuple(results[1:]))

    def _kernel(self) -> Kernel:
        pointer = POINTERS[self.x.value.type.dtype.name]
        name = f"upper_triangle_{pointer}"
        return compile_source(_triangle(name, pointer), name)

    def _loops(self) -> list[InnerLoop]:
        found = [loop for loop in _qr_loops(self.x.value.type) if loop is not None]
        assert len(found) == len(_QR_LOOPS)
        return found

    def compile(self, isa: Isa) -> None:
        for loop in self._loops():
            compile_loop(isa, loop)
        compile_copies(isa, self.x.value)
        self._kernel()

    def bind(self, b: Binder) -> bool:
        factor, reduced, whole = self._loops()
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
            full = self.complete and rows > columns
            made = b.address(self.q), size, (rows, rows if full else rank)
            add_loop(
                b,
                whole if full else reduced,
                [factors, scales, contiguous(*made)],
                (1, batch),
                time,
            )
        if self.r is not None:
            kept = b.size(self.r.type.shape[-2])
            words = [copy, b.address(self.r), rows, kept, columns]
            b.step(self._kernel(), words, batch, _ELEMENT_NS * batch * kept * columns)
        return True


_QR_LOOPS = {"qr_r_raw": 1, "qr_reduced": 2, "qr_complete": 2}
"""The loop that makes the reflectors, and those that multiply them to as many columns as the matrix
has and as it has rows; and their operands."""


def _qr_loops(type: Type) -> list[InnerLoop | None]:
    """`_QR_LOOPS` for matrices of this type; None where this NumPy has none."""
    return [loop_of(_LAPACK, name, [type] * count, [type]) for name, count in _QR_LOOPS.items()]


def _finite_kernel(type: Type) -> Kernel:
    """The kernel that fails where an element is infinite or NaN, which minus itself is no 0."""
    pointer = POINTERS[type.dtype.name]
    name = f"are_finite_{pointer}"
    return compile_source(
        f"""
def {name}(
    x: {pointer}, rows: int64, columns: int64, row: int64, column: int64, step: int64,
    status: int64, first, last
):
    failing = False
    for item in range(first, last):
        for i in range(rows):
            for j in range(columns):
                element = x[item * step + i * row + j * column]
                failing = failing | (element - element != 0)
    if failing:
        report_failure(status, {FAILED})
""",
        name,
    )


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
