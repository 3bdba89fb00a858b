"""Steps that copy or fill strided blocks of arrays: concat, pad, tile, slices, and whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from gptrs.backends.faer.calls.axes import Axis, merged
from gptrs.backends.faer.calls.base import Address, Binder, Word, kernel
from gptrs.backends.machine import MACHINE
from gptrs.ir.dims import product
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import (
    NEVER,
    START_WORDS,
    ElementBytes,
    copy_at_kernel,
    copy_kernel,
    fill_kernel,
)

_PIECE = 2**15  # bytes of a long run that a thread takes at a time
_FEW = 64  # rows that are cut into pieces for several threads
_LONG = 8192  # bytes of a run that is written faster past the caches, if none holds the block
ROW_NS, _ELEMENT_NS = 2.0, 0.6  # of a run, and of an element that is apart from the next


def element_bytes(value: Value) -> ElementBytes:
    """The bytes of an element in memory."""
    return cast("ElementBytes", value.type.dtype.numpy.itemsize)


def compile_copies(isa: Isa, value: Value) -> None:
    """Compile the kernel that copies elements of ``value``."""
    kernel(copy_kernel, isa, element_bytes(value))


def compile_copies_at(isa: Isa, value: Value) -> None:
    """Compile the kernel that copies elements of ``value`` from or to a place known at run time."""
    kernel(copy_at_kernel, isa, element_bytes(value))


def compile_fills(isa: Isa, value: Value) -> None:
    """Compile the kernel that fills arrays such as ``value``."""
    kernel(fill_kernel, isa, element_bytes(value))


def copy_block(
    b: Binder,
    ends: tuple[Address, Address],
    axes: Sequence[Axis],
    size: ElementBytes,
    starts: Sequence[Word] | None = None,
) -> None:
    """Copy a block of elements of ``size`` bytes, from and to the addresses of its first one;
    ``starts`` (`START_WORDS`) move them at run time."""
    for rows, moved in _in_rows(b, axes, size):
        *outer, row, run = rows
        begin = [_moved(end, place * size) for end, place in zip(ends, moved, strict=True)]
        count = _count(rows[:-1])
        words: list[Word] = [*begin, *run, *row, long_run(count * run.extent, size), len(outer)]
        around = [n for axis in outer for n in axis]
        if starts is None:
            code, words = kernel(copy_kernel, b.isa, size), [*words, *around]
        else:
            number = len(starts) // len(START_WORDS)
            code, words = kernel(copy_at_kernel, b.isa, size), [*words, number, *around, *starts]
        apart = run.source != 1 or run.result != 1
        each = ROW_NS + (run.extent * _ELEMENT_NS if apart else 0)
        moved = size * run.extent * count
        b.step(code, words, count, count * each + MACHINE.traffic(moved, moved))


def long_run(count: int, size: int) -> int:
    """The elements from which on a run is written past the caches, of a block of ``count`` elements
    of ``size`` bytes: never where what is read and written, and read before it is written, is less
    than twice the last cache: whoever reads the copy next would miss it there."""
    return _LONG // size if 3 * count * size > 2 * MACHINE.l3_bytes else NEVER


def fill_block(b: Binder, element: bytes, end: Address, axes: Sequence[Axis]) -> None:
    """Fill a block, whose first element is at ``end``, with an element of these bytes."""
    size = cast("ElementBytes", len(element))
    pattern = np.frombuffer(element * (16 // size), np.int64).tolist()
    for rows, (_, place) in _in_rows(b, axes, size, filled=True):
        *outer, row, run = rows
        around = [n for axis in outer for n in (axis.extent, axis.result)]
        block = [run.extent, row.extent, row.result, len(outer), *around]
        count = _count(rows[:-1])
        time = count * ROW_NS + MACHINE.traffic(0, size * run.extent * count)
        words: list[Word] = [_moved(end, place * size), *pattern, *block]
        b.step(kernel(fill_kernel, b.isa, size), words, count, time)


def copy_whole(b: Binder, source: Value, target: Value) -> None:
    """Copy a contiguous array."""
    ends = b.address(source), b.address(target)
    copy_block(b, ends, [_whole(b, target)], element_bytes(target))


def fill_whole(b: Binder, element: bytes, target: Value) -> None:
    """Fill a contiguous array with an element of these bytes."""
    fill_block(b, element, b.address(target), [_whole(b, target)])


def _whole(b: Binder, value: Value) -> Axis:
    return Axis(b.size(product(value.type.shape)), 1, 1)


def _moved(address: Address, by: int) -> Address:
    return Address(address.slot, address.offset + by)


def _count(axes: Sequence[Axis]) -> int:
    return prod(axis.extent for axis in axes)


def _in_rows(
    b: Binder, axes: Sequence[Axis], size: int, *, filled: bool = False
) -> list[tuple[list[Axis], tuple[int, int]]]:
    """A block as blocks with as few axes as possible, at least rows and a run; and the offsets of
    each in source and result. Long runs are split, so that several threads get some. ``filled``
    runs have no gaps."""
    if not _count(axes):
        return []
    few = [Axis(*axis) for axis in merged(axes)]
    if not few or (filled and few[-1].result != 1):
        few.append(Axis(1, 1, 1))
    *outer, run = few
    piece = _PIECE // size
    if b.threads > 1 and _count(outer) < _FEW and run.extent > piece:
        pieces, rest = divmod(run.extent, piece)
        whole = Axis(pieces, piece * run.source, piece * run.result)
        done = pieces * piece
        found: list[Any] = [([*outer, whole, Axis(piece, *run[1:])], (0, 0))]
        if rest:
            begin = done * run.source, done * run.result
            found.append(([Axis(1, 0, 0), *outer, Axis(rest, *run[1:])], begin))
        return found
    return [([*outer, run] if outer else [Axis(1, 0, 0), run], (0, 0))]
