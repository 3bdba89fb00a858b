"""Recognition of attention: proposals of operands and mask at the second matrix product.

The root is weights·v. The proposals vary where the scale is applied, how query heads share keys,
and how the mask is applied (select or addition). After a match `masks.read_mask` turns the mask
into the attributes and limits of `attention`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import get_args

from gptrs.ir.dims import DimLike, Shape, same
from gptrs.ir.ops.composite import softmax
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import add, div, mul, select
from gptrs.ir.ops.shape import broadcast_to, reshape, transpose
from gptrs.ir.program import Attrs, Instruction, Value
from gptrs.ir.types import Type, i1
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.bindings import Moved
from gptrs.passes.idioms.candidates import Bound, Proposal, Site
from gptrs.passes.idioms.equivalence import axes_of
from gptrs.passes.idioms.masks import Limit, Visible, is_fill, read_mask
from gptrs.passes.idioms.patterns import Hole
from gptrs.passes.idioms.products import Makers, number_of
from gptrs.passes.idioms.spellings import (
    Heads,
    Mask,
    Scaled,
    attention_of_softmax,
    guarded_attention,
)

_SCALE, _FILL = Hole("scale"), Hole("fill")


@dataclass(frozen=True)
class _Products:
    """The extents of the two matrix products of an attention, q·kᵀ and weights·v."""

    batch: Shape
    rows: Shape
    """The row axes of q: queries, or heads that share keys, and queries."""
    keys: DimLike
    depth: DimLike
    values: DimLike
    scores: Instruction
    spread: bool = False
    """Whether the heads that share keys are a batch axis of the products, along which keys are
    broadcast."""

    @classmethod
    def at(cls, root: Instruction, site: Site) -> _Products | None:
        scores = site.nearest(dot_general, root.operands[0])
        if scores is None:
            return None
        batch, rows, contracted = _extents(scores, "lhs")
        _, keys, _ = _extents(scores, "rhs")
        _, again, seen = _extents(root, "lhs")
        _, values, _ = _extents(root, "rhs")
        counts = len(keys), len(contracted), len(seen), len(values)
        if counts != (1, 1, 1, 1) or len(again) != len(rows):
            return None
        spread = (len(rows), len(batch)) == (1, 3)
        if spread:
            batch, rows = batch[:2], (batch[2], *rows)
        if len(batch) > 2:
            return None
        if len(rows) != 1 and (len(rows), len(batch)) != (2, 2):
            return None
        return cls(batch, rows, keys[0], contracted[0], values[0], scores, spread)

    @property
    def axis(self) -> int | None:
        """The batch axis of the scores, as `read_mask` takes it."""
        if len(self.batch) != 2:
            return None
        return 0 if same(self.batch[0], 1) else -len(self.rows) - 3

    @property
    def queries(self) -> DimLike:
        return self.rows[-1]


def attention_proposals(site: Site) -> Iterator[Proposal]:
    """Proposals for softmax between two matrix products, with an optional mask before it."""
    root = site.root
    found = _Products.at(root, site) if root.op is dot_general else None
    if found is None or site.type.dtype.compute is not site.type.dtype:
        return
    soft = site.nearest(softmax, root.operands[0])
    masked = _masked(site, soft)
    if masked is None:
        return
    lead = (1,) * (2 - len(found.batch)) + tuple(found.batch)
    grouped = len(found.rows) == 2
    dtype = site.type.dtype
    mask = None
    if masked != "none":
        mask = found.scores.results[0].type.with_dtype(dtype if masked == "add" else i1)
    for heads, groups in _heads(site, found, lead[1]):
        heads_of_q = groups * found.rows[0] if grouped else lead[1]
        operands = (
            Type((lead[0], heads_of_q, found.queries, found.depth), dtype),
            Type((lead[0], groups, found.keys, found.depth), dtype),
            Type((lead[0], groups, found.keys, found.values), dtype),
            mask,
        )
        for scale, scaled in [*((_SCALE, place) for place in get_args(Scaled)), (1.0, "scores")]:
            yield Proposal(
                guarded_attention if soft is None else attention_of_softmax,
                operands,
                {
                    "scale": scale,
                    "fill": _FILL,
                    "scaled": scaled,
                    "heads": heads,
                    "masked": masked,
                    "batch_axes": len(found.batch),
                },
                exact=scaled == "scores" and not found.spread,
                finish=partial(_finish, site.makers, found, masked),
            )


def _extents(dot: Instruction, side: str) -> list[Shape]:
    """The extents of an operand of a matrix product: batch, rest, contracted."""
    operand = dot.operands[0 if side == "lhs" else 1]
    assert isinstance(operand, Value)
    return [tuple(operand.type.shape[i] for i in axes) for axes in axes_of(dot, side)]


def _masked(site: Site, soft: Instruction | None) -> Mask | None:
    """How the scores are masked before the softmax; None if that cannot be seen."""
    if soft is not None:
        value = soft.operands[0]
        maker = site.makers.get(value) if isinstance(value, Value) else None
    else:
        maker = site.nearest(select, site.root.operands[0])
        if maker is None:
            return None
    if maker is None or maker.op not in (select, add):
        return "none"
    if maker.op is add:
        return "add"
    return "keep" if number_of(maker.operands[2], site.makers) is not None else "hide"


def _heads(site: Site, found: _Products, heads: DimLike) -> Iterator[tuple[Heads, DimLike]]:
    """The possible ways in which query heads share keys, each with its number of key heads."""
    if len(found.rows) == 2:
        yield ("spread" if found.spread else "grouped"), heads
        return
    value = found.scores.operands[1]
    while isinstance(value, Value) and (maker := site.makers.get(value)) is not None:
        if maker.op is broadcast_to and len(found.batch) == 2:
            shape: Shape = maker.attrs["shape"]
            if len(shape) == 5:
                yield "repeated", shape[1]
        if maker.op not in (reshape, transpose, mul, div):
            break
        value = maker.operands[0]
    yield "plain", heads


def _finish(
    makers: Makers, found: _Products, masked: Mask, operands: Bound, attrs: Attrs
) -> tuple[Bound, Attrs] | None:
    """The operands of `attention` with the limits of the mask; None if it cannot express the
    mask."""
    q, k, v, mask = operands
    visible: Visible | None = Visible()
    if mask is not None:
        visible = (
            None
            if mask.moves
            else read_mask(
                mask.value,
                makers,
                queries=found.queries,
                keys=found.keys,
                hides=masked == "hide",
                rows=found.axis,
            )
        )
    if visible is None:
        return None
    fill: float = attrs.get("fill", visible.fill)
    if not is_fill(fill) or (fill > -math.inf and not visible.everyone_sees):
        return None  # a query that sees no key would give another finite number than 0
    ends = [visible.start, visible.length]
    rows = found.batch[0] if len(found.batch) == 2 else 1
    wide = any(end is not None and not same(end.plus, 0) for end in ends)  # both of one dtype
    limits = [end and _limit(end, rows, wide=wide) for end in ends]
    return (q, k, v, *limits), {
        "causal": visible.causal,
        "window": visible.window,
        "scale": float(attrs["scale"]),
    }


def _limit(end: Limit, rows: DimLike, *, wide: bool) -> Moved:
    """A limit of keys as an operand [batch]."""
    single = not end.value.type.rank
    moves = ((reshape, (1,)),) if single else ()
    return Moved(end.value, moves, end.plus if wide else None, rows if single else None)
