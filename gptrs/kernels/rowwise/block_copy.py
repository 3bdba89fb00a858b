"""Strided block copy and fill: a memcpy or memset of each row of an n-dimensional block.

    for outer in axes[0], axes[1], ...      # any number of axes: their indices by division
        for row in rows                     # by adding strides
            for k in count                  # a run of vectors where elements are contiguous

    argument block:  | pointers, sizes | axes · (extent, source stride, destination stride) |

Source and destination have strides of their own, so that a block is taken from a view and put into
a part of a larger array (concat, pad, tile), which may be known at run time (dynamic slices).
Elements are moved as bits, 1 to 16 bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa

ElementBytes: TypeAlias = Literal[1, 2, 4, 8, 16]
ELEMENT_BYTES: tuple[ElementBytes, ...] = get_args(ElementBytes)
BITS = {1: "uint8s", 2: "uint16s", 4: "uint32s", 8: "words", 16: "complex128s"}
"""The pointer type of a kernel's source for elements of so many bytes that are moved as bits."""

COPY_ARGUMENTS = (
    *("source", "destination", "count", "source_step", "destination_step"),
    *("rows", "source_row", "destination_row", "long", "axes"),
)
"""The argument block of `copy_kernel`, in order; then ``axes`` triples (extent, stride in the
source, stride in the destination) of the axes around ``rows``, the outermost first.

A row has ``count`` elements at distances of ``source_step`` and ``destination_step``; ``rows`` of
them, at least 1, follow each other at ``source_row`` and ``destination_row``. All distances count
elements. Source and destination do not overlap. Runs of ``long`` elements and more are written past
the caches, without reading their lines first.
"""
NEVER = 2**62
"""``long`` where no run is."""

COPY_AT_ARGUMENTS = (*COPY_ARGUMENTS, "starts")
START_WORDS = ("address", "bytes", "unused", "signed", "limit", "source", "destination")
"""The argument block of `copy_at_kernel`: that of `copy_kernel`, and behind ``axes`` the number of
``starts``; then the axes, then so many times `START_WORDS`.

A start is an integer of ``bytes`` bytes at ``address``, whose highest ``unused`` of 64 bits are not
its own. It is moved to lie from 0 to ``limit``, and moves the block by so many times ``source`` and
``destination`` elements.
"""

FILL_ARGUMENTS = ("destination", "low", "high", "count", "rows", "destination_row", "axes")
"""The argument block of `fill_kernel`, in order; then ``axes`` pairs (extent, stride).

``low`` and ``high`` are the bits of 16 bytes of equal elements; those of a row are contiguous. The
rest is as in `COPY_ARGUMENTS`.
"""


