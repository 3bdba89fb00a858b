"""Planes that are put together of parts of several arrays: concat of columns, borders of images.

    for plane in range(first, last):                # extent
        for part in parts:
            for row in part.rows:
                whole[plane][part.place + row * part.row + k] = ...  for k in part.count

Memory is written in about the order in which it lies, where a copy of each array
(`gptrs.kernels.rowwise.block_copy`) would write a part of each line; and it is one step, not one
for each array. Elements are moved as bits.
"""

from __future__ import annotations

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import (
    ElementBytes,
    copy_run,
    element_at,
    end_of_runs,
    move,
)

PLANES_ARGUMENTS = ("whole", "plane", "long", "parts")
PART_WORDS = (
    *("source", "source_plane", "source_row", "source_step"),
    *("place", "row", "rows", "count"),
)
"""The argument block of `copy_planes_kernel`: `PLANES_ARGUMENTS`, then ``parts`` times these.

A plane of the whole has ``plane`` elements. A part is ``rows`` times ``count`` of them: rows follow
each other at a distance of ``row`` from ``place`` on, and are contiguous. ``source`` is the address
of a part's first element; its planes, rows and elements follow at distances of their own. Runs of
``long`` elements and more are written past the caches. Distances and places count elements.
"""


def copy_planes_kernel(isa: Isa, size: ElementBytes) -> KernelText:
    """Planes put together of parts, of elements of ``size`` bytes.

    Arguments: `PLANES_ARGUMENTS`; extent: planes. No part overlaps the whole.
    """
    module = ir.Module(f"copy_planes{size} {isa.name}")
    f = Function.kernel(module, isa, f"copy_planes{size}")
    address, first, last = f.arguments
    w = f.argument_block(address, PLANES_ARGUMENTS[:1], PLANES_ARGUMENTS[1:])
    parts = f.inttoptr(f.add(address, i64(8 * len(PLANES_ARGUMENTS))), POINTER)
    with f.loop(first, last) as plane:
        whole = f.mul(plane.index, w["plane"])
        with f.loop(i64(0), w["parts"]) as number:
            at = f.mul(number.index, i64(len(PART_WORDS)))
            part = {
                name: f.word(f.at(parts, f.add(at, i64(n)), I64))
                for n, name in enumerate(PART_WORDS)
            }
            source = f.inttoptr(part["source"], POINTER)
            begin = f.mul(plane.index, part["source_plane"])
            contiguous = f.icmp_signed("==", part["source_step"], i64(1))
            carried = [begin, f.add(whole, part["place"])]
            with f.loop(i64(0), part["rows"], carried=carried) as row:
                ends = (source, w["whole"])
                read, written = (
                    element_at(f, end, place, size)
                    for end, place in zip(ends, row.values, strict=True)
                )
                with f.if_else(contiguous, likely=True) as (run, scattered):
                    with run:
                        copy_run(f, size, read, written, part["count"], w["long"])
                    with scattered, f.loop(i64(0), part["count"]) as k:
                        taken = f.mul(k.index, part["source_step"])
                        move(f, size, 1, read, written, taken, k.index)
                apart = (part["source_row"], part["row"])
                row.values = [f.add(p, d) for p, d in zip(row.values, apart, strict=True)]
    end_of_runs(f, w["long"])
    f.ret_void()
    return KernelText(str(module), f"copy_planes{size}")
