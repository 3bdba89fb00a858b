"""Recognition of rotary positions: proposals of tables at the last sum or concatenation.

    x·cos + concat(−x₂, x₁)·sin                   tables with an entry per element
    concat(x₁·cos − x₂·sin, x₂·cos + x₁·sin)      tables with an entry per pair

x₁ and x₂ are the halves of the last axis. Tables are broadcast to x (or to its halves).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from gptrs.ir.dims import same
from gptrs.ir.ops.elementwise import add, mul, sub
from gptrs.ir.ops.language import rotary
from gptrs.ir.ops.shape import broadcast_to, concat
from gptrs.ir.program import Instruction, Operand, Value, values_in
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from gptrs.passes.idioms.candidates import Proposal, Site


def rotary_of_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The halves turned one after the other."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return concat((a * cos - b * sin, b * cos + a * sin), axis=-1)


def rotary_proposals(site: Site) -> Iterator[Proposal]:
    """Proposals for both spellings, with the types of the tables that are found there."""
    root, shape = site.root, site.type.shape
    if site.type.dtype.compute is not site.type.dtype or not shape:
        return
    size = shape[-1]
    if not isinstance(size, int) or size % 2:
        return
    if root.op is add and site.nearest(concat) is not None:
        for tables in _tables(root, site, size):
            yield Proposal(rotary.body, (site.type, *tables), {}, exact=True)
    elif root.op is concat and root.attrs["axis"] in (-1, len(shape) - 1):
        first = next(values_in(root.operands), None)
        maker = None if first is None else site.makers.get(first)
        if maker is not None and maker.op is sub:
            for tables in _tables(maker, site, size // 2):
                yield Proposal(rotary_of_halves, (site.type, *tables), {})


def _tables(sums: Instruction, site: Site, size: int) -> Iterable[tuple[Type, ...]]:
    """The types that the tables of the two products of a sum may have."""
    found = [
        [table for table in _factors(operand, site) if same(table.shape[-1], size)]
        for operand in sums.operands
    ]
    return product(*found)


def _factors(operand: Operand, site: Site) -> Iterator[Type]:
    maker = site.makers.get(operand) if isinstance(operand, Value) else None
    if maker is None or maker.op is not mul:
        return
    for factor in maker.values():
        behind = site.makers.get(factor)
        if behind is not None and behind.op is broadcast_to:
            (factor,) = behind.values()
        if factor.type.rank:
            yield factor.type
