"""Whole contiguous arrays copied or filled, in pieces that threads share."""

from __future__ import annotations

from typing import cast

import numpy as np

from gptrs.backends.faer.calls.base import Address, Binder, Word, kernel
from gptrs.ir.dims import product
from gptrs.ir.program import Value
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.rowwise.block_copy import ElementBytes, copy_kernel, fill_kernel

_PIECE = 1 << 15  # bytes that a thread takes at a time
_BYTE_NS = 0.1


def compile_whole(isa: Isa, value: Value, *, filled: bool = False) -> None:
    """Compile the kernel that copies or fills arrays such as ``value``."""
    kernel(fill_kernel if filled else copy_kernel, isa, _bytes(value))


def copy_whole(b: Binder, source: Value, target: Value) -> None:
    """Add the steps that copy an array."""
    for begin, rows, count in _pieces(b, target):
        ends = (_moved(b.address(v), begin) for v in (source, target))
        words = [*ends, count, 1, 1, rows, count, count, 0]
        time = rows * count * _BYTE_NS * _bytes(target)
        b.step(kernel(copy_kernel, b.isa, _bytes(target)), words, rows, time)


def fill_whole(b: Binder, element: bytes, target: Value) -> None:
    """Add the steps that fill an array with an element of these bytes."""
    pattern = np.frombuffer(element * (16 // len(element)), np.int64).tolist()
    for begin, rows, count in _pieces(b, target):
        words: list[Word] = [_moved(b.address(target), begin), *pattern, count, rows, count, 0]
        time = rows * count * _BYTE_NS * _bytes(target)
        b.step(kernel(fill_kernel, b.isa, _bytes(target)), words, rows, time)


def _bytes(value: Value) -> ElementBytes:
    return cast("ElementBytes", value.type.dtype.numpy.itemsize)


def _pieces(b: Binder, value: Value) -> list[tuple[int, int, int]]:
    """Blocks of contiguous rows: the offset in bytes, the number of rows, and elements of a row."""
    size, piece = b.size(product(value.type.shape)), _PIECE // _bytes(value)
    rows, rest = divmod(size, piece)
    found = [(0, rows, piece), (rows * piece * _bytes(value), 1, rest)]
    return [block for block in found if block[1] and block[2]]


def _moved(address: Address, begin: int) -> Address:
    return Address(address.slot, address.offset + begin)
