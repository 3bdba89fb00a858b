"""Rows moved: taken from a table by index, or from the panels of a product's weight; and a block
put into a larger array at a place that is known at run time.
"""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from llvmlite import ir

from gptrs.kernels.driver import emit_failure
from gptrs.kernels.emit import F32, I32, I64, Function, KernelText, i64
from gptrs.kernels.isa import Isa

Index = Literal["i32", "i64"]

TAKE_WORDS = ("table", "indices", "result", "status", "code", "rows", "width", "ld", "result_row")
"""The argument words of `take_kernel` and `take_panels_kernel`, in order.

``table`` is [rows, width] with distance ``ld`` of rows, or the panels [⌈rows/w⌉, width, w] of a
weight [rows, width] (``ld`` is not read); ``indices`` are integers without gaps; rows of the result
have the distance ``result_row``. ``status`` is the address of a `gptrs.kernels.driver.Status`: for
an index that is not from 0 to rows − 1, ``code`` and the place of the index are stored, nothing is
read and the row stays as it is. All distances count elements. The result overlaps no operand.
"""

_AXES = 4
UPDATE_WORDS = (
    *("source", "destination"),
    *(f"start{axis}" for axis in range(_AXES)),
    *(f"size{axis}" for axis in range(_AXES)),
    *(f"extent{axis}" for axis in range(_AXES)),
    *(f"source_stride{axis}" for axis in range(_AXES - 1)),
    *(f"destination_stride{axis}" for axis in range(_AXES - 1)),
)
"""The argument words of `update_kernel`, in order.

``start`` has a word for each axis: the address of an integer for the axes in ``dynamic``, for
others the integer itself. ``size`` is the shape of the source, ``extent`` that of the destination,
at least as large along each axis. Strides count elements; the last axis has none, its elements are
contiguous. Source and destination do not overlap.
"""


def _integer(f: Function, index: Index, pointer: Any, place: Any) -> Any:
    kind = I32 if index == "i32" else I64
    value = f.read(f.at(pointer, place, kind), kind)
    return value if kind is I64 else f.sext(value, I64)


def _copy(f: Function, source: Any, target: Any, count: Any) -> None:
    """Copy ``count`` f32."""
    lanes = i64(f.isa.lanes)
    full = f.sub(count, f.urem(count, lanes))
    with f.loop(i64(0), full, lanes) as loop:
        f.write(f.read(f.at(source, loop.index)), f.at(target, loop.index))
    with f.loop(full, count) as loop:
        f.write(f.read(f.at(source, loop.index), F32), f.at(target, loop.index))


def _take_kernel(isa: Isa, name: str, index: Index, panels: bool) -> KernelText:
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, TAKE_WORDS[:3], TAKE_WORDS[3:])
    with f.loop(first, last) as loop:
        row = _integer(f, index, w["indices"], loop.index)
        target = f.at(w["result"], f.mul(loop.index, w["result_row"]))
        # One unsigned comparison: a negative index is a huge one.
        with f.if_else(f.icmp_unsigned("<", row, w["rows"]), likely=True) as (inside, outside):
            with inside:
                if panels:
                    _copy_column(f, w["table"], row, w["width"], target)
                else:
                    _copy(f, f.at(w["table"], f.mul(row, w["ld"])), target, w["width"])
            with outside:
                emit_failure(f, w["status"], w["code"], loop.index)
    f.ret_void()
    return KernelText(str(module), name)


def _copy_column(f: Function, panels: Any, row: Any, width: Any, target: Any) -> None:
    """A row of the weight, which is a column of a panel: one element of every ``tile_columns``."""
    columns = i64(f.isa.tile_columns)
    inside = f.urem(row, columns)
    source = f.at(panels, f.add(f.mul(f.sub(row, inside), width), inside))
    with f.loop(i64(0), width) as k:
        value = f.read(f.at(source, f.mul(k.index, columns)), F32)
        f.write(value, f.at(target, k.index))


def take_kernel(isa: Isa, index: Index = "i32") -> KernelText:
    """result[i] = table[indices[i]] in f32. Words: `TAKE_WORDS`; extent: the number of indices."""
    return _take_kernel(isa, f"take_{index}", index, panels=False)


def take_panels_kernel(isa: Isa, index: Index = "i32") -> KernelText:
    """`take_kernel` of a weight that is packed for the product (`gptrs.kernels.matmul`)."""
    return _take_kernel(isa, f"take_panels_{index}", index, panels=True)


def update_extent(size: tuple[int, int, int, int]) -> int:
    """The extent of `update_kernel`: the source's rows."""
    return size[0] * size[1] * size[2]


def update_kernel(isa: Isa, dynamic: Iterable[int] = (), index: Index = "i32") -> KernelText:
    """destination[start:start + size] = source, in 4 axes of f32. Words: `UPDATE_WORDS`.

    The start is moved so that the source lies in the destination; the extent is `update_extent`.
    """
    pointed = sorted(set(dynamic))
    name = "_".join(["update", index, *map(str, pointed)])
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, UPDATE_WORDS[:2], UPDATE_WORDS[2:])
    starts: list[Any] = []
    for axis in range(_AXES):
        start = w[f"start{axis}"]
        if axis in pointed:
            start = _integer(f, index, f.inttoptr(start, w["source"].type), i64(0))
        start = f.least(start, f.sub(w[f"extent{axis}"], w[f"size{axis}"]))
        starts.append(f.select(f.icmp_signed(">", start, i64(0)), start, i64(0)))
    with f.loop(first, last) as row:
        places, rest = [], row.index
        for axis in reversed(range(_AXES - 1)):
            places.insert(0, f.urem(rest, w[f"size{axis}"]))
            rest = f.udiv(rest, w[f"size{axis}"])
        source, target = i64(0), starts[-1]
        for axis, place in enumerate(places):
            source = f.add(source, f.mul(place, w[f"source_stride{axis}"]))
            place = f.add(place, starts[axis])
            target = f.add(target, f.mul(place, w[f"destination_stride{axis}"]))
        _copy(f, f.at(w["source"], source), f.at(w["destination"], target), w["size3"])
    f.ret_void()
    return KernelText(str(module), name)
