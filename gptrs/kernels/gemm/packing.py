"""Packing of GEMM operands: B into panels, A into tiles of rows.

    pack_rows_kernel: rows of the source become columns of a tile     pack_columns_kernel: copy
    source [rows, depth]        tile [depth, t]                       source [K, N]    panel [K, w]
    r0: a b c ..                k=0: a e ..                           a b | c d        a b    c d
    r1: e f g ..      ──▶       k=1: b f ..                           e f | g h   ──▶  e f    g h
                                k=2: c g ..

    for tile:                                   # extent
        for lanes of the depth:                 # a square block: transposed in registers
            for group of lanes rows:
                load lanes vectors, transpose, store lanes vectors

`pack_rows_kernel` packs A (t = h, `Isa.tile_rows`) and a weight stored as [N, K] (t = w,
`Isa.tile_columns`); `pack_columns_kernel` packs a weight stored as [K, N], eight panels side by
side, so that the source is read in longer runs. Elements are copied as bits. Callers:
`gptrs.backends.faer.calls.product` (operands), `gptrs.backends.faer.weight_packing` (weights).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.bf16_pairs import TAIL, pairs_of, write_exponent
from gptrs.kernels.gemm.weight_elements import WeightType, element_type, read_weights


def panel_count(isa: Isa, columns: int) -> int:
    """The number of panels of ``columns`` columns: the extent of packing and
    `packed_gemv_kernel`."""
    return -(-columns // isa.tile_columns)


def pack_rows_kernel(isa: Isa, tile: int, weights: WeightType = "f32") -> KernelText:
    """Packs [rows, depth] with a leading dimension into tiles [⌈rows/height⌉, depth, tile].

    With ``tile = isa.tile_rows`` it packs A, with ``tile = isa.tile_columns`` a weight [N, K].
    Arguments: pointers source and destination, sizes rows, depth, ld, height; extent: tiles. Each
    tile begins ``height`` ≤ ``tile`` rows after the one before; its columns beyond ``height`` are
    not read. Elements are copied as they are; rows that are missing in the last tile are zero.
    """
    name = f"pack_rows{tile}_{weights}"
    module = ir.Module(f"{name} {isa.name}")
    element, lanes = element_type(weights), isa.lanes
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, ("source", "destination"), ("rows", "depth", "ld", "height"))
    final = f.sub(w["rows"], i64(1))
    # A vector stored across the end of a depth row is overwritten by the next row; the last row
    # has no next one.
    usable = w["depth"] if tile % lanes == 0 else f.sub(w["depth"], i64(1))
    full = f.sub(usable, f.srem(usable, i64(lanes)))
    vector = ir.VectorType(element, lanes)
    with f.loop(first, last) as index:
        top = f.mul(index.index, w["height"])
        numbers = [f.add(top, i64(row)) for row in range(tile)]
        rows = [f.at(w["source"], f.mul(f.least(n, final), w["ld"]), element) for n in numbers]
        missing = [f.icmp_signed(">", n, final) for n in numbers]
        place = f.mul(f.mul(index.index, i64(tile)), w["depth"])
        out = f.at(w["destination"], place, element)

        def read(row: int, k: Any, kind: Any) -> Any:
            zero = ir.Constant(kind, None if kind is vector else 0)
            return f.select(missing[row], zero, f.read(f.at(rows[row], k, element), kind))

        with f.loop(i64(0), full, i64(lanes)) as k:
            # Last rows first: stores of the first rows overwrite what these write beyond the tile.
            for group in reversed(range(0, tile, lanes)):
                block = [read(i, k.index, vector) for i in range(group, min(group + lanes, tile))]
                block += [ir.Constant(vector, ir.Undefined)] * (lanes - len(block))
                for i, column in enumerate(f.transposed(block)):
                    at = f.add(f.mul(f.add(k.index, i64(i)), i64(tile)), i64(group))
                    f.write(column, f.at(out, at, element))
        with f.loop(full, w["depth"]) as k:
            for i in range(tile):
                at = f.add(f.mul(k.index, i64(tile)), i64(i))
                f.write(read(i, k.index, element), f.at(out, at, element))
    f.ret_void()
    return KernelText(str(module), name)


def pack_pairs_kernel(isa: Isa) -> KernelText:
    """Packs A, which is stored in bf16, into tiles of pairs of depth, with their exponent behind
    each (`gptrs.kernels.gemm.bf16_pairs`).

    Arguments and extent: those of `pack_rows_kernel`. The depth is a multiple of ``isa.lanes``.
    """
    name, tile, lanes = "pack_pairs", isa.tile_rows, isa.lanes
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, ("source", "destination"), ("rows", "depth", "ld", "height"))
    final = f.sub(w["rows"], i64(1))
    count = f.mul(f.lshr(w["depth"], i64(1)), i64(tile))
    undefined, zero = ir.Constant(f.vector, ir.Undefined), ir.Constant(f.vector, None)
    with f.loop(first, last) as index:
        top = f.mul(index.index, w["height"])
        numbers = [f.add(top, i64(row)) for row in range(tile)]
        narrow = element_type("bf16")
        rows = [f.at(w["source"], f.mul(f.least(n, final), w["ld"]), narrow) for n in numbers]
        missing = [f.icmp_signed(">", n, final) for n in numbers]
        out = f.at(w["destination"], f.mul(index.index, f.add(count, i64(TAIL))))
        with f.loop(i64(0), w["depth"], i64(lanes)) as k:
            read = (read_weights(f, "bf16", row, k.index) for row in rows)
            block = [f.select(m, zero, value) for m, value in zip(missing, read, strict=True)]
            columns = f.transposed([*block, *[undefined] * (lanes - tile)])
            # What a store writes beyond a row of the tile, the next one overwrites.
            for i in range(0, lanes, 2):
                pair = f.lshr(f.add(k.index, i64(i)), i64(1))
                place = f.at(out, f.mul(pair, i64(tile)))
                f.write(pairs_of(f, columns[i], columns[i + 1]), place)
        write_exponent(f, out, count)
    f.ret_void()
    return KernelText(str(module), name)


def widen_rows_kernel(isa: Isa) -> KernelText:
    """Rows of bf16 in f32, one behind the other. Arguments: pointers source and destination, sizes
    depth and ld; extent: rows."""
    name = "widen_rows"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, ("source", "destination"), ("depth", "ld"))
    with f.loop(first, last) as row:
        source = f.at(w["source"], f.mul(row.index, w["ld"]), element_type("bf16"))
        out = f.at(w["destination"], f.mul(row.index, w["depth"]))
        for _, k, mask in f.pieces(i64(1), w["depth"]):
            f.write(read_weights(f, "bf16", source, k, mask=mask), f.at(out, k), mask)
    f.ret_void()
    return KernelText(str(module), name)


_PANELS_AT_ONCE = 8


def pack_columns_kernel(isa: Isa, weights: WeightType = "f32") -> KernelText:
    """Packs rows of a weight [K, N] with a leading dimension into panels.

    Arguments: pointers source and destination (the first of the rows in the first panel), sizes
    depth (number of rows), columns, ld, height (of a panel: K); extent: panels. Elements are copied
    as they are; columns that are missing in the last panel are zero.
    """
    name = f"pack_columns_{weights}"
    module = ir.Module(f"{name} {isa.name}")
    element, lanes, width = element_type(weights), isa.lanes, isa.tile_columns
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, ("source", "destination"), ("depth", "columns", "ld", "height"))
    kind = ir.VectorType(element, lanes)

    def row_of_panel(k: Any, panel: Any, read: Callable[[Any, Any], Any]) -> None:
        out = f.mul(f.add(f.mul(panel, w["height"]), k), i64(width))
        for i in range(0, width, lanes):
            column = f.add(f.mul(panel, i64(width)), i64(i))
            source = f.at(w["source"], f.add(f.mul(k, w["ld"]), column), element)
            f.write(read(source, column), f.at(w["destination"], f.add(out, i64(i)), element))

    def masked(source: Any, column: Any) -> Any:
        return f.read(source, kind, f.mask(f.sub(w["columns"], column)))

    whole = f.least(f.sdiv(w["columns"], i64(width)), last)
    # Several panels side by side, so that a row of the source is read in longer pieces.
    with f.loop(first, whole, i64(_PANELS_AT_ONCE)) as group:
        end = f.least(f.add(group.index, i64(_PANELS_AT_ONCE)), whole)
        with f.loop(i64(0), w["depth"]) as k, f.loop(group.index, end) as panel:
            row_of_panel(k.index, panel.index, lambda source, column: f.read(source, kind))
    start = f.select(f.icmp_signed(">", first, whole), first, whole)
    with f.loop(start, last) as panel, f.loop(i64(0), w["depth"]) as k:
        row_of_panel(k.index, panel.index, masked)
    f.ret_void()
    return KernelText(str(module), name)
