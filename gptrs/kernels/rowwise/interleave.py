"""Interleaving copy: elements of a few rows of the source in turn, contiguous in the destination.

    for outer in axes[0], axes[1], ...
        for row in rows
            for k in count, in vectors
                destination[k · parts + part] = source[part · source_part + k]   for each part

    source       a0 a1 a2 ...      b0 b1 b2 ...       c0 c1 c2 ...
    destination  a0 b0 c0 a1 b1 c1 a2 b2 c2 ...

Channels in front become the last axis, `pixel_shuffle`, `stack` along the last axis. A vector of
each part is loaded, and as many of the destination are stored; the last ones of a row overlap those
before. Elements are moved as bits, 1 to 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def interleaved_lanes(isa: Isa, size: ElementBytes) -> int:
    """The elements of ``size`` bytes in a vector."""
    return isa.vector_bits // (8 * size)


def interleave_kernel(isa: Isa, size: ElementBytes, parts: int) -> KernelText:
    """2 to `MOST_PARTS` parts of elements of ``size`` bytes, at most 8.

    Arguments: `INTERLEAVE_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    name = f"interleave{parts}_{size}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, INTERLEAVE_ARGUMENTS[:2], INTERLEAVE_ARGUMENTS[2:])
    axes = f.add(address, i64(8 * len(INTERLEAVE_ARGUMENTS)))
    lanes = interleaved_lanes(isa, size)
    vector = ir.VectorType(ir.IntType(8 * size), lanes)
    with rows_of_block(f, w, axes, ("source", "destination"), first, last) as places:
        source, destination = (
            element_at(f, w[end], place, size)
            for end, place in zip(INTERLEAVE_ARGUMENTS[:2], places, strict=True)
        )

        def put(at: Any) -> None:
            begins = (f.add(at, f.mul(w["source_part"], i64(part))) for part in range(parts))
            read = [
                f.load(element_at(f, source, begin, size), align=size, typ=vector)
                for begin in begins
            ]
            begin = f.mul(at, i64(parts))
            for n, x in enumerate(interleaved(f, read)):
                place = element_at(f, destination, f.add(begin, i64(n * lanes)), size)
                f.store(x, place, align=size)

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
        kind = ir.VectorType(I32, lanes)
        chosen = [ir.Constant(kind, places[:lanes]), ir.Constant(kind, places[lanes:])]
        pairs = zip(*halves, strict=True)
        return [f.shuffle_vector(x, y, half) for x, y in pairs for half in chosen]
    return [_gathered(f, parts, first) for first in range(0, number * lanes, lanes)]


def _gathered(f: Builder, parts: Sequence[Any], first: int) -> Any:
    """The vector of the lanes from number ``first`` on, one part after the other."""
    number, lanes = len(parts), parts[0].type.count
    numbers = range(first, first + lanes)
    found: Any = ir.Constant(parts[0].type, ir.Undefined)
    for part, x in enumerate(parts):
        places = [
            lanes + at // number if at % number == part else lane for lane, at in enumerate(numbers)
        ]
        found = f.shuffle_vector(found, x, ir.Constant(ir.VectorType(I32, lanes), places))
    return found
