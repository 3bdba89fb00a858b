"""Lossless compression of packed weight panels: the encoder kernel.

    for panel:                                  # extent
        for block of the panel:                 # V weights, V = bytes of a vector register
            first = first bytes of the weights, shuffled to their slots
            codes = index of first in the table, compared with its sixteen bytes
            store codes as V/2 bytes, second bytes as V bytes, for f32 last halves as 2V bytes
            flags[panel, block] = whether the table lacks a first byte

    block:  | codes V/2 | second bytes V | last halves 2V (f32 only) |

The weights that the table lacks become exceptions, which `gptrs.backends.faer.weight_compression`
lists for the flagged blocks. The layout is that of `gptrs.kernels.weight_compression.format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I8, I16, I32, Function, KernelText, i64, like
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.weight_elements import WeightType, weight_bytes
from gptrs.kernels.weight_compression.format import (
    TABLE,
    block_bytes,
    block_rows,
    register_bytes,
    shuffle,
    slots,
)

_POINTERS = ("source", "destination", "flags", "table")
_SIZES = ("rows", "step")
COMPRESS_ARGUMENTS = _POINTERS + _SIZES
"""The argument block of `compress_kernel`, in order.

``source`` is [panels, rows, w], ``destination`` the place of the first block in the first panel,
and ``step`` the bytes from a panel to the next one there. ``flags`` has a byte for each block,
[panels, rows / block_rows], which is set to 1 where the block has exceptions, else to 0. ``table``
has `TABLE` bytes; ``rows`` is a multiple of `DEPTH_STEP`.
"""
_NONE = 255  # the code of a byte that the table lacks


def compress_kernel(isa: Isa, weights: WeightType) -> KernelText:
    """Compresses rows of panels, for a level with `Isa.lookup`.

    Arguments: `COMPRESS_ARGUMENTS`; extent: panels.
    """
    name = f"compress_{weights}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, _POINTERS, _SIZES)
    size, element = register_bytes(isa), i64(weight_bytes(weights))
    heads = [f.splat(f.read(f.at(w["table"], i64(i), I8), I8), size) for i in range(TABLE)]
    blocks = f.udiv(w["rows"], i64(block_rows(isa)))
    with f.loop(first, last) as panel, f.loop(i64(0), blocks) as block:
        number = f.add(f.mul(panel.index, blocks), block.index)
        source = f.at(w["source"], f.mul(number, f.mul(i64(size), element)), I8)
        place = f.mul(block.index, i64(block_bytes(isa, weights)))
        target = f.at(w["destination"], f.add(f.mul(panel.index, w["step"]), place), I8)
        missing = _compress_block(f, weights, heads, source, target)
        f.write(f.zext(missing, I8), f.at(w["flags"], number, I8))
    f.ret_void()
    return KernelText(str(module), name)


def _compress_block(
    f: Function, weights: WeightType, heads: list[Any], source: Any, target: Any
) -> Any:
    """Compress one block. Returns whether the table lacks a first byte (it has exceptions)."""
    size = register_bytes(f.isa)
    of_bytes, of_halves = slots(f.isa, weights)
    bits = 8 * weight_bytes(weights)
    kind = ir.VectorType(I32 if weights == "f32" else I16, size)
    whole = f.read(source, kind)
    head = _shuffled(f, _narrow(f, whole, I8, bits - 8), of_bytes)
    codes = like(head, _NONE)
    for i, known in enumerate(heads):
        codes = f.select(f.icmp_unsigned("==", head, known), like(head, i), codes)
    low, high = (_shuffled(f, codes, half) for half in (range(size // 2), range(size // 2, size)))
    f.write(f.or_(f.and_(low, like(low, TABLE - 1)), f.shl(high, like(high, 4))), target)
    second = _shuffled(f, _narrow(f, whole, I8, bits - 16), of_bytes)
    f.write(second, f.at(target, i64(size // 2), I8))
    if weights == "f32":
        lower = _shuffled(f, _narrow(f, whole, I16, 0), of_halves)
        f.write(lower, f.at(target, i64(size * 3 // 2), I8))
    none = ir.IntType(size)
    missing = f.bitcast(f.icmp_unsigned("==", codes, like(codes, _NONE)), none)
    return f.icmp_unsigned("!=", missing, ir.Constant(none, 0))


def _narrow(f: Function, whole: Any, kind: Any, shift: int) -> Any:
    """Some bits of each element, ``shift`` bits from the lowest."""
    shifted: Any = f.lshr(whole, like(whole, shift)) if shift else whole
    wanted = ir.VectorType(kind, whole.type.count)
    return shifted if shifted.type == wanted else f.trunc(shifted, wanted)


def _shuffled(f: Function, vector: Any, places: Sequence[int]) -> Any:
    return shuffle(f, (vector, ir.Constant(vector.type, ir.Undefined)), places)