def copy_kernel(isa: Isa, size: ElementBytes) -> KernelText:
    """destination[i] = source[i] for each index i of a block, of elements of ``size`` bytes.

    Arguments: `COPY_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    module = ir.Module(f"copy{size} {isa.name}")
    f = Function.kernel(module, isa, f"copy{size}")
    address, first, last = f.arguments
    w = f.argument_block(address, COPY_ARGUMENTS[:2], COPY_ARGUMENTS[2:])
    _copy_rows(f, size, w, f.add(address, i64(8 * len(COPY_ARGUMENTS))), first, last)
    f.ret_void()
    return KernelText(str(module), f"copy{size}")


def copy_at_kernel(isa: Isa, size: ElementBytes) -> KernelText:
    """`copy_kernel` from or to a place that integers in memory give.

    Arguments: `COPY_AT_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    module = ir.Module(f"copy_at{size} {isa.name}")
    f = Function.kernel(module, isa, f"copy_at{size}")
    address, first, last = f.arguments
    w = f.argument_block(address, COPY_AT_ARGUMENTS[:2], COPY_AT_ARGUMENTS[2:])
    axes = f.add(address, i64(8 * len(COPY_AT_ARGUMENTS)))
    starts = f.inttoptr(f.add(axes, f.mul(w["axes"], i64(8 * 3))), POINTER)
    with f.loop(i64(0), w["starts"], carried=[i64(0), i64(0)]) as loop:
        at = f.mul(loop.index, i64(len(START_WORDS)))
        words = (f.word(f.at(starts, f.add(at, i64(n)), I64)) for n in range(len(START_WORDS)))
        *integer, limit, source, destination = words
        start = f.positive(f.least(_integer(f, *integer), limit))
        moved = zip(loop.values, (source, destination), strict=True)
        loop.values = [f.add(place, f.mul(start, step)) for place, step in moved]
    for name, place in zip(COPY_AT_ARGUMENTS[:2], loop.values, strict=True):
        w[name] = element_at(f, w[name], place, size)
    _copy_rows(f, size, w, axes, first, last)
    f.ret_void()
    return KernelText(str(module), f"copy_at{size}")


def _integer(f: Function, address: Any, size: Any, unused: Any, signed: Any) -> Any:
    """The integer of ``size`` bytes at ``address``, 2⁶³ − 1 if it is greater."""
    place = f.inttoptr(address, POINTER)
    with f.loop(i64(0), size, carried=[i64(0)]) as k:  # the lowest byte first
        byte = f.zext(f.load(f.at(place, k.index, I8), align=1, typ=I8), I64)
        k.values = [f.or_(k.values[0], f.shl(byte, f.mul(k.index, i64(8))))]
    bits = f.shl(k.values[0], unused)
    positive = f.lshr(bits, unused)
    positive = f.select(f.icmp_signed("<", positive, i64(0)), i64(2**63 - 1), positive)
    return f.select(f.icmp_signed("!=", signed, i64(0)), f.ashr(bits, unused), positive)


def _copy_rows(
    f: Function, size: ElementBytes, w: dict[str, Any], axes: Any, first: Any, last: Any
) -> None:
    """Copy the rows from ``first`` to ``last``."""
    one = i64(1)
    steps = [f.icmp_signed("==", w[f"{name}_step"], one) for name in ("source", "destination")]
    contiguous = f.and_(steps[0], steps[1])
    with rows_of_block(f, w, axes, ("source", "destination"), first, last) as (source, destination):
        source = element_at(f, w["source"], source, size)
        destination = element_at(f, w["destination"], destination, size)
        with f.if_else(contiguous, likely=True) as (run, scattered):
            with run:
                copy_run(f, size, source, destination, w["count"], w["long"])
            with scattered, f.loop(i64(0), w["count"]) as k:
                at = f.mul(k.index, w["source_step"]), f.mul(k.index, w["destination_step"])
                move(f, size, 1, source, destination, *at)
    end_of_runs(f, w["long"])


def fill_kernel(isa: Isa, size: ElementBytes) -> KernelText:
    """destination[i] = the element in the argument block, for each index i of a block.

    Arguments: `FILL_ARGUMENTS`; extent: the product of the axes and ``rows``.
    """
    module = ir.Module(f"fill{size} {isa.name}")
    f = Function.kernel(module, isa, f"fill{size}")
    address, first, last = f.arguments
    w = f.argument_block(address, FILL_ARGUMENTS[:1], FILL_ARGUMENTS[1:])
    lanes = isa.vector_bits // 64
    pattern: Any = ir.Constant(ir.VectorType(I64, lanes), ir.Undefined)
    for lane in range(lanes):
        pattern = f.insert_element(pattern, w["high" if lane % 2 else "low"], i64(lane))
    axes = f.add(address, i64(8 * len(FILL_ARGUMENTS)))
    with rows_of_block(f, w, axes, ("destination",), first, last) as (destination,):
        destination = element_at(f, w["destination"], destination, size)

        def put(lanes: int, at: Any) -> None:
            _store(f, size, _part(f, pattern, size * lanes), element_at(f, destination, at, size))

        _run(f, size, destination, w["count"], put)
    f.ret_void()
    return KernelText(str(module), f"fill{size}")


def copy_run(
    f: Function, size: ElementBytes, source: Any, destination: Any, count: Any, long: Any
) -> None:
    """Copy ``count`` contiguous elements of ``size`` bytes, past the caches from ``long`` on; then
    `end_of_runs` has to follow, before the kernel ends. Complex numbers may lie at half their size:
    no vector of such a run is aligned, and none goes past the caches."""

    def put(lanes: int, at: Any) -> None:
        move(f, size, lanes, source, destination, at, at)

    def stream(lanes: int, at: Any) -> None:
        move(f, size, lanes, source, destination, at, at, streamed=True)

    apart = f.urem(f.ptrtoint(destination, I64), i64(size))
    near = f.or_(f.icmp_signed("<", count, long), f.icmp_signed("!=", apart, i64(0)))
    with f.if_else(near, likely=True) as (few, many):
        with few:
            _run(f, size, destination, count, put)
        with many:
            _run(f, size, destination, count, put, stream)


def end_of_runs(f: Function, long: Any) -> None:
    """What was written past the caches comes before all that this thread writes from now on."""
    with f.if_then(f.icmp_signed("<", long, i64(NEVER)), likely=False):
        f.fence("seq_cst")


def _run(
    f: Function, size: ElementBytes, destination: Any, count: Any, put: Any, aligned: Any = None
) -> None:
    """``put(lanes, at)`` until all of ``count`` elements are put: in vectors that are ``aligned``,
    but for the first one and the last one, which ends where the row does; or, of fewer elements, in
    two halves that may overlap. A store that crosses a cache line takes twice as long."""
    aligned = aligned or put
    lanes = f.isa.vector_bits // (8 * size)

    def halves(lanes: int) -> None:
        with f.if_else(f.icmp_signed(">=", count, i64(lanes))) as (fits, shorter):
            with fits:
                put(lanes, i64(0))
                put(lanes, f.sub(count, i64(lanes)))
            with shorter:
                if lanes > 1:
                    halves(lanes // 2)

    with f.if_else(f.icmp_signed(">=", count, i64(lanes))) as (vectors, rest):
        with vectors:
            end = f.sub(count, i64(lanes))
            put(lanes, i64(0))
            before = f.udiv(f.ptrtoint(destination, I64), i64(size))
            start = f.sub(i64(lanes), f.urem(before, i64(lanes)))
            with f.loop(start, end, i64(lanes)) as k:
                aligned(lanes, k.index)
            put(lanes, end)
        with rest:
            if lanes > 1:
                halves(lanes // 2)


@contextmanager
def rows_of_block(
    f: Function, w: dict[str, Any], axes: Any, names: Sequence[str], first: Any, last: Any
) -> Generator[Sequence[Any]]:
    """A loop over the rows from ``first`` to ``last``: where each begins in the arrays of these
    names. ``axes`` is the address of the axes around them."""
    block = f.inttoptr(axes, POINTER)
    rows = w["rows"]
    with f.loop(f.udiv(first, rows), f.ceiling(last, rows)) as outer:
        before = f.mul(outer.index, rows)
        begin = f.positive(f.sub(first, before))
        end = f.least(f.sub(last, before), rows)
        carried = [outer.index, *(i64(0) for _ in names)]
        with f.loop(i64(0), w["axes"], carried=carried) as back:  # from the innermost to the first
            axis = f.sub(f.sub(w["axes"], i64(1)), back.index)
            at = f.mul(axis, i64(1 + len(names)))
            extent, *strides = (
                f.word(f.at(block, f.add(at, i64(word)), I64)) for word in range(1 + len(names))
            )
            rest, *places = back.values
            index = f.urem(rest, extent)
            moved = (
                f.add(place, f.mul(index, stride))
                for place, stride in zip(places, strides, strict=True)
            )
            back.values = [f.udiv(rest, extent), *moved]
        _, *places = back.values
        starts = [
            f.add(place, f.mul(begin, w[f"{name}_row"]))
            for place, name in zip(places, names, strict=True)
        ]
        with f.loop(begin, end, carried=starts) as row:
            yield row.values
            row.values = [
                f.add(place, w[f"{name}_row"])
                for place, name in zip(row.values, names, strict=True)
            ]


def element_at(f: Function, pointer: Any, index: Any, size: ElementBytes) -> Any:
    """The address of an element."""
    return f.at(pointer, f.mul(index, i64(size)), I8)


def _type(size: int) -> Any:
    """An integer, or a vector of them, of ``size`` bytes."""
    return ir.IntType(8 * size) if size <= 8 else ir.VectorType(I64, size // 8)


def move(
    f: Function,
    size: ElementBytes,
    lanes: int,
    source: Any,
    destination: Any,
    source_at: Any,
    destination_at: Any,
    *,
    streamed: bool = False,
) -> None:
    """Copy so many contiguous elements, from and to these places; ``streamed`` past the caches, a
    vector to where it is aligned."""
    place = element_at(f, source, source_at, size)
    value = f.load(place, align=min(size, 8), typ=_type(size * lanes))
    place = element_at(f, destination, destination_at, size)
    if streamed:
        f.stream(value, place, size * lanes)
    else:
        _store(f, size, value, place)


def _store(f: Function, size: ElementBytes, value: Any, place: Any) -> None:
    f.store(value, place, align=min(size, 8))


def _part(f: Function, pattern: Any, size: int) -> Any:
    """The first ``size`` bytes of a vector of i64."""
    words = max(size // 8, 1)
    if words == 1:
        first = f.extract_element(pattern, i64(0))
        return first if size == 8 else f.trunc(first, _type(size))
    if words == pattern.type.count:
        return pattern
    places = ir.Constant(ir.VectorType(ir.IntType(32), words), list(range(words)))
    return f.shuffle_vector(pattern, pattern, places)
