"""Sorting networks of integer keys in vector registers, as LLVM IR.

    keys as a matrix of rows (registers) x lanes, in columns: key number  lane · rows + row
    sort each column by exchanges of registers          # Batcher's odd-even merge sort
    for width in 1, 2, 4, ... lanes / 2:                # columns that are sorted together
        exchange each sorted run with the next, which is read backwards     # across lanes
        for distance in width / 2, ..., 1 lanes: exchange                   # bitonic merge
        for distance in rows / 2, ..., 1 rows: exchange
    rows of the matrix become columns                   # riffles of registers

A key of one lane is compared with the same lane of another register wherever possible: an exchange
across registers takes 2 instructions for 2 registers, one across lanes 3 for each. Fewer keys than
a matrix has are filled up with the greatest. Equal keys cannot be told apart, so that the order has
one form only. The text is the same for all vector levels; LLVM splits the registers.

Source: K. E. Batcher, Sorting networks and their applications, 1968.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I32, I64, POINTER, VOID, Builder, i32, i64

MOST_ROWS = 16


def block_size(bits: int, vector_bits: int) -> int:
    """The most keys of ``bits`` bits that `sort_block` sorts in vectors of ``vector_bits``."""
    return MOST_ROWS * vector_bits // bits


def sort_block(module: Any, key: Any, vector_bits: int) -> Any:
    """The LLVM function ``void sort_block(ptr keys, i64 count)``: up to `block_size` signed keys in
    ascending order. It is written at the first request, and reads and writes no other element."""
    symbol = f"sort_block{vector_bits}.{key}"
    if (found := module.globals.get(symbol)) is not None:
        return found
    networks = [
        (rows, _network(module, key, rows, vector_bits)) for rows in (1, 2, 4, 8, MOST_ROWS)
    ]
    made = ir.Function(module, ir.FunctionType(VOID, [POINTER, I64]), symbol)
    made.linkage = "linkonce_odr"
    f = Builder(made.append_basic_block("entry"))
    keys, count = made.args
    for rows, network in networks:
        fits = f.icmp_signed("<=", count, i64(rows * vector_bits // key.width))
        with f.if_then(fits if rows < MOST_ROWS else ir.Constant(I1, 1)):
            f.call(network, [keys, count])
            f.ret_void()
    f.unreachable()
    return made


def lane_mask(f: Builder, count: Any, vector: Any, first: int = 0) -> Any:
    """The mask of the lanes of a ``vector`` of keys before ``count``, an i64 of at most 31 bits;
    its lanes are counted from ``first``."""
    lanes, key = vector.count, vector.element
    places = ir.Constant(vector, [*range(first, first + lanes)])
    return f.icmp_signed("<", places, f.splat(f.trunc(count, key) if key != I64 else count, lanes))


def _network(module: Any, key: Any, rows: int, vector_bits: int) -> Any:
    """The function ``void sort(ptr keys, i64 count)`` of up to ``rows`` vectors, more than half of
    them."""
    made = ir.Function(
        module, ir.FunctionType(VOID, [POINTER, I64]), f"sort{vector_bits}_rows{rows}.{key}"
    )
    made.linkage = "linkonce_odr"
    made.attributes.add("noinline")
    f = Builder(made.append_basic_block("entry"))
    keys, count = made.args
    lanes, align, whole = vector_bits // key.width, key.width // 8, rows // 2
    vector = ir.VectorType(key, lanes)
    greatest = ir.Constant(vector, [2 ** (key.width - 1) - 1] * lanes)
    masks = [lane_mask(f, count, vector, row * lanes) for row in range(whole, rows)]
    places = [f.at(keys, i64(row * lanes), key) for row in range(rows)]
    shape = [POINTER, I32, masks[0].type, vector]
    load = f.intrinsic(f"masked.load.v{lanes}{key}.p0", vector, *shape)
    registers = [f.load(place, align=align, typ=vector) for place in places[:whole]]
    registers += [
        f.call(load, [place, i32(align), mask, greatest])
        for place, mask in zip(places[whole:], masks, strict=True)
    ]
    registers = _riffled(f, _sorted(f, registers))
    for register, place in zip(registers[:whole], places[:whole], strict=True):
        f.store(register, place, align=align)
    if vector_bits == 512 or rows == 1:
        shape = [vector, POINTER, I32, masks[0].type]
        store = f.intrinsic(f"masked.store.v{lanes}{key}.p0", VOID, *shape)
        for register, place, mask in zip(registers[whole:], places[whole:], masks, strict=True):
            f.call(store, [register, place, i32(align), mask])
    else:
        _store_last(f, registers, whole, keys, count)
    f.ret_void()
    return made


def _store_last(f: Builder, registers: Sequence[Any], whole: int, keys: Any, count: Any) -> None:
    """Store the ``registers`` from number ``whole`` on up to key ``count``, by way of the stack:
    masked stores of 256 bits take more than ten cycles each on some CPUs. The last vector overlaps
    the one before it."""
    vector = registers[0].type
    key, lanes = vector.element, vector.count
    align, begin = key.width // 8, i64((whole - 1) * lanes)
    held = f.alloca(vector, len(registers) - whole + 1)
    held.align = vector.count * align
    for row, register in enumerate(registers[whole - 1 :]):
        f.store(register, f.at(held, i64(row), vector), align=vector.count * align)

    def copy(first: Any) -> None:
        x = f.load(f.at(held, f.sub(first, begin), key), align=align, typ=vector)
        f.store(x, f.at(keys, first, key), align=align)

    last = f.sub(count, i64(lanes))
    with f.loop(i64(whole * lanes), last, i64(lanes)) as loop:
        copy(loop.index)
    copy(last)


def _sorted(f: Builder, registers: Sequence[Any]) -> list[Any]:
    """The matrix with its keys in order, column by column."""
    found, rows = list(registers), len(registers)
    lanes = found[0].type.count
    for low, high in _odd_even_merge_sort(rows):
        found[low], found[high] = _exchanged(f, found[low], found[high])
    width = 1
    while width < lanes:
        backwards = 2 * width - 1
        found = [
            _across_lanes(f, found[row], found[rows - 1 - row], backwards, width)
            for row in range(rows)
        ]
        distance = width // 2
        while distance:
            found = [_across_lanes(f, x, x, distance, distance) for x in found]
            distance //= 2
        distance = rows // 2
        while distance:
            for low in (row for row in range(rows) if not row & distance):
                high = low + distance
                found[low], found[high] = _exchanged(f, found[low], found[high])
            distance //= 2
        width *= 2
    return found


def _odd_even_merge_sort(count: int) -> Iterator[tuple[int, int]]:
    """The exchanges that sort ``count`` elements, a power of two."""
    size = 1
    while size < count:
        step = size
        while step:
            for first in range(step % size, count - step, 2 * step):
                for low in range(first, min(first + step, count - step)):
                    if low // (2 * size) == (low + step) // (2 * size):
                        yield low, low + step
            step //= 2
        size *= 2


def _exchanged(f: Builder, x: Any, y: Any) -> tuple[Any, Any]:
    return _call(f, "smin", x, y), _call(f, "smax", x, y)


def _across_lanes(f: Builder, x: Any, y: Any, bits: int, bit: int) -> Any:
    """``x`` with each lane exchanged with the lane of ``y`` whose number differs in ``bits``: the
    lesser one remains in lanes without ``bit``."""
    lanes = x.type.count
    places = ir.Constant(ir.VectorType(I32, lanes), [lane ^ bits for lane in range(lanes)])
    moved = f.shuffle_vector(y, ir.Constant(y.type, ir.Undefined), places)
    least, most = _exchanged(f, x, moved)
    upper = ir.Constant(ir.VectorType(I1, lanes), [int(bool(lane & bit)) for lane in range(lanes)])
    return f.select(upper, most, least)


def _call(f: Builder, name: str, x: Any, y: Any) -> Any:
    kind = x.type
    function = f.intrinsic(f"{name}.v{kind.count}{kind.element}", kind, kind, kind)
    return f.call(function, [x, y])


def _riffled(f: Builder, registers: Sequence[Any]) -> list[Any]:
    """The matrix whose columns stood one after the other becomes one whose rows do. A riffle, which
    takes elements of the first and the second half in turn, rotates the bits of each one's
    number by one."""
    found, rows = list(registers), len(registers)
    lanes = found[0].type.count
    kind = ir.VectorType(I32, lanes)
    halves = [
        ir.Constant(kind, [at // 2 + lanes * (at % 2) for at in range(first, first + lanes)])
        for first in (0, lanes)
    ]
    size = 1
    while size < rows:
        pairs = zip(found[: rows // 2], found[rows // 2 :], strict=True)
        found = [f.shuffle_vector(x, y, half) for x, y in pairs for half in halves]
        size *= 2
    return found
