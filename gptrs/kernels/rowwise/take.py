"""Gather of rows by index: embedding lookup in a table as it lies, or packed for the product.

    for i in indices:                # extent
        row = indices[i]
        check 0 ≤ row < rows
        copy table[row] to result[i], to f32

    table [rows, width]  or  panels [⌈rows/w⌉, width, w]: a row of the weight is a column of a panel

`take_panels_kernel` reads a weight that is packed for the product (such as an output layer tied to
the embedding), compressed or not; compressed panels are decompressed 64 rows at a time to the
stack. An index out of range is reported in the plan's status (`gptrs.kernels.driver.step_table`).
Other tables are those of `gptrs.kernels.indexing`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I8, I32, I64, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.driver.step_table import emit_failure
from gptrs.kernels.gemm.weight_elements import WeightType, element_type, read_weights
from gptrs.kernels.weight_compression.format import decompress_function

_TAKE_POINTERS = ("table", "indices", "result")
_TAKE_SIZES = ("status", "code", "rows", "width", "ld", "result_row", "index_bytes")
TAKE_ARGUMENTS = _TAKE_POINTERS + _TAKE_SIZES
"""The argument block of `take_kernel` and `take_panels_kernel`, in order.

``table`` is [rows, width] with distance ``ld`` of rows, or the panels [⌈rows/w⌉, width, w] of a
weight [rows, width] (``ld`` is not read); ``indices`` are signed integers of ``index_bytes``, 4 or
8, without gaps; rows of the result have the distance ``result_row``. ``status`` is the address of a
`gptrs.kernels.driver.step_table.Status`: for an index that is not from 0 to rows − 1, ``code`` and
the place of the index are stored, nothing is read and the row stays as it is. All distances count
elements. The result overlaps no operand.
"""

_UNPACKED = 64  # rows of a compressed panel at a time


def _integer(f: Function, place: Any, size: Any) -> Any:
    """The signed integer of ``size`` bytes, 4 or 8, at ``place``."""
    with f.if_else(f.icmp_signed("==", size, i64(4))) as (narrow, wide):
        with narrow:
            extended, after_narrow = f.sext(f.read(place, I32), I64), f.block
        with wide:
            whole, after_wide = f.read(place, I64), f.block
    result = f.phi(I64)
    result.add_incoming(extended, after_narrow)
    result.add_incoming(whole, after_wide)
    return result


def _copy(f: Function, weights: WeightType, source: Any, target: Any, count: Any) -> None:
    """Copy ``count`` numbers, widened to f32."""
    lanes = i64(f.isa.lanes)
    full = f.sub(count, f.urem(count, lanes))
    with f.loop(i64(0), full, lanes) as k:
        f.write(read_weights(f, weights, source, k.index), f.at(target, k.index))
    with f.loop(full, count) as k:
        f.write(read_weights(f, weights, source, k.index, 1), f.at(target, k.index))


def _copy_column(
    f: Function, weights: WeightType, panels: Any, row: Any, target: Any, width: Any
) -> None:
    """A row of the weight, which is a column of a panel: one element of every ``tile_columns``."""
    columns = i64(f.isa.tile_columns)
    inside = f.urem(row, columns)
    source = f.add(f.mul(f.sub(row, inside), width), inside)
    with f.loop(i64(0), width) as k:
        place = f.add(source, f.mul(k.index, columns))
        f.write(read_weights(f, weights, panels, place, 1), f.at(target, k.index))


def _take_kernel(
    isa: Isa, name: str, weights: WeightType, panels: bool, compressed: bool
) -> KernelText:
    module = ir.Module(f"{name} {isa.name}")
    unpack = decompress_function(module, isa, weights) if compressed else None
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _TAKE_POINTERS, _TAKE_SIZES)
    beside = f.stack_array(_UNPACKED * isa.tile_columns) if compressed else None

    def copy_coded_column(row: Any, target: Any) -> None:
        """`_copy_column` of panels in a container, unpacked some rows at a time."""
        panel, inside = (g(row, i64(isa.tile_columns)) for g in (f.udiv, f.urem))
        with f.loop(i64(0), w["width"], i64(_UNPACKED)) as k:
            count = f.least(f.sub(w["width"], k.index), i64(_UNPACKED))
            f.call(unpack, [w["table"], w["width"], panel, k.index, count, beside])
            _copy_column(f, "f32", beside, inside, f.at(target, k.index), count)

    with f.loop(first, last) as loop:
        place = f.at(w["indices"], f.mul(loop.index, w["index_bytes"]), I8)
        row = _integer(f, place, w["index_bytes"])
        target = f.at(w["result"], f.mul(loop.index, w["result_row"]))
        # One unsigned comparison: a negative index is a huge one.
        with f.if_else(f.icmp_unsigned("<", row, w["rows"]), likely=True) as (inside, outside):
            with inside:
                if compressed:
                    copy_coded_column(row, target)
                elif panels:
                    _copy_column(f, weights, w["table"], row, target, w["width"])
                else:
                    source = f.at(w["table"], f.mul(row, w["ld"]), element_type(weights))
                    _copy(f, weights, source, target, w["width"])
            with outside:
                emit_failure(f, w["status"], w["code"], loop.index)
    f.ret_void()
    return KernelText(str(module), name)


def take_kernel(isa: Isa, weights: WeightType = "f32") -> KernelText:
    """result[i] = table[indices[i]], from a table of ``weights`` to f32.

    Arguments: `TAKE_ARGUMENTS`; extent: the number of indices.
    """
    return _take_kernel(isa, f"take_{weights}", weights, panels=False, compressed=False)


def take_panels_kernel(
    isa: Isa, weights: WeightType = "f32", compressed: bool = False
) -> KernelText:
    """`take_kernel` of a weight that is packed for the product (`gptrs.kernels.gemm.product`).

    If it is ``compressed``, the table is a container of `gptrs.kernels.weight_compression.format`.
    """
    name = f"take_panels_{weights}{'_compressed' * compressed}"
    return _take_kernel(isa, name, weights, panels=True, compressed=compressed)
