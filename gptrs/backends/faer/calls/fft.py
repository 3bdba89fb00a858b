"""Calls of Fourier transforms: pocketfft, by the inner loops of `numpy.fft`.

    x [outer, N, inner]  →  result [outer, M, inner]

Lines are read and written where they lie, with any strides. The axes beside the transformed one are
traversed as two. Lines are divided among threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from gptrs.backends.faer.calls.axes import merged
from gptrs.backends.faer.calls.base import Binder, Call
from gptrs.backends.faer.calls.gufunc import Placed, add_loop, compile_loop, loop_of
from gptrs.backends.memory_operands import Graph, Members, Source
from gptrs.backends.views import View, evenly_spaced
from gptrs.ir.dims import DimLike, same
from gptrs.ir.ops import fft
from gptrs.ir.program import Instruction
from gptrs.ir.types import Type
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gufunc.inner_loop import InnerLoop
from gptrs.lazy_dataclass import dataclass

_POCKETFFT = "numpy.fft._pocketfft_umath"
_GROUP = 16  # lines: the loops transform as many of them at once as a vector has elements
_LINE_NS, _ELEMENT_NS = 100.0, 0.5


@dataclass(frozen=True, eq=False)
class Fourier(Call):
    """An op of `gptrs.ir.ops.fft`."""

    target = "gpt_rs.faer.fft.v1"
    rounds = True

    x: Source
    axis: int
    n: DimLike
    names: tuple[str, ...]
    """The loop; or that for even and that for odd n."""
    norm: str
    inverse: bool

    @classmethod
    def match(cls, core: Instruction, graph: Graph) -> Fourier | None:
        (x,) = core.values()
        axis, n = core.attrs["axis"], core.attrs["n"]
        inverse = core.op is fft.fft_c2r or core.attrs.get("inverse", False)
        names = _names(core)
        if not all(_loop(name, x.type, core.result.type) for name in names):
            return None
        members = Members()
        source = members.read(graph.source(x, lambda view: _has_two_steps(view, axis)))
        assert source is not None  # the value itself at least
        members.add(core)
        found = tuple(members.found)
        return cls(core.result, found, source, axis, n, names, core.attrs["norm"], inverse)

    def _loop(self, n: int = 0) -> InnerLoop:
        loop = _loop(self.names[n % len(self.names)], self.x.value.type, self.result.type)
        assert loop is not None
        return loop

    def compile(self, isa: Isa) -> None:
        compile_loop(isa, self._loop())

    def bind(self, b: Binder) -> bool:
        n, axis, source, result = b.size(self.n), self.axis, self.x.view, self.result.type
        sizes = [b.size(extent) for extent in result.shape]
        if not prod(sizes):
            return True
        if not b.size(source.shape[axis]):
            return False  # the loop reads a first element
        read = [b.size(stride) for stride in source.strides]
        made = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
        lines = [*zip(sizes, read, made, strict=True)]
        outer, inner = _batch(merged(lines[:axis] + lines[axis + 1 :]))
        factor = _factor(n, self.norm, result, inverse=self.inverse)
        ends = b.address(self.x.value, source.offset), b.address(self.result)
        bytes_ = self.x.value.type.dtype.numpy.itemsize, result.dtype.numpy.itemsize
        extents = (b.size(source.shape[axis]),), (sizes[axis],)
        arrays = [
            Placed(ends[0], bytes_[0], extents[0], (read[axis],), inner[1], outer[1]),
            Placed(0, factor.itemsize, (), (), 0),
            Placed(ends[1], bytes_[1], extents[1], (made[axis],), inner[2], outer[2]),
        ]
        batch = outer[0], inner[0]
        time = prod(batch) * (_LINE_NS + _ELEMENT_NS * n * n.bit_length())
        number = int.from_bytes(factor.tobytes(), "little")
        add_loop(b, self._loop(n), arrays, batch, time, number=number, group=_GROUP)
        return True


def _names(core: Instruction) -> tuple[str, ...]:
    """The loop of an op; or that of even n and that of odd n."""
    if core.op is fft.fft_c2c:
        return ("ifft" if core.attrs["inverse"] else "fft",)
    return ("irfft",) if core.op is fft.fft_c2r else ("rfft_n_even", "rfft_n_odd")


def _loop(name: str, x: Type, result: Type) -> InnerLoop | None:
    return loop_of(_POCKETFFT, name, [x, Type((), fft.real_of(x.dtype))], [result])


def _factor(n: int, norm: str, result: Type, *, inverse: bool) -> Any:
    """What the results are multiplied by, computed in their precision as NumPy does."""
    real = fft.real_of(result.dtype).numpy
    if norm == "ortho":
        return np.reciprocal(np.sqrt(n, dtype=real))
    scaled = norm == ("backward" if inverse else "forward")
    return np.reciprocal(n, dtype=real) if scaled else np.ones((), real)


def _has_two_steps(view: View, axis: int) -> bool:
    """Whether the axes beside ``axis`` are at most two, each with a step, where those before it and
    those after it stay apart."""
    axes = [*zip(view.shape, view.strides, strict=True)]
    count = 0
    for part in (axes[:axis], axes[axis + 1 :]):
        many = [each for each in part if not same(each[0], 1)]
        count += sum(not evenly_spaced(pair) for pair in pairwise(many)) + bool(many)
    return count <= 2


def _batch(axes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The outer and the inner axis: extent, stride in the source and in the result. The inner one
    is the last, where it has lines enough for vectors."""
    outer, inner = ((1, 0, 0), (1, 0, 0), *axes)[-2:]
    return (inner, outer) if inner[0] < min(_GROUP, outer[0]) else (outer, inner)
