"""The table of composites that idiom recognition looks for (`RAISABLE`).

For a possible root of a composite its `Raisable` proposes spellings, with the operand types and
attributes that they would have there. A proposal is a guess: `idioms.matcher.Matcher` verifies it.
`gptrs patterns` prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from gptrs.ir.composites import Composite
from gptrs.ir.ops import composite, elementwise, language, vision
from gptrs.ir.ops.composite import softmax
from gptrs.ir.ops.contract import dot_general
from gptrs.ir.ops.elementwise import exp, pow_, rsqrt, sqrt
from gptrs.ir.ops.reduce import reduce_sum
from gptrs.ir.ops.shape import concat
from gptrs.ir.ops.window import extract_patches
from gptrs.ir.program import Operation, Value
from gptrs.ir.types import Type
from gptrs.lazy_dataclass import dataclass
from gptrs.passes.idioms.attention import attention_proposals
from gptrs.passes.idioms.candidates import Proposal, Site
from gptrs.passes.idioms.equivalence import axes_of
from gptrs.passes.idioms.patterns import Hole
from gptrs.passes.idioms.rotary import rotary_proposals
from gptrs.passes.idioms.spellings import (
    factored_gelu_tanh,
    halved_sigmoid,
    shifted_sigmoid,
)

_EPS = Hole("eps")


@dataclass(frozen=True)
class Raisable:
    """A composite to recognise. ``cores`` are op names, at least one of which occurs in every
    spelling."""

    op: Composite[Any, Any]
    cores: frozenset[Operation]
    propose: Callable[[Site], Iterable[Proposal]]
    doc: str

    @property
    def name(self) -> str:
        return self.op.name


def _activation(
    op: Composite[Any, Any], cores: Sequence[Operation], doc: str, *spellings: Callable[..., Any]
) -> Raisable:
    """A function of one operand, of the type of its result."""

    def propose(site: Site) -> Iterator[Proposal]:
        yield Proposal(op.body, (site.type,), {}, exact=True)
        for spelling in spellings:
            yield Proposal(spelling, (site.type,), {})

    return Raisable(op, frozenset(cores), propose, doc)


def _along_axis(op: Composite[Any, Any], cores: Sequence[Operation], doc: str) -> Raisable:
    """A function of one operand along the axis of its `reduce_sum`."""

    def propose(site: Site) -> Iterator[Proposal]:
        total = site.nearest(reduce_sum)
        if total is not None and len(total.attrs["axes"]) == 1:
            yield Proposal(op.body, (site.type,), {"axis": total.attrs["axes"][0]}, exact=True)

    return Raisable(op, frozenset(cores), propose, doc)


def _norm(op: Composite[Any, Any], given: int, doc: str) -> Raisable:
    """A norm of x [..., D] with ``given`` vectors [D], then optional ones.

    Statistics that are not operands are computed with `reduce_sum`.
    """
    optional = len(op.operand_names) - 1 - given

    def propose(site: Site) -> Iterator[Proposal]:
        if not site.root.op.elementwise or not (given or site.nearest(reduce_sum)):
            return
        vector = Type(site.type.shape[-1:], site.type.dtype)
        for vectors in product((vector, None), repeat=optional):
            operands = (site.type, *[vector] * given, *vectors)
            yield Proposal(op.body, operands, {"eps": _EPS}, exact=True)

    return Raisable(op, frozenset([rsqrt, sqrt, pow_]), propose, doc)


def _conv2d_proposals(site: Site) -> Iterator[Proposal]:
    """conv2d as the product of patches [N, H', W', KH·KW·C] and a matrix [KH·KW·C, O]."""
    patches, dot = site.nearest(extract_patches), site.nearest(dot_general)
    if patches is None or dot is None or len(patches.attrs["window"]) != 2:
        return
    (x,) = patches.values()
    matrix = dot.operands[1]
    assert isinstance(matrix, Value)
    batch, outputs, contracted = axes_of(dot, "rhs")
    if batch or len(outputs) != 1 or len(contracted) != 1:
        return
    extent = matrix.type.shape[outputs[0]]
    weight = Type((*patches.attrs["window"], x.type.shape[-1], extent), matrix.type.dtype)
    attrs = {name: patches.attrs[name] for name in ("strides", "padding", "dilation")}
    for bias in (Type((extent,), matrix.type.dtype), None):
        yield Proposal(vision.conv2d.body, (x.type, weight, bias), attrs, exact=True)


RAISABLE: tuple[Raisable, ...] = (
    _activation(composite.relu, [elementwise.maximum], "max(x, 0)"),
    _activation(
        vision.relu6, [elementwise.clamp, elementwise.minimum], "clamp(x, 0, 6), min(max(x, 0), 6)"
    ),
    _along_axis(
        composite.softmax,
        [elementwise.exp],
        "e / sum(e) with e = exp(x - max(x)); without the maximum it overflows and stays as it is",
    ),
    _along_axis(
        composite.log_softmax, [elementwise.log], "y - log(sum(exp(y))) with y = x - max(x)"
    ),
    _activation(composite.gelu, [elementwise.erf], "x * 0.5 * (1 + erf(x / sqrt(2)))"),
    _activation(
        composite.gelu_tanh,
        [elementwise.tanh],
        "x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))), or x * (1 + 0.044715 * x**2)",
        factored_gelu_tanh,
    ),
    _activation(
        composite.sigmoid,
        [elementwise.exp, elementwise.tanh],
        "1 / (1 + exp(-x)), 0.5 * (1 + tanh(x / 2))",
        halved_sigmoid,
        shifted_sigmoid,
    ),
    _activation(
        composite.silu, [elementwise.exp, composite.sigmoid], "x * sigmoid(x), x / (1 + exp(-x))"
    ),
    _activation(
        composite.gelu_quick, [elementwise.exp, composite.sigmoid], "x * sigmoid(1.702 * x)"
    ),
    _norm(
        composite.layer_norm,
        0,
        "(x - mean(x)) / sqrt(mean((x - mean(x))**2) + eps) * weight + bias over the last axis",
    ),
    _norm(language.rms_norm, 0, "x * rsqrt(mean(x**2) + eps) * weight over the last axis"),
    Raisable(
        language.rotary,
        frozenset([concat]),
        rotary_proposals,
        "x * cos + concat(-x2, x1) * sin, or concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin), with"
        " the halves of the last axis",
    ),
    _norm(vision.batch_norm, 2, "(x - mean) / sqrt(var + eps) * weight + bias per channel"),
    Raisable(
        composite.attention,
        frozenset([softmax, exp]),
        attention_proposals,
        "softmax(q @ k.T * scale) @ v with no mask, or one that is causal, a window, or a start"
        " and length per row: chosen by select, or -inf (-1e9 and less) added",
    ),
    Raisable(
        vision.conv2d,
        frozenset([extract_patches]),
        _conv2d_proposals,
        "extract_patches(x) @ weight + bias",
    ),
)
"""In search order: a composite comes before those that contain it."""
