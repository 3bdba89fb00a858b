"""Calls of NumPy's inner loops: linear algebra by LAPACK.

The batch axes of every operand are at most one axis with a step; matrices are read with any
strides. LAPACK's own threads divide large matrices, ours the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from gptrs.backends.faer.calls.base import Binder, Call, Word, kernel
from gptrs.backends.faer.graph import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import Shape, product
from gptrs.ir.ops import linalg
from gptrs.ir.program import Attrs, Fails, Instruction, Operation, Value
from gptrs.ir.types import Type
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gufunc.inner_loop import InnerLoop, flag_functions, inner_loop
from gptrs.kernels.gufunc.kernel import gufunc_kernel

_LAPACK = "numpy.linalg._umath_linalg"
_FAILED = 1
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


@dataclass(frozen=True)
class _Array:
    """An array of a loop at known sizes: where it is, its batch step and the strides of its core
    axes, in elements."""

    address: Word
    size: int
    step: int
    strides: Sequence[int]


def loop_of(
    module: str, name: str, operands: Sequence[Type], results: Sequence[Type]
) -> InnerLoop | None:
    """The loop of a ufunc for values of these types."""
    given, made = ("".join(t.dtype.numpy.char for t in types) for types in (operands, results))
    return inner_loop(module, name, f"{given}->{made}")


@dataclass(frozen=True, eq=False)
class Lapack(Call):
    """Ops of `gptrs.ir.ops.linalg`, by the loops of `numpy.linalg`."""

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
        sources = [
            members.read(graph.source(value, lambda view: _has_one_batch(view)))
            for value in core.values()
        ]
        members.add(core)
        results = [r for r, is_read in zip(core.results, read, strict=True) if is_read]
        return cls(
            results[0],
            tuple(members.found),
            tuple(source for source in sources if source is not None),
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
        loop = self._loop
        kernel(gufunc_kernel, isa, len(loop.signature), len(loop.dimensions), fails=self.fails)

    def bind(self, b: Binder) -> bool:
        loop = self._loop
        stored = iter(self.results)
        arrays = [_operand(b, source) for source in self.sources]
        for type, is_read in zip(self.made, self.read, strict=True):
            arrays.append(_result(b, type, next(stored) if is_read else None, loop, len(arrays)))
        extents: dict[str, int] = {}
        shapes = [source.view.shape for source in self.sources] + [t.shape for t in self.made]
        for shape, names in zip(shapes, loop.signature, strict=True):
            core = shape[len(shape) - len(names) :]
            extents.update(zip(names, map(b.size, core), strict=True))
        batch = b.size(
            product(
                self.made[0].shape[
                    : len(self.made[0].shape) - len(loop.signature[len(self.sources)])
                ]
            )
        )
        words: list[Word] = [loop.address, loop.data, *flag_functions(), b.status, _FAILED, 0]
        words.append(max(batch, 1))
        words += [array.address for array in arrays]
        words += [0] * len(arrays)
        words += [extents[name] for name in loop.dimensions]
        words += [array.step * array.size for array in arrays]
        words += [stride * array.size for array in arrays for stride in array.strides]
        largest = sorted(extents.values())[-2:]
        time = batch * (_MATRIX_NS + _ELEMENT_NS * prod(largest) * max(largest))
        built = kernel(
            gufunc_kernel, b.isa, len(loop.signature), len(loop.dimensions), fails=self.fails
        )
        b.step(built, words, batch, time)
        return True


def _has_one_batch(view: View) -> bool:
    """Whether the axes before the last two are one axis with a step."""
    return evenly_spaced([*zip(view.shape[:-2], view.strides[:-2], strict=True)])


def _operand(b: Binder, source: Source) -> _Array:
    view = source.view
    strides = [b.size(stride) for stride in view.strides]
    step = _step(b, view.shape[:-2], view.strides[:-2])
    size = source.value.type.dtype.numpy.itemsize
    return _Array(b.address(source.value, view.offset), size, step, strides[-2:])


def _step(b: Binder, shape: Shape, strides: Shape) -> int:
    """The step of axes that are traversed as one: that of the last one that has more than one
    element."""
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if b.size(extent) != 1:
            return b.size(stride)
    return 0


def _result(b: Binder, type: Type, value: Value | None, loop: InnerLoop, number: int) -> _Array:
    core = len(loop.signature[number])
    size = type.dtype.numpy.itemsize
    sizes = [b.size(extent) for extent in type.shape]
    inner = sizes[len(sizes) - core :]
    strides = [prod(inner[axis + 1 :]) for axis in range(core)]
    address = b.scratch(prod(sizes) * size) if value is None else b.address(value)
    return _Array(address, size, prod(inner), strides)
