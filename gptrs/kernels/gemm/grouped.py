"""Grouped GEMM: rows times the matrices of their groups, read once for all rows of a group.

    ids [pairs]: 2 0 2 1      group_rows: order [pairs]: 1 3 0 2     starts [groups + 1]: 0 1 2 4
                                          group            0 1 ─2─
    group_rows_kernel      counting sort of the pairs by their ids
    gather_rows_kernel     A[p] = x[order[p] / share]                   # extent: pairs
    pack_groups_kernel     tiles of A of the groups with many rows      # extent: tiles
    pack_chosen_kernel     panels of the groups with rows               # extent: panels of a group,
                                                       of a weight that is not packed once for all
    grouped_gemm_kernel                                                 # extent: panels of a group
        for group with rows:
            C[its rows, its panels] = A[its rows] · panels              # GEMV, or blocked GEMM
            result[order] = C                                           # still in cache

    B: one weight [groups · columns, K] in panels [⌈groups · columns / w⌉, K, w]

Only panels of groups that have rows are read. Packing and products are the kernels for one matrix
(`gptrs.kernels.gemm.product`), whose addresses stand in the argument blocks: called for a range of
panels, with an argument block of their own on the stack, they give the bits that they give alone,
whatever other rows there are. A panel that two groups share is computed for both of them, and the
columns of the other group are written to the room between rows of C (`slack`).

Source: Gale et al., arXiv:2211.15841.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import F64, I32, I64, VOID, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.driver.step_table import emit_failure
from gptrs.kernels.gemm.product import GEMM_ARGUMENTS
from gptrs.lazy_dataclass import dataclass

_GROUP_POINTERS = ("ids", "starts", "order")
GROUP_ARGUMENTS = (*_GROUP_POINTERS, "pairs", "groups", "id_bytes", "status", "code")
"""The argument block of `group_rows_kernel`, in order. ``ids`` are signed integers of ``id_bytes``,
4 or 8; ``starts`` has room for groups + 2 words and ``order`` for pairs. An id that is not from 0
to groups − 1 is reported in ``status`` by ``code`` and the number of its pair."""

_GATHER_POINTERS = ("source", "order", "a")
GATHER_ARGUMENTS = (*_GATHER_POINTERS, "depth", "stride", "share")
"""The argument block of `gather_rows_kernel`, in order: ``share`` pairs in a row read the same row
of the source, whose rows have the distance ``stride``; rows of A have none between them."""

_PACK_POINTERS = ("a", "tiles", "starts")
PACK_GROUPS_ARGUMENTS = (*_PACK_POINTERS, "pack", "depth", "groups", "few", "most_height")
"""The argument block of `pack_groups_kernel`, in order. ``pack`` is the address of the kernel that
packs rows; groups of up to ``few`` rows are not packed; a tile has up to ``most_height`` rows."""

_CHOSEN_POINTERS = ("weight", "panels", "starts")
PACK_CHOSEN_ARGUMENTS = (*_CHOSEN_POINTERS, "pack", "depth", "columns", "groups")
"""The argument block of `pack_chosen_kernel`, in order: ``weight`` is [groups · columns, depth]."""

_GEMM_POINTERS = ("a", "tiles", "panels", "c", "totals", "result", "starts", "order")
GROUPED_GEMM_ARGUMENTS = (
    *_GEMM_POINTERS,
    *("gemv", "gemm", "depth", "columns", "ldc", "groups", "few", "most_height"),
    *("depth_block", "block_tiles"),
)
"""The argument block of `grouped_gemm_kernel`, in order. ``gemv`` and ``gemm`` are addresses of
kernels; a row block of the latter has ``block_tiles`` tiles. C has rows of ``ldc`` ≥ columns +
`slack` elements, each behind its slack; so has ``totals``, f64, or is 0 where the depth
has one block. ``result`` is [pairs, columns] and overlaps no operand."""


def slack(isa: Isa, columns: int) -> int:
    """The room for columns of other groups before each row of C."""
    return isa.tile_columns if columns % isa.tile_columns else 0


def grouped_extent(isa: Isa, columns: int) -> int:
    """The most panels that a group has a part of: the extent of `grouped_gemm_kernel`."""
    return -(-(columns + max(0, slack(isa, columns) - 1)) // isa.tile_columns)


def group_rows_kernel(isa: Isa) -> KernelText:
    """Sorts pairs by id, those of one group as they come. Arguments: `GROUP_ARGUMENTS`; extent: 1,
    for all pairs."""
    name = "group_rows"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    w = f.argument_block(f.arguments[0], _GROUP_POINTERS, GROUP_ARGUMENTS[3:])
    # Counts stand two words behind their group: after the sums a group's end is where the next
    # one's begin is to be, and each pair that is placed moves its group's end on.
    with f.loop(i64(0), f.add(w["groups"], i64(2))) as word:
        f.write(i64(0), f.at(w["starts"], word.index, I64))
    for places in (False, True):
        with f.loop(i64(0), w["pairs"]) as pair:
            group = _id(f, w, pair.index)
            known = f.icmp_unsigned("<", group, w["groups"])
            with f.if_else(known, likely=True) as (inside, outside):
                with inside:
                    cell = f.at(w["starts"], f.add(group, i64(1 if places else 2)), I64)
                    count = f.word(cell)
                    f.write(f.add(count, i64(1)), cell)
                    if places:
                        f.write(pair.index, f.at(w["order"], count, I64))
                with outside:
                    emit_failure(f, w["status"], w["code"], pair.index)
        if not places:
            with f.loop(i64(0), w["groups"], carried=[i64(0)]) as each:
                cell = f.at(w["starts"], f.add(each.index, i64(2)), I64)
                each.values = [f.add(each.values[0], f.word(cell))]
                f.write(each.values[0], cell)
    f.ret_void()
    return KernelText(str(module), name)


def _id(f: Function, w: dict[str, Any], index: Any) -> Any:
    """The id of a pair."""
    with f.if_else(f.icmp_signed("==", w["id_bytes"], i64(4))) as (narrow, wide):
        with narrow:
            extended, after_narrow = f.sext(f.read(f.at(w["ids"], index, I32), I32), I64), f.block
        with wide:
            whole, after_wide = f.read(f.at(w["ids"], index, I64), I64), f.block
    result = f.phi(I64)
    result.add_incoming(extended, after_narrow)
    result.add_incoming(whole, after_wide)
    return result


def gather_rows_kernel(isa: Isa) -> KernelText:
    """Rows of the source in the order of groups. Arguments: `GATHER_ARGUMENTS`; extent: pairs."""
    name = "gather_rows"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _GATHER_POINTERS, GATHER_ARGUMENTS[3:])
    with f.loop(first, last) as place:
        pair = f.word(f.at(w["order"], place.index, I64))
        source = f.at(w["source"], f.mul(f.udiv(pair, w["share"]), w["stride"]))
        _copy(f, source, f.at(w["a"], f.mul(place.index, w["depth"])), w["depth"])
    f.ret_void()
    return KernelText(str(module), name)


def _copy(f: Function, source: Any, target: Any, count: Any) -> None:
    for _, at, mask in f.pieces(i64(1), count):
        f.write(f.read(f.at(source, at), mask=mask), f.at(target, at), mask)


@dataclass
class _Group:
    """A group with rows, in the loop over all groups."""

    number: Any
    start: Any
    """Its first row of A."""
    rows: Any
    is_many: Any
    """Whether its rows are packed into tiles."""
    tile: Any
    """Its first tile, among those of all groups."""
    tiles: Any
    height: Any
    """Rows of a tile."""


@contextmanager
def _groups(f: Function, w: dict[str, Any]) -> Generator[_Group]:
    """A loop over the groups that have rows."""
    with f.loop(i64(0), w["groups"], carried=[i64(0)]) as loop:
        start, end = (f.word(f.at(w["starts"], f.add(loop.index, i64(i)), I64)) for i in (0, 1))
        rows = f.sub(end, start)
        is_many = f.icmp_signed(">", rows, w["few"])
        some = f.select(is_many, rows, i64(1))
        height = f.ceiling(some, f.ceiling(some, w["most_height"]))
        tiles = f.select(is_many, f.ceiling(some, height), i64(0))
        with f.if_then(f.icmp_signed(">", rows, i64(0))):
            yield _Group(loop.index, start, rows, is_many, loop.values[0], tiles, height)
        loop.values = [f.add(loop.values[0], tiles)]


def _call(f: Function, kernel: Any, block: Any, words: list[Any], extent: tuple[Any, Any]) -> None:
    """Call the kernel at an address with an argument block of these words."""
    for number, word in enumerate(words):
        value = f.ptrtoint(word, I64) if isinstance(word.type, ir.PointerType) else word
        f.write(value, f.at(block, i64(number), I64))
    kind = ir.FunctionType(VOID, [I64] * 3).as_pointer()
    f.call(f.inttoptr(kernel, kind), [f.ptrtoint(block, I64), *extent])


def pack_groups_kernel(isa: Isa) -> KernelText:
    """Packs the rows of groups with many of them. Arguments: `PACK_GROUPS_ARGUMENTS`; extent: at
    least the tiles of all groups."""
    name = "pack_groups"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _PACK_POINTERS, PACK_GROUPS_ARGUMENTS[3:])
    block = f.stack_array(8, I64)
    with _groups(f, w) as group:
        begin = f.positive(f.sub(first, group.tile))
        end = f.least(f.sub(last, group.tile), group.tiles)
        with f.if_then(f.icmp_signed("<", begin, end)):
            source = f.at(w["a"], f.mul(group.start, w["depth"]))
            size = f.mul(w["depth"], i64(isa.tile_rows))
            words = [source, f.at(w["tiles"], f.mul(group.tile, size))]
            words += [group.rows, w["depth"], w["depth"], group.height]
            _call(f, w["pack"], block, words, (begin, end))
    f.ret_void()
    return KernelText(str(module), name)


def pack_chosen_kernel(isa: Isa) -> KernelText:
    """Packs the matrices of the groups that have rows; other panels stay as they are. Arguments:
    `PACK_CHOSEN_ARGUMENTS`; extent: `grouped_extent`."""
    name = "pack_chosen"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _CHOSEN_POINTERS, PACK_CHOSEN_ARGUMENTS[3:])
    block, width = f.stack_array(8, I64), i64(isa.tile_columns)
    with f.loop(i64(0), w["groups"], carried=[i64(0)]) as loop:
        start, stop = (f.word(f.at(w["starts"], f.add(loop.index, i64(i)), I64)) for i in (0, 1))
        column = f.mul(loop.index, w["columns"])
        panel, end = f.udiv(column, width), f.ceiling(f.add(column, w["columns"]), width)
        # A panel that groups share is that of the first one.
        fresh = f.select(f.icmp_signed(">", loop.values[0], panel), loop.values[0], panel)
        begin = f.add(panel, first)
        begin = f.select(f.icmp_signed(">", fresh, begin), fresh, begin)
        until = f.least(f.add(panel, last), end)
        has_rows = f.icmp_signed("<", start, stop)
        with f.if_then(f.and_(has_rows, f.icmp_signed("<", begin, until))):
            rows = f.mul(w["groups"], w["columns"])
            words = [w["weight"], w["panels"], rows, w["depth"], w["depth"], width]
            _call(f, w["pack"], block, words, (begin, until))
        loop.values = [f.select(has_rows, end, loop.values[0])]
    f.ret_void()
    return KernelText(str(module), name)


def grouped_gemm_kernel(isa: Isa) -> KernelText:
    """The products of all groups. Arguments: `GROUPED_GEMM_ARGUMENTS`; extent: `grouped_extent`."""
    name = "grouped_gemm"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _GEMM_POINTERS, GROUPED_GEMM_ARGUMENTS[len(_GEMM_POINTERS) :])
    block, width = f.stack_array(len(GEMM_ARGUMENTS), I64), i64(isa.tile_columns)
    with _groups(f, w) as group:
        column = f.mul(group.number, w["columns"])  # its first one in the weight
        end = f.add(column, w["columns"])
        panel = f.udiv(column, width)
        extent = f.add(panel, first), f.least(f.add(panel, last), f.ceiling(end, width))
        with f.if_then(f.icmp_signed("<", *extent)):
            with f.if_else(group.is_many) as (many, few):
                with many:
                    _emit_gemm(f, w, block, group, column, extent)
                with few:
                    a = f.at(w["a"], f.mul(group.start, w["depth"]))
                    words = _words(f, w, group.start, group.rows, column)
                    words |= {"a": a, "lda": w["depth"]}
                    _call(f, w["gemv"], block, _ordered(words), extent)
            begin, stop = (f.sub(f.mul(number, width), column) for number in extent)
            _emit_scatter(f, w, group, f.positive(begin), f.least(stop, w["columns"]))
    f.ret_void()
    return KernelText(str(module), name)


def _words(f: Function, w: dict[str, Any], row: Any, rows: Any, column: Any) -> dict[str, Any]:
    """Arguments of the product of ``rows`` rows from ``row`` on: its columns are numbered as those
    of the whole weight, in which ``column`` is the first one of the group."""
    room = f.sub(w["ldc"], w["columns"])
    here = f.sub(f.add(f.mul(row, w["ldc"]), room), column)
    given = f.icmp_unsigned("!=", w["totals"], ir.Constant(w["totals"].type, None))
    totals = f.select(given, f.at(w["totals"], here, F64), w["totals"])
    return {
        "panels": w["panels"],
        "c": f.at(w["c"], here),
        "totals": totals,
        "rows": rows,
        "depth": w["depth"],
        "columns": f.add(column, w["columns"]),
        "ldc": w["ldc"],
    }


def _ordered(words: dict[str, Any]) -> list[Any]:
    return [words.get(name, i64(0)) for name in GEMM_ARGUMENTS]


def _emit_gemm(
    f: Function,
    w: dict[str, Any],
    block: Any,
    group: _Group,
    column: Any,
    extent: tuple[Any, Any],
) -> None:
    """The product of packed rows, a row block after the other."""
    size = f.mul(w["depth"], i64(f.isa.tile_rows))
    with f.loop(i64(0), group.tiles, w["block_tiles"]) as tile:
        above = f.mul(tile.index, group.height)
        rows = f.least(f.sub(group.rows, above), f.mul(w["block_tiles"], group.height))
        words = _words(f, w, f.add(group.start, above), rows, column)
        a = f.at(w["tiles"], f.mul(f.add(group.tile, tile.index), size))
        words |= {"a": a, "depth_block": w["depth_block"], "height": group.height}
        words["row_blocks"] = i64(1)
        _call(f, w["gemm"], block, _ordered(words), extent)


def _emit_scatter(f: Function, w: dict[str, Any], group: _Group, begin: Any, end: Any) -> None:
    """Copy the columns from ``begin`` to ``end`` of the group's rows of C to the result."""
    room = f.sub(w["ldc"], w["columns"])
    with f.loop(i64(0), group.rows) as row:
        place = f.add(group.start, row.index)
        pair = f.word(f.at(w["order"], place, I64))
        source = f.at(w["c"], f.add(f.add(f.mul(place, w["ldc"]), room), begin))
        target = f.at(w["result"], f.add(f.mul(pair, w["columns"]), begin))
        _copy(f, source, target, f.sub(end, begin))
