"""Register tile of a product of arguments, for every element type: C[h, w] += A[h, k] · B[k, w].

    for matrix:                                 # several only where each has one tile
        prefetch the tile of C below            # into L1: the next one
        sums[h, w] = 0 or C                     # registers
        for k in block of the depth:
            prefetch                            # into L2: the tile's share of the next panel of B
            b[w] = B[k]                         # registers
            for row in h:
                sums[row] += splat(A[row, k]) · b
        C = sums

A has any strides; rows of B are contiguous. So operands are read where they lie, or packed:

    A as it lies: strides lda, 1 (or 1, lda)      packed tile [K, h]: strides 1, h
    B as it lies: rows ldb apart                  packed panel [K, w]: rows w apart

Whole tiles prefetch at the levels that say so (`Isa.prefetches_streams`).

Tiles at the edges of C read and write under a mask what is there. Rows beyond the last one are the
last one again: they compute and store the same numbers.

Complex numbers are pairs of real ones: a·b = re(a)·b + im(a)·ib, with ib = (−im b, re b) made from
b in registers. Signed bytes are multiplied by an instruction of unsigned and signed ones: A has 128
added when it is packed, and one row of the tile sums 128·b, which is subtracted at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I1, I8, I32, I64, POINTER, Function, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import element_of_pairs
from gptrs.kernels.gemm.number_types import NumberTypes, multiply_add

TILE = (
    *(POINTER, I64, I64, I64, POINTER, I64, I64, POINTER, I64, I64, I1),
    *(POINTER, I64, I64, I64, I64),
)
"""The arguments of a tile function: A and its strides by row, by depth and by matrix; B and its
strides by depth and by matrix; C and its stride by row; the depth, and whether sums begin at zero;
what is prefetched meanwhile, and its bytes for each `UNROLLED` of the depth, 0 where the tile of C
below is not prefetched either; the number of matrices, rows and columns. Matrices of C follow each
other without gaps. Strides and columns count numbers of the sums: parts of complex ones, groups of
bytes."""

UNROLLED = 4
"""The depth that a turn of the loop of a tile that prefetches takes."""


_ROWS_OF_A_POINTER = 3
"""Rows of A that are read from one pointer: at it, and one and two strides beyond, which addresses
of x86 can express. A pointer for each row would take more registers than there are."""


class Form(NamedTuple):
    """The form of a tile that a function is generated for."""

    height: int
    vectors: int
    whole: bool = False
    """Whether rows and columns fill it: no load or store is masked."""
    packed: bool = False
    """Whether numbers of consecutive rows of A lie side by side."""


def forms(isa: Isa, types: NumberTypes) -> list[Form]:
    """All forms, of which the whole ones have the greatest height."""
    most, vectors = types.rows(isa), isa.tile_vectors
    heights = [*(n for n in (1, 2, 4, 8) if n < most), most]
    cut = [Form(height, n + 1) for height in heights for n in range(vectors)]
    return [*cut, Form(most, vectors, whole=True), Form(most, vectors, whole=True, packed=True)]


def tile_function(module: Any, isa: Isa, types: NumberTypes) -> Any:
    """tile(`TILE`): a tile of up to h rows and w columns."""
    parts = {form: _tile(module, isa, types, form) for form in forms(isa, types)}
    most, widest = types.rows(isa), isa.tile_vectors
    f = Function.part(module, isa, "tile" + "_exact" * types.exact, *TILE)
    _, a_row, *_, rows, columns = f.arguments
    fills = [
        f.icmp_signed("==", rows, i64(most)),
        f.icmp_signed("==", columns, i64(types.width(isa))),
    ]
    side_by_side = f.icmp_signed("==", a_row, i64(types.parts))
    with f.if_else(f.and_(*fills)) as (whole, cut):
        with whole, f.if_else(side_by_side) as (packed, strided):
            for branch, kind in ((packed, True), (strided, False)):
                with branch:
                    f.call(parts[Form(most, widest, whole=True, packed=kind)], f.arguments)
        with cut:
            vectors = f.ceiling(columns, i64(types.lanes(isa)))
            cases = [
                (v * (most + 1) + n, parts[_cut_form(parts, n, v)], f.arguments)
                for v in range(1, widest + 1)
                for n in range(1, most + 1)
            ]
            f.choose(f.add(f.mul(vectors, i64(most + 1)), rows), cases)
    f.ret_void()
    return f.made


def _cut_form(parts: Iterable[Form], rows: int, vectors: int) -> Form:
    """The smallest form with masks for so many rows and vectors."""
    return min(f for f in parts if f.height >= rows and f.vectors == vectors and not f.whole)


def _tile(module: Any, isa: Isa, types: NumberTypes, form: Form) -> Any:
    """A tile of a form, of each of the matrices."""
    height, vectors, whole, packed = form
    name = f"{'packed' * packed or 'whole' * whole or 'cut'}{height}x{vectors}"
    f = Function.part(module, isa, name + "_exact" * types.exact, *TILE)
    a, a_row, a_depth, a_step, b, b_depth, b_step, c, ldc, depth, fresh, *other = f.arguments
    ahead, pace, count, rows, columns = other
    prefetches = whole and isa.prefetches_streams
    lanes, number = types.lanes(isa), types.sum_type
    masks = [None] * vectors
    if not whole:  # the others are whole: a form has as many vectors as the columns take
        masks[-1] = f.mask(f.sub(columns, i64((vectors - 1) * lanes)), lanes)
    final = f.sub(rows, i64(1))
    numbers = [i64(row) if whole else f.least(i64(row), final) for row in range(height)]
    steps = a_step, b_step, f.mul(rows, ldc)
    with f.loop(i64(0), count, carried=[a, b, c]) as matrix:
        left, right, out = matrix.values
        places = [
            f.at(f.at(out, f.mul(n, ldc), number), i64(v * lanes), number)
            for n in numbers
            for v in range(vectors)
        ]
        if prefetches:
            with f.if_then(f.icmp_signed(">", pace, i64(0))):
                _prefetch_below(f, types, places, ldc)
        sums = _begin(f, types, places, masks, fresh)
        row = i64(types.parts) if packed else a_row
        at_once = _ROWS_OF_A_POINTER if whole and not packed else height
        pointers = [
            (f.at(left, f.mul(numbers[i], row), number), [f.mul(n, row) for n in numbers[:at_once]])
            for i in range(0, height, at_once)
        ]
        operands = (pointers, a_depth), (right, b_depth)
        given = (ahead, pace) if prefetches else None
        found = _sums(f, types, *operands, masks, depth, sums, given)
        for v, mask in enumerate(masks):
            # Pieces are much code, and matter where a matrix is no wider than a vector.
            f.write_all(found[v::vectors], places[v::vectors], mask, in_pieces=vectors == 1)
        matrix.values = [
            f.at(at, step, number) for at, step in zip(matrix.values, steps, strict=True)
        ]
    f.ret_void()
    return f.made


def _begin(
    f: Function, types: NumberTypes, places: Sequence[Any], masks: Sequence[Any], fresh: Any
) -> list[Any]:
    """The sums that a tile begins with: zero, or the elements of C."""
    vector: Any = ir.VectorType(types.sum_type, types.lanes(f.isa))
    cut = [*masks] * (len(places) // len(masks))
    entry, resume, start = f.block, f.append_basic_block("resume"), f.append_basic_block("start")
    f.cbranch(fresh, start, resume)
    f.position_at_end(resume)
    held = [f.read(place, vector, mask) for place, mask in zip(places, cut, strict=True)]
    f.branch(start)
    f.position_at_end(start)
    sums = [f.phi(vector) for _ in places]
    for total, value in zip(sums, held, strict=True):
        total.add_incoming(ir.Constant(vector, None), entry)
        total.add_incoming(value, resume)
    return sums


def _prefetch_below(f: Function, types: NumberTypes, places: Sequence[Any], ldc: Any) -> None:
    """Prefetch the tile of C below this one, which is the next one: both ends of its rows."""
    vectors = len(places) // types.rows(f.isa)
    down, end = f.mul(i64(types.rows(f.isa)), ldc), i64(vectors * types.lanes(f.isa) - 1)
    for place in places[::vectors]:
        below = f.at(place, down, types.sum_type)
        f.prefetch(below)
        f.prefetch(f.at(below, end, types.sum_type))


def _sums(
    f: Function,
    types: NumberTypes,
    left: tuple[Sequence[tuple[Any, Sequence[Any]]], Any],
    right: tuple[Any, Any],
    masks: Sequence[Any],
    depth: Any,
    sums: list[Any],
    ahead: tuple[Any, Any] | None,
) -> list[Any]:
    """``sums`` of a tile with the products of the depth added: of rows of A, which are at pointers
    with several offsets each, and of B, both with a stride by depth. ``ahead``: the address that is
    prefetched meanwhile, and its step for `UNROLLED` of the depth."""
    (pointers, a_depth), (b, b_depth) = left, right
    lanes, number, vectors = types.lanes(f.isa), types.sum_type, len(masks)
    vector: Any = ir.VectorType(number, lanes)
    offsets = [ir.Constant(vector, None)] * vectors if types.group == 4 else []
    starts = [pointer for pointer, _ in pointers]

    def add(values: Sequence[Any]) -> list[Any]:
        """The carried values with the products of one element of the depth."""
        row, *carried = values
        at, total = carried[: len(starts)], carried[len(starts) :][: len(sums)]
        more = carried[len(starts) + len(sums) :]
        held: list[Any] = []
        places: list[Any] = []
        for part in range(2 if types.exact else types.parts):
            if types.exact and part:  # loaded again: kept, numbers of A would take the registers
                row, *at = map(f.opaque, [row, *at])
            if types.exact or not part:
                starting = [f.at(row, i64(v * lanes), number) for v in range(vectors)]
                held = [f.read(a, vector, mask) for a, mask in zip(starting, masks, strict=True)]
                places = [f.at(at[i], n, number) for i, (_, ns) in enumerate(pointers) for n in ns]
            b_row = held
            if types.exact:
                b_row = [element_of_pairs(f, value, part) for value in held]
            elif part:
                b_row = [_turned(f, value) for value in held]
            for i, place in enumerate(places[: len(sums) // vectors]):
                place = f.at(place, i64(1), number) if part and not types.exact else place
                factor = f.splat(f.read(place, number), lanes)
                factor = element_of_pairs(f, factor, part) if types.exact else factor
                for v in range(vectors):
                    j = i * vectors + v
                    total[j] = multiply_add(f, types, factor, b_row[v], total[j])
        byte = f.splat(ir.Constant(I32, -0x7F7F7F80), lanes) if offsets else None
        more = [multiply_add(f, types, byte, r, m) for r, m in zip(held, more, strict=False)]
        at = [f.at(pointer, a_depth, number) for pointer in at]
        at = [f.opaque(pointer) for pointer in at] if len(at) > 1 else at
        return [f.at(row, b_depth, number), *at, *total, *more]

    begin, carried = i64(0), [b, *starts, *sums, *offsets]
    if ahead is not None:
        place, pace = ahead
        begin = f.sub(depth, f.urem(depth, i64(UNROLLED)))
        with f.loop(i64(0), begin, i64(UNROLLED), carried=[place, *carried]) as loop:
            place, *carried = loop.values
            f.prefetch(place, cache=2)
            for _ in range(UNROLLED):
                carried = add(carried)
            loop.values = [f.at(place, pace, I8), *carried]
        _, *carried = loop.values
    with f.loop(begin, depth, carried=carried) as rest:
        rest.values = add(rest.values)
    found = rest.values[1 + len(starts) :]
    found, offsets = found[: len(sums)], found[len(sums) :]
    if not offsets:
        return found
    return [f.sub(value, offsets[i % vectors]) for i, value in enumerate(found)]


def _turned(f: Function, b: Any) -> Any:
    """i·b of a vector of complex numbers: (−im, re) of each."""
    count = b.type.count
    places = [i + 1 + count if i % 2 == 0 else i - 1 for i in range(count)]
    return f.shuffle_vector(b, f.fneg(b), ir.Constant(ir.VectorType(I32, count), places))
