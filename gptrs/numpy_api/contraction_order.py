"""The order of a contraction of several operands: which pair is multiplied next.

Input are the labels of each operand, those of the result and the extents; output is a path: pairs
of positions in the list of operands, of which each pair is taken out and its product appended. Up
to `OPTIMAL` operands the order with the fewest multiplications is found, by dynamic programming
over subsets; beyond that the pair is taken that makes the intermediate results least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod

__all__ = ["OPTIMAL", "greedy_path", "optimal_path"]

OPTIMAL = 8
"""The most operands of which all orders are compared: 3⁸ splits take some 10 ms."""

Labels = frozenset[str]
Path = list[tuple[int, int]]


def _size(labels: Iterable[str], extents: Mapping[str, int]) -> int:
    return prod(extents[label] for label in labels)


def optimal_path(operands: Sequence[Labels], result: Labels, extents: Mapping[str, int]) -> Path:
    """The path with the fewest multiplications in all.

    cost(S) = min over splits S = A + B of cost(A) + cost(B) + the extents of all labels of A and
    B, where the labels of a subset are those that the result or another operand has too.
    """
    count = len(operands)
    everything = (1 << count) - 1
    labels: dict[int, Labels] = {}
    for subset in range(1, everything + 1):
        inside = _union(operands[i] for i in range(count) if subset >> i & 1)
        outside = _union(operands[i] for i in range(count) if not subset >> i & 1)
        labels[subset] = inside & (outside | result)
    best: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(count)}  # cost, first part
    for subset in sorted(range(1, everything + 1), key=int.bit_count):
        if subset in best:
            continue
        found: list[tuple[int, int]] = []
        part = (subset - 1) & subset
        while part > (rest := subset ^ part):
            work = _size(labels[part] | labels[rest], extents)
            found.append((best[part][0] + best[rest][0] + work, part))
            part = (part - 1) & subset
        best[subset] = min(found)
    order: list[tuple[int, int]] = []

    def split(subset: int) -> None:
        if subset.bit_count() > 1:
            part = best[subset][1]
            split(part)
            split(subset ^ part)
            order.append((part, subset ^ part))

    split(everything)
    places = [1 << i for i in range(count)]
    path: Path = []
    for left, right in order:
        path.append((places.index(left), places.index(right)))
        places.remove(left)
        places.remove(right)
        places.append(left | right)
    return path


def greedy_path(operands: Sequence[Labels], result: Labels, extents: Mapping[str, int]) -> Path:
    """The path that takes the pair whose product is the least larger than its operands."""
    left, path = list(operands), Path()
    while len(left) > 1:

        def growth(pair: tuple[int, int]) -> tuple[int, int]:
            a, b = (left[i] for i in pair)
            kept = _product(pair, left, result)
            grown = _size(kept, extents) - _size(a, extents) - _size(b, extents)
            return grown, _size(a | b, extents)

        i, j = min(combinations(range(len(left)), 2), key=growth)
        kept = _product((i, j), left, result)
        path.append((i, j))
        del left[j], left[i]
        left.append(kept)
    return path


def _product(pair: tuple[int, int], operands: Sequence[Labels], result: Labels) -> Labels:
    """The labels that the product of a pair keeps."""
    others = _union(labels for i, labels in enumerate(operands) if i not in pair)
    return (operands[pair[0]] | operands[pair[1]]) & (others | result)


def _union(sets: Iterable[Labels]) -> Labels:
    return frozenset[str]().union(*sets)
