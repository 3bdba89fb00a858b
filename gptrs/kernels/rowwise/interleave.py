"""Interleaving copies: elements of a few rows in turn, contiguous on one side.

    for outer in axes[0], axes[1], ...
        for row in rows
            for k in count, in vectors
                whole[k · parts + part] = parts[part · part_stride + k]   for each part

    parts   a0 a1 a2 ...      b0 b1 b2 ...       c0 c1 c2 ...
    whole   a0 b0 c0 a1 b1 c1 a2 b2 c2 ...

To interleave is to copy from the parts: channels in front become the last axis, `pixel_shuffle`,
`stack` along the last axis. To deinterleave is to copy to them: channels that are the last axis
come to the front, pairs are divided. A vector of each part is loaded, and as many of the whole are
stored, or the other way round; the last ones of a row overlap those before. Elements are moved as
bits, 1 to 8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I32, Builder, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import ElementBytes, element_at, rows_of_block

MOST_PARTS = 4

INTERLEAVE_ARGUMENTS = (
    *("source", "destination", "count", "source_part"),
    *("rows", "source_row", "destination_row", "axes"),
)
"""The argument block of `interleave_kernel`, in order; then ``axes`` triples (extent, stride in the
source, stride in the destination) of the axes around ``rows``, the outermost first.

The parts of a row have ``count`` contiguous elements, at least a vector (`interleaved_lanes`), and
begin ``source_part`` apart. All distances count elements. Source and destination do not overlap.
"""

DEINTERLEAVE_ARGUMENTS = (
    *("source", "destination", "count", "destination_part"),
    *("rows", "source_row", "destination_row", "axes"),
)
"""The argument block of `deinterleave_kernel`: as `INTERLEAVE_ARGUMENTS`, where the parts of a row
of the destination begin ``destination_part`` apart."""


def interleaved_lanes(isa: Isa, size: ElementBytes) -> int:
    """The elements of ``size`` bytes in a vector."""
    return isa.vector_bits // (8 * size)


def interleave_kernel(isa: Isa, size: ElementBytes, parts: int) -> KernelText:
    """2 to `MOST_PARTS` parts of elements of ``size`` bytes, at most 8, become a row.

    Arguments: `INTERLEAVE_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    return _kernel(isa, size, parts, "interleave", INTERLEAVE_ARGUMENTS)


def deinterleave_kernel(isa: Isa, size: ElementBytes, parts: int) -> KernelText:
    """A row of elements of ``size`` bytes, at most 8, becomes 2 to `MOST_PARTS` parts.

    Arguments: `DEINTERLEAVE_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    return _kernel(isa, size, parts, "deinterleave", DEINTERLEAVE_ARGUMENTS)


def _kernel(
    isa: Isa, size: ElementBytes, parts: int, direction: str, arguments: tuple[str, ...]
) -> KernelText:
    name = f"{direction}{parts}_{size}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    ends, part_stride = arguments[:2], arguments[3]
    w = f.argument_block(address, ends, arguments[2:])
    axes = f.add(address, i64(8 * len(arguments)))
    lanes = interleaved_lanes(isa, size)
    vector = ir.VectorType(ir.IntType(8 * size), lanes)
    with rows_of_block(f, w, axes, ("source", "destination"), first, last) as places:
        source, destination = (
            element_at(f, w[end], place, size) for end, place in zip(ends, places, strict=True)
        )

        def put(at: Any) -> None:
            of_parts = [f.add(at, f.mul(w[part_stride], i64(part))) for part in range(parts)]
            begin = f.mul(at, i64(parts))
            of_whole = [f.add(begin, i64(n * lanes)) for n in range(parts)]
            read, written, order = (
                (of_parts, of_whole, interleaved)
                if direction == "interleave"
                else (of_whole, of_parts, deinterleaved)
            )
            vectors = [
                f.load(element_at(f, source, place, size), align=size, typ=vector) for place in read
            ]
            for x, place in zip(order(f, vectors), written, strict=True):
                f.store(x, element_at(f, destination, place, size), align=size)

        end = f.sub(w["count"], i64(lanes))
        with f.loop(i64(0), end, i64(lanes)) as k:
            put(k.index)
        put(end)
    f.ret_void()
    return KernelText(str(module), name)


def interleaved(f: Builder, parts: Sequence[Any]) -> list[Any]:
    """Vectors of the lanes of all ``parts`` in turn. An even number of parts is interleaved as two
    halves, whose parts alternate."""
    number, lanes = len(parts), parts[0].type.count
    if number == 1:
        return list(parts)
    if number % 2 == 0:
        halves = (interleaved(f, parts[half::2]) for half in range(2))
        places = [at // 2 + lanes * (at % 2) for at in range(2 * lanes)]
        pairs = zip(*halves, strict=True)
        chosen = places[:lanes], places[lanes:]
        return [_lanes_of(f, x, y, half) for x, y in pairs for half in chosen]
    return _blended(f, parts)


def _blended(f: Builder, parts: Sequence[Any]) -> list[Any]:
    """An odd number of parts. A lane of a part comes to one place of all vectors together, so that
    each part is moved once, and then blended."""
    number, lanes = len(parts), parts[0].type.count
    turns = range(number * lanes)
    owners = [[at % number for at in turns[n * lanes :][:lanes]] for n in range(number)]
    moved: list[Any] = []
    for part, x in enumerate(parts):
        places = {at % lanes: at // number for at in turns[part::number]}
        moved.append(_lanes_of(f, x, x, [places[i] for i in range(lanes)]))
    result: list[Any] = []
    for owner in owners:
        found = moved[0]
        for part, x in enumerate(moved[1:], 1):
            found = _lanes_of(f, found, x, [i + lanes * (owner[i] == part) for i in range(lanes)])
        result.append(found)
    return result


def deinterleaved(f: Builder, whole: Sequence[Any]) -> list[Any]:
    """The parts whose lanes are in turn in as many vectors: the inverse of `interleaved`."""
    number, lanes = len(whole), whole[0].type.count
    if number == 1:
        return list(whole)
    if number % 2 == 0:
        pairs = [*zip(whole[::2], whole[1::2], strict=True)]
        halves = (
            [_lanes_of(f, *pair, range(half, 2 * lanes, 2)) for pair in pairs] for half in range(2)
        )
        alternating = zip(*(deinterleaved(f, half) for half in halves), strict=True)
        return [part for two in alternating for part in two]
    return [_every(f, whole, part) for part in range(number)]


def _every(f: Builder, whole: Sequence[Any], part: int) -> Any:
    """Lane ``part`` of every ``number`` ones, an odd number. It is at another lane in each vector:
    they are blended where they are, and then moved."""
    number, lanes = len(whole), whole[0].type.count
    found = whole[0]
    held = {place % lanes: place // lanes for place in range(part, number * lanes, number)}
    for n, x in enumerate(whole[1:], 1):
        found = _lanes_of(f, found, x, [i + lanes * (held[i] == n) for i in range(lanes)])
    places = [place % lanes for place in range(part, number * lanes, number)]
    return _lanes_of(f, found, found, places)


def _lanes_of(f: Builder, x: Any, y: Any, places: Iterable[int]) -> Any:
    """The vector of these lanes of ``x`` and, behind them, of ``y``."""
    kind = ir.VectorType(I32, x.type.count)
    return f.shuffle_vector(x, y, ir.Constant(kind, [*places]))
