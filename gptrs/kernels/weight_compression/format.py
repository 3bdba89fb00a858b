"""Storage format of losslessly compressed weights: exponent coding per panel block.

The first byte of a weight, its sign and most of its exponent, is nearly always one of a few values,
as the weights of a matrix span few powers of two. So a *compressed* weight has four bits for it, an
index into a table of sixteen bytes, and its other bytes unchanged: 28 bits for an f32, 12 for a
bf16. The *exceptions*, some in ten thousand, are listed with their places. A product of few rows
takes as long as its weights take to come from memory; decoding costs a few instructions a vector.
(f16 has fraction bits in its first byte, where no value is rare.)

A *container* holds a weight's panels (`gptrs.kernels.gemm.packing`), compressed, or plain where
there would be too many exceptions. In bytes:

    0       int64: 1 if compressed, else 0
    8       int64: offset of the panels
    16      the table
    64      compressed: an int64 for each panel, the offset of its list of exceptions
    ...     the panels, [⌈N/w⌉, K / block_rows] blocks if compressed
    ...     compressed: lists of exceptions by panel, in the order of places: the place in the panel
            (row · w + column) as an integer of 32 bits, and the value as f32; the place `END` ends
            a list

A block is `block_rows` rows of a panel, V weights for vector registers of V bytes:

    | codes: V/2 bytes | second bytes: V bytes | last halves: 2V bytes (f32 only) |

The codes of the first half of the weights are in the low four bits. The slots are ordered so that
registers which are interleaved 16 bytes by 16 bytes, as instructions do it, give columns in order.
Besides sizes and slots, the module has the decoding of a block, the exceptions, and
`decompress_function`, which decompresses rows of a panel to memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F32, I8, I16, I32, I64, POINTER, Function, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import half_of_pair, pairs_of
from gptrs.kernels.gemm.packing import panel_count
from gptrs.kernels.gemm.weight_elements import WeightType, read_weights, weight_bytes

COMPRESSIBLE: tuple[WeightType, ...] = ("f32", "bf16")
"""The types of weights that can be compressed."""
DEPTH_STEP = 2
"""Depths are multiples of it: all levels have blocks of so many rows, or of one."""
TABLE, END = 16, 2**32 - 1
HEADER_BYTES, ENTRY_BYTES = 64, 8
_LANE = 16  # bytes that registers are interleaved in


def register_bytes(isa: Isa) -> int:
    """V: bytes of a vector register."""
    return isa.vector_bits // 8


def block_rows(isa: Isa) -> int:
    """Rows of a panel in a block."""
    return register_bytes(isa) // isa.tile_columns


def block_bytes(isa: Isa, weights: WeightType) -> int:
    """The size of a block."""
    return register_bytes(isa) * (2 * weight_bytes(weights) - 1) // 2


class Layout(NamedTuple):
    """Offsets of the parts of a compressed container, in bytes."""

    panels: int
    lists: int

    @classmethod
    def of(cls, isa: Isa, weights: WeightType, depth: int, columns: int) -> Layout:
        """For a weight whose depth is a multiple of `DEPTH_STEP`."""
        count = panel_count(isa, columns)
        panels = HEADER_BYTES + -(-8 * count // HEADER_BYTES) * HEADER_BYTES
        blocks = count * (depth // block_rows(isa))
        return cls(panels, panels + blocks * block_bytes(isa, weights))


def interleaved(count: int, unit: int, high: bool) -> list[int]:
    """The elements of two vectors of ``count`` that come of interleaving their low or high halves,
    16 bytes by 16 bytes, in units of so many bytes; those of the second count on."""
    per_lane = _LANE // unit
    first = per_lane // 2 if high else 0
    return [
        element
        for lane in range(0, count, per_lane)
        for i in range(lane + first, lane + first + per_lane // 2)
        for element in (i, count + i)
    ]


def slots(isa: Isa, weights: WeightType) -> tuple[list[int], list[int]]:
    """The weight of a block that each slot holds: byte slots, and slots of last halves.

    Read off `decode_block`, for weights that are numbered row by row.
    """
    size, lanes = register_bytes(isa), isa.lanes
    of_bytes, of_halves = [0] * size, [0] * size
    for k, word in product((0, 1), range(size // 2)):
        if weights == "f32":  # 16-bit words in groups of eight, the upper four in the next vector
            vector, lane = 2 * k + word % 8 // 4, word // 8 * 4 + word % 4
        else:  # even 16-bit words, and odd ones
            vector, lane = 2 * k + word % 2, word // 2
        byte = interleaved(size, 1, bool(k))[2 * word]
        of_bytes[byte] = of_halves[k * size // 2 + word] = vector * lanes + lane
    return of_bytes, of_halves


def shuffle(f: Function, vectors: tuple[Any, Any], places: Sequence[int]) -> Any:
    """The elements at ``places`` of two vectors that follow one another."""
    return f.shuffle_vector(*vectors, ir.Constant(ir.VectorType(I32, len(places)), list(places)))


def decode_block(f: Function, weights: WeightType, table: Any, block: Any) -> list[Any]:
    """The weights of a block as vectors of f32, row by row."""
    result: list[Any] = []
    for _ in decode_steps(f, weights, table, block, result):
        pass
    return result


def decode_steps(
    f: Function, weights: WeightType, table: Any, block: Any, result: list[Any]
) -> Iterator[None]:
    """`decode_block` to ``result``, an instruction or two at a time, to interleave with others."""
    size = register_bytes(f.isa)
    bytes_, words, wide = (ir.VectorType(k, 8 * size // k.width) for k in (I8, I16, I32))
    half = f.read(block, ir.VectorType(I8, size // 2))
    twice = f.bitcast(shuffle(f, (half, half), range(size)), wide)
    count = wide.count // 2
    codes = f.bitcast(f.lshr(twice, ir.Constant(wide, [0] * count + [4] * count)), bytes_)
    codes = f.and_(codes, like(codes, TABLE - 1))
    yield
    look_up = f.intrinsic(f.isa.lookup, bytes_, bytes_, bytes_)
    heads = f.call(look_up, [table, codes])
    seconds = f.read(f.at(block, i64(size // 2), I8), bytes_)
    for k in (0, 1):
        yield
        upper = shuffle(f, (seconds, heads), interleaved(size, 1, bool(k)))
        if weights == "bf16":
            pair = f.bitcast(upper, wide)
            found = f.shl(pair, like(pair, 16)), f.and_(pair, like(pair, 0xFFFF0000))
        else:
            lower = f.read(f.at(block, i64(size * (3 + 2 * k) // 2), I8), words)
            pair = lower, f.bitcast(upper, words)
            found = (shuffle(f, pair, interleaved(size // 2, 2, high)) for high in (False, True))
        for vector in found:
            yield
            result.append(f.bitcast(vector, f.vector))


class Container:
    """A container in memory: addresses of its parts, as IR values."""

    def __init__(self, f: Function, weights: WeightType, start: Any) -> None:
        self._f, self._start = f, start
        self._weights: WeightType = weights
        self.compressed = f.icmp_signed("!=", f.word(start), i64(0))
        self.panels = f.at(start, f.word(f.at(start, i64(1), I64)), I8)
        self.row_bytes = i64(block_bytes(f.isa, weights) // block_rows(f.isa))
        """Of a panel that is compressed."""

    def table(self) -> Any:
        """The table, once in each 16 bytes of a register."""
        kind = ir.VectorType(I8, TABLE)
        once = self._f.read(self._f.at(self._start, i64(TABLE), I8), kind)
        places = [i % TABLE for i in range(register_bytes(self._f.isa))]
        return shuffle(self._f, (once, ir.Constant(kind, ir.Undefined)), places)

    def block(self, panel: Any, depth: Any, row: Any) -> Any:
        """The block of a panel that begins with ``row``."""
        f = self._f
        return self.after(self.panels, f.add(f.mul(panel, depth), row))

    def after(self, block: Any, rows: Any) -> Any:
        """The block so many rows after another one."""
        f = self._f
        number = f.udiv(rows, i64(block_rows(f.isa)))
        return f.at(block, f.mul(number, i64(block_bytes(f.isa, self._weights))), I8)

    def exceptions(self, panel: Any) -> Any:
        """The list of a panel."""
        f = self._f
        word = f.at(f.at(self._start, i64(HEADER_BYTES), I8), panel, I64)
        return f.at(self._start, f.word(word), I8)


def place_of(f: Function, entry: Any) -> Any:
    """The place of the exception at ``entry``, as i64; `END` is behind all places."""
    return f.zext(f.read(entry, I32), I64)


def apply_exceptions(
    f: Function, entry: Any, target: Any, first: Any, last: Any, *, pairs: bool = False
) -> tuple[Any, Any]:
    """Write the exceptions from ``entry`` on whose places are before ``last`` to ``target``, where
    the weight at place ``first``, which begins a row, is the first (of ``pairs`` of rows). Gives
    the entry that follows, and its place."""
    before, place = f.block, place_of(f, entry)
    head, body, end = (f.append_basic_block(name) for name in ("list", "exception", "listed"))
    f.branch(head)
    f.position_at_end(head)
    here, at = f.phi(POINTER), f.phi(I64)
    here.add_incoming(entry, before)
    at.add_incoming(place, before)
    f.cbranch(f.icmp_unsigned("<", at, last), body, end)
    f.position_at_end(body)
    value, number = f.at(here, i64(1)), f.sub(at, first)
    if pairs:
        high = f.at(value, i64(1), I16)
        f.write(f.read(high, I16), f.at(target, half_of_pair(f, number), I16))
    else:
        f.write(f.read(value, F32), f.at(target, number))
    following = f.at(here, i64(ENTRY_BYTES), I8)
    here.add_incoming(following, body)
    at.add_incoming(place_of(f, following), body)
    f.branch(head)
    f.position_at_end(end)
    return here, at


def skip_exceptions(f: Function, entry: Any, first: Any) -> Any:
    """The first exception from ``entry`` on whose place is not before ``first``."""
    before = f.block
    head, body, end = (f.append_basic_block(name) for name in ("skip", "skipping", "skipped"))
    f.branch(head)
    f.position_at_end(head)
    here = f.phi(POINTER)
    here.add_incoming(entry, before)
    f.cbranch(f.icmp_unsigned("<", place_of(f, here), first), body, end)
    f.position_at_end(body)
    here.add_incoming(f.at(here, i64(ENTRY_BYTES), I8), body)
    f.branch(head)
    f.position_at_end(end)
    return here


def decompress_function(module: Any, isa: Isa, weights: WeightType, *, pairs: bool = False) -> Any:
    """unpack(container, depth, panel, row, rows, target): rows of a panel as f32, or those of bf16
    as ``pairs`` of rows (`gptrs.kernels.gemm.bf16_pairs`).

    ``row`` and ``rows`` are multiples of `DEPTH_STEP`; ``depth`` is the weight's.
    """
    f = Function.part(module, isa, "unpack", POINTER, I64, I64, I64, I64, POINTER)
    start, depth, panel, row, rows, target = f.arguments
    container, width = Container(f, weights, start), i64(isa.tile_columns)
    if isa.lookup:
        with f.if_then(container.compressed):
            table, end = container.table(), f.add(row, rows)
            with f.loop(row, end, i64(block_rows(isa))) as k:
                block = container.block(panel, depth, k.index)
                vectors = decode_block(f, weights, table, block)
                _put_rows(f, vectors, target, f.sub(k.index, row), pairs=pairs)
            first, last = f.mul(row, width), f.mul(end, width)
            entry = skip_exceptions(f, container.exceptions(panel), first)
            apply_exceptions(f, entry, target, first, last, pairs=pairs)
            f.ret_void()
    begin = f.mul(f.add(f.mul(panel, depth), row), width)
    copy_rows(f, weights, container.panels, begin, rows, target, pairs=pairs)
    f.ret_void()
    return f.made


def copy_rows(
    f: Function,
    weights: WeightType,
    panels: Any,
    begin: Any,
    rows: Any,
    target: Any,
    *,
    pairs: bool = False,
) -> None:
    """Copy ``rows`` of a panel that is not compressed, from its element ``begin`` on, as
    `decompress_function` does it."""
    columns, lanes, step = f.isa.tile_columns, f.isa.lanes, DEPTH_STEP if pairs else 1
    with f.loop(i64(0), rows, i64(step)) as k:
        at = f.add(begin, f.mul(k.index, i64(columns)))
        places = [f.add(at, i64(i)) for i in range(0, step * columns, lanes)]
        vectors = [read_weights(f, weights, panels, place) for place in places]
        _put_rows(f, vectors, target, k.index, pairs=pairs)


def _put_rows(f: Function, vectors: list[Any], target: Any, row: Any, *, pairs: bool) -> None:
    """Write the vectors of rows from ``row`` on; two rows as one of ``pairs``."""
    if pairs:
        half = len(vectors) // 2
        vectors = [pairs_of(f, *both) for both in zip(vectors[:half], vectors[half:], strict=True)]
        row = f.lshr(row, i64(1))
    start = f.mul(row, i64(f.isa.tile_columns))
    for i, vector in enumerate(vectors):
        f.write(vector, f.at(target, f.add(start, i64(i * f.isa.lanes)), vector.type.element))
