"""Steps that call an inner loop of a NumPy ufunc (`gptrs.kernels.gufunc`) over a batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gptrs.backends.faer.calls.base import Binder, Word, kernel
from gptrs.ir.types import Type
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gufunc.inner_loop import InnerLoop, flag_functions, inner_loop
from gptrs.kernels.gufunc.kernel import gufunc_kernel
from gptrs.lazy_dataclass import dataclass

FAILED = 1
"""The code of a failure that the reference words."""


@dataclass(frozen=True)
class Placed:
    """An array of a loop at known sizes: where it is (0: the number in the argument block), the
    bytes of an element, its core axes, and its steps along the batch, in elements."""

    address: Word
    size: int
    extents: Sequence[int]
    strides: Sequence[int]
    step: int
    outer: int = 0


def contiguous(address: Word, size: int, extents: Sequence[int]) -> Placed:
    """An array of one item of the batch after the other."""
    strides = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    return Placed(address, size, extents, strides, prod(extents))


def loop_of(
    module: str, name: str, operands: Sequence[Type], results: Sequence[Type]
) -> InnerLoop | None:
    """The loop of a ufunc for values of these types."""
    given, made = ("".join(t.dtype.numpy.char for t in types) for types in (operands, results))
    return inner_loop(module, name, f"{given}->{made}")


def compile_loop(isa: Isa, loop: InnerLoop, *, fails: bool = False) -> None:
    """Compile the kernel that calls ``loop``."""
    kernel(gufunc_kernel, isa, len(loop.signature), len(loop.dimensions), fails=fails)


def add_loop(
    b: Binder,
    loop: InnerLoop,
    arrays: Sequence[Placed],
    batch: tuple[int, int],
    time: float,
    *,
    fails: bool = False,
    number: int = 0,
    group: int = 1,
) -> None:
    """Add the step that calls ``loop`` on ``arrays`` over outer and inner items of a batch, in
    whole groups. ``number`` holds the bits of the number in the argument block."""
    extents: dict[str, int] = {}
    for array, names in zip(arrays, loop.signature, strict=True):
        extents.update(zip(names, array.extents, strict=True))
    outer, inner = batch
    words: list[Word] = [loop.address, loop.data, *flag_functions(), b.status, FAILED, number]
    words += [max(inner, 1), group]
    words += [array.address for array in arrays]
    words += [array.outer * array.size for array in arrays]
    words += [extents[name] for name in loop.dimensions]
    words += [array.step * array.size for array in arrays]
    words += [stride * array.size for array in arrays for stride in array.strides]
    built = kernel(gufunc_kernel, b.isa, len(arrays), len(loop.dimensions), fails=fails)
    b.step(built, words, outer * -(-inner // group), time)
