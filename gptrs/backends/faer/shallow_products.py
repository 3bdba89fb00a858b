"""Products of a depth of 2 or 3 as sums in loops: rotations of points, distances to planes.

    dot_general(a[n, 3], b[3, m])   →   reduce_sum(a[n, 1, 3] * transpose(b)[1, m, 3], axes=(2,))

The kernels of products pack panels and write results by tiles; with three multiply-adds an element
both take longer than the arithmetic. A loop reads operands where they lie, writes whole rows, and
fuses what follows. Its vectors lie along the columns, so these are adjacent, and not few; their
number may be symbolic. Sums are in f32, as those of products are.
"""

from __future__ import annotations

from collections.abc import Sequence

from gptrs.backends.expansion import Expansion, Expansions, expandable, with_expansions
from gptrs.backends.faer.calls.contraction import OperandAxes
from gptrs.ir.dims import DimLike
from gptrs.ir.implementations.kernels import kernel_for
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import cast, mul
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.ops.shape import reshape, transpose
from gptrs.ir.program import Instruction, Program
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import f32

_MOST_DEPTH, _LEAST_COLUMNS = 3, 16


def with_shallow_sums(program: Program) -> Program:
    """``program`` with its shallow products as sums."""
    found = {i for i in expandable(program, _SHALLOW) if kernel_for(i) is None}
    return with_expansions(program, _SHALLOW, found)


def _is_shallow(product: Instruction) -> bool:
    lhs, rhs = product.values()
    dtypes = {v.type.dtype for v in (lhs, rhs, product.result)} | {product.attrs["accum_dtype"]}
    if any(d is not None and (d.compute is not f32 or d.bits < 16) for d in dtypes):
        return False
    axes = OperandAxes.of(product, "rhs", rhs.type.rank)
    if len(axes.contracted) != 1 or not axes.rest or axes.rest[-1] != rhs.type.rank - 1:
        return False
    depth, columns = rhs.type.shape[axes.contracted[0]], rhs.type.shape[-1]
    if not isinstance(depth, int) or not 2 <= depth <= _MOST_DEPTH:
        return False
    return not isinstance(columns, int) or columns >= _LEAST_COLUMNS


def _sum(operands: Sequence[Tensor], product: Instruction) -> Tensor:
    a, b = (x if x.dtype is f32 else cast(x, dtype=f32) for x in operands)
    left, right = OperandAxes.of(product, "lhs", a.ndim), OperandAxes.of(product, "rhs", b.ndim)
    after, before = len(right.rest), len(left.rest)
    terms = mul(_spread(a, left, after, after=True), _spread(b, right, before, after=False))
    total = reduce_sum(terms, axes=(terms.ndim - 1,))
    dtype = product.result.type.dtype
    return total if dtype is f32 else cast(total, dtype=dtype)


def _spread(x: Tensor, axes: OperandAxes, count: int, *, after: bool) -> Tensor:
    """An operand with the axes batch, rest of A, rest of B, contracted; ``count`` of them are
    those of the other operand, of extent 1."""
    x = transpose(x, perm=(*axes.batch, *axes.rest, *axes.contracted))
    batch, rest = len(axes.batch), tuple(x.shape[len(axes.batch) : -1])
    ones: tuple[DimLike, ...] = (1,) * count
    middle = (*rest, *ones) if after else (*ones, *rest)
    return reshape(x, shape=(*x.shape[:batch], *middle, x.shape[-1]))


_SHALLOW: Expansions = {dot_general: Expansion(_sum, _is_shallow)}
