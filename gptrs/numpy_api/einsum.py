"""``einsum``: sums of products by the labels of axes.

    subscripts ──▶ labels of each operand and of the result; "..." are labels of their own
    each operand:  diagonals of repeated labels, sums over labels that nothing else has
    each pair of the path (`contraction_order`):  dot_general, or a fused product where nothing
                                                  is summed
    result:        its axes in order

Source: the documentation of `numpy.einsum`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dims import Dim, DimLike, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.promotion import is_strict, promote
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import dim_text, f32
from gptrs.numpy_api.contraction_order import OPTIMAL, Path, greedy_path, optimal_path
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.matrices import diagonal

__all__ = ["einsum", "einsum_path"]

Optimize = bool | Literal["optimal", "greedy"]
_NOMINAL = 64  # the extent that a symbol counts for in the choice of an order


class _Labelled(NamedTuple):
    """A tensor and the label of each axis."""

    tensor: Tensor
    labels: tuple[str, ...]


@public
def einsum(*operands: Any, optimize: Optimize = True) -> Tensor:
    """The sum of products that the labels of the axes describe, as in NumPy.

    ``einsum("bij,bjk->bik", x, y)``: a label that the result lacks is summed over, one that an
    operand has twice takes its diagonal, ``...`` are the axes without labels, which broadcast.
    Without ``->`` the result has the labels that occur once, in alphabetic order. The form
    ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` has lists of integers in place of letters.

    ``optimize`` chooses the order of three and more operands: the best one for up to eight of
    them, else a greedy one; False multiplies from left to right. Bools are combined by "and" and
    "or". Raises `ArgumentError` for subscripts that make no sense, `ShapeError` where extents of a
    label differ.
    """
    inputs, result, tensors = _parsed(operands)
    tensors = list(tensors if is_strict() else promote(tuple(tensors)))
    is_bool = all(x.dtype.is_bool for x in tensors)
    if is_bool:
        tensors = [x.astype(f32) for x in tensors]
    labelled = [_Labelled(x, labels) for x, labels in zip(tensors, inputs, strict=True)]
    extents = _extents(labelled)
    labelled = [_without_ones(x, extents) for x in map(_with_diagonals, labelled)]
    made = _contracted(labelled, result, extents, optimize)
    return made != 0 if is_bool else made


@public
def einsum_path(
    *operands: Any, optimize: Optimize = True
) -> tuple[list[str | tuple[int, ...]], str]:
    """The order in which `einsum` multiplies: pairs of positions in the list of operands, each of
    which is taken out and its product appended, after the word "einsum_path" as in NumPy; and a
    text with the labels of each product."""
    inputs, result, tensors = _parsed(operands)
    labelled = [_Labelled(x, labels) for x, labels in zip(tensors, inputs, strict=True)]
    extents = _extents(labelled)
    path = [(min(pair), max(pair)) for pair in _path(labelled, result, extents, optimize)]
    left = ["".join(labels) for labels in inputs]
    lines = [f"{','.join(left)}->{''.join(result)}"]
    for pair in path:
        a, b = (left[i] for i in pair)
        left = [labels for i, labels in enumerate(left) if i not in pair]
        kept = {*result, *"".join(left)}
        made = "".join(label for label in dict.fromkeys(a + b) if label in kept)
        made = made if left else "".join(result)
        left.append(made)
        lines.append(f"{a},{b}->{made}")
    whole = path if path else [(0,)]
    return ["einsum_path", *whole], "\n".join(lines)


def _parsed(operands: Sequence[Any]) -> tuple[list[tuple[str, ...]], tuple[str, ...], list[Tensor]]:
    """The labels of each operand, those of the result, and the operands."""
    if not operands:
        raise ArgumentError("einsum takes subscripts and operands", fix='einsum("ij,jk", x, y)')
    if isinstance(operands[0], str):
        text, tensors = operands[0].replace(" ", ""), [as_tensor(x) for x in operands[1:]]
    else:
        pairs = [*zip(operands[::2], operands[1::2], strict=False)]
        tensors = [as_tensor(x) for x, _ in pairs]
        text = ",".join(_letters(labels) for _, labels in pairs)
        if len(operands) % 2:
            text += "->" + _letters(operands[-1])
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ArgumentError(
            f"{text!r} has {len(terms)} terms, but there are {len(tensors)} operands",
            fix="write one group of labels for each operand, with commas between them",
        )
    widths = [_ellipsis(t, x, text) for t, x in zip(terms, tensors, strict=True)]
    widest = max(widths, default=0)
    inputs = [_labels(t, width, text) for t, width in zip(terms, widths, strict=True)]
    if arrow:
        result = _labels(right, widest if "..." in right else 0, text)
    else:
        count = Counter("".join(terms).replace(".", ""))
        once = sorted(label for label, number in count.items() if number == 1)
        result = (*_numbered(widest), *once)
    known = {label for labels in inputs for label in labels}
    for label in result:
        if label not in known:
            raise ArgumentError(f"{text!r}: no operand has the label {label!r} of the result")
        if result.count(label) > 1:
            raise ArgumentError(f"{text!r}: the result has the label {label!r} twice")
    return inputs, result, tensors


def _letters(labels: Any) -> str:
    """The labels of the form with integers as text."""
    made = ""
    for label in cast("Sequence[Any]", labels):
        if label is Ellipsis:
            made += "..."
        elif isinstance(label, int) and 0 <= label < 52:
            made += chr(ord("A") + label if label < 26 else ord("a") + label - 26)
        else:
            raise ArgumentError(f"the label {label!r} is none of 0 ... 51 or Ellipsis")
    return made


def _ellipsis(term: str, x: Tensor, text: str) -> int:
    """How many axes of ``x`` the "..." of its term stands for."""
    named = len(term.replace("...", "", 1))
    if (named != x.ndim) if "..." not in term else (named > x.ndim):
        raise ShapeError(
            f"{text!r}: {term!r} has {named} labels, its operand {x.ndim} axes",
            fix="name each axis, or write ... for those that have no name",
        )
    return x.ndim - named


def _numbered(width: int) -> tuple[str, ...]:
    """Labels of the axes of "...", counted from the last one."""
    return tuple(f"...{number}" for number in range(width, 0, -1))


def _labels(term: str, width: int, text: str) -> tuple[str, ...]:
    before, dots, after = term.partition("...")
    for label in before + after:
        if not (label.isascii() and label.isalpha()):
            raise ArgumentError(f"{text!r}: {label!r} is no label", fix="labels are letters")
    return (*before, *(_numbered(width) if dots else ()), *after)


def _extents(operands: Sequence[_Labelled]) -> dict[str, DimLike]:
    """The extent of each label; 1 broadcasts."""
    extents: dict[str, DimLike] = {}
    for x, labels in operands:
        for label, extent in zip(labels, x.shape, strict=True):
            known = extents.setdefault(label, extent)
            if same(known, 1):
                extents[label] = extent
            elif not same(known, extent) and not same(extent, 1):
                raise ShapeError(
                    f"label {label!r} has the extents {dim_text(known)} and {dim_text(extent)}"
                )
    return extents


def _with_diagonals(operand: _Labelled) -> _Labelled:
    """Each label once: of one that occurs twice the diagonal."""
    x, labels = operand
    while len(set(labels)) < len(labels):
        label = next(name for name in labels if labels.count(name) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if not same(x.shape[first], x.shape[second]):
            raise ShapeError(
                f"label {label!r} stands for axes of the extents {dim_text(x.shape[first])} and"
                f" {dim_text(x.shape[second])} of one operand"
            )
        x = diagonal(x, axis1=first, axis2=second)
        labels = (*(n for i, n in enumerate(labels) if i not in (first, second)), label)
    return _Labelled(x, labels)


def _without_ones(operand: _Labelled, extents: Mapping[str, DimLike]) -> _Labelled:
    """Without the axes of extent 1 that broadcast: a factor that does not depend on the label."""
    x, labels = operand
    ones = [
        axis
        for axis, label in enumerate(labels)
        if same(x.shape[axis], 1) and not same(extents[label], 1)
    ]
    shape = tuple(n for axis, n in enumerate(x.shape) if axis not in ones)
    kept = tuple(label for axis, label in enumerate(labels) if axis not in ones)
    return _Labelled(x.reshape(shape) if ones else x, kept)


def _contracted(
    operands: list[_Labelled],
    result: tuple[str, ...],
    extents: Mapping[str, DimLike],
    optimize: Optimize,
) -> Tensor:
    operands = [
        _summed(x, {*result, *_labels_of(operands[:n] + operands[n + 1 :])})
        for n, x in enumerate(operands)
    ]
    for i, j in _path(operands, result, extents, optimize):
        rest = [x for place, x in enumerate(operands) if place not in (i, j)]
        kept = {*result, *_labels_of(rest)}
        operands = [*rest, _product(operands[i], operands[j], kept)]
    ((x, labels),) = operands
    perm = tuple(labels.index(label) for label in result)
    return x if perm == tuple(range(x.ndim)) else OPS["transpose"](x, perm=perm)


def _labels_of(operands: Sequence[_Labelled]) -> Iterator[str]:
    for operand in operands:
        yield from operand.labels


def _path(
    operands: Sequence[_Labelled],
    result: tuple[str, ...],
    extents: Mapping[str, DimLike],
    optimize: Optimize,
) -> Path:
    if optimize not in (True, False, "optimal", "greedy"):
        raise ArgumentError(f"optimize is {optimize!r}, expected a bool, 'optimal' or 'greedy'")
    count = len(operands)
    if optimize is False or count < 3:
        return [(0, 1), *((0, left) for left in range(count - 2, 0, -1))][: count - 1]
    sizes = {name: _NOMINAL if isinstance(n, Dim) else n for name, n in extents.items()}
    best = optimize == "optimal" or (optimize is True and count <= OPTIMAL)
    find = optimal_path if best else greedy_path
    return find([frozenset(x.labels) for x in operands], frozenset(result), sizes)


def _summed(operand: _Labelled, kept: set[str]) -> _Labelled:
    """The sum over labels that are not ``kept``."""
    x, labels = operand
    axes = tuple(axis for axis, label in enumerate(labels) if label not in kept)
    if not axes:
        return operand
    rest = tuple(label for label in labels if label in kept)
    return _Labelled(OPS["reduce_sum"](x, axes=axes), rest)


def _product(a: _Labelled, b: _Labelled, kept: set[str]) -> _Labelled:
    """The product of two operands, summed over the labels that both have and nothing keeps."""
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in kept]
    contracted = [label for label in shared if label not in kept]
    rest = [label for label in (*a.labels, *b.labels) if label not in shared]
    if not contracted:
        return _multiplied(a, b, (*batch, *rest))
    axes = {
        f"{name}_{side}": tuple(x.labels.index(label) for label in labels)
        for side, x in (("lhs", a), ("rhs", b))
        for name, labels in (("batch", batch), ("contract", contracted))
    }
    return _Labelled(OPS["dot_general"](a.tensor, b.tensor, **axes), (*batch, *rest))


def _multiplied(a: _Labelled, b: _Labelled, labels: tuple[str, ...]) -> _Labelled:
    """The product without a sum, element by element."""
    return _Labelled(_aligned(a, labels) * _aligned(b, labels), labels)


def _aligned(operand: _Labelled, labels: tuple[str, ...]) -> Tensor:
    """With the axes in the order of ``labels``, of extent 1 where it lacks one."""
    x, own = operand
    present = [label for label in labels if label in own]
    x = OPS["transpose"](x, perm=tuple(own.index(label) for label in present))
    extents = dict(zip(present, x.shape, strict=True))
    return x.reshape(tuple(extents.get(label, 1) for label in labels))
