"""The products between Winograd's transforms (`gptrs.kernels.winograd`)."""

# llvmlite has no types: its values are Any here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from llvmlite import ir

from gptrs.kernels.emit import I8, I64, POINTER, Function, KernelText, i64
from gptrs.kernels.isa import Isa
from gptrs.kernels.matmul_weights import row_bytes
from gptrs.kernels.strips import Epilogue, Strips

PRODUCT_WORDS = (
    *("v", "u", "sums"),
    *("tiles", "channels", "panels", "v_step", "sums_step", "strip"),
)
"""The argument words of `winograd_product_kernel`: three pointers, then sizes.

The steps are those from plane to plane; strips have ``strip`` tiles at most.
"""


def winograd_product_kernel(isa: Isa) -> KernelText:
    """V [planes, tiles, C] times panels U [planes, panels, C, w]: sums [planes, tiles, panels·w].

    Words: `PRODUCT_WORDS`; extent: planes times panels, all panels of a plane in turn.
    """
    name = "winograd_product"
    module = ir.Module(f"{name} {isa.name}")
    strips = Strips(module, isa, Epilogue())
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.words(address, PRODUCT_WORDS[:3], PRODUCT_WORDS[3:])
    width, null = i64(isa.tile_columns), ir.Constant(POINTER, None)
    size = f.mul(w["channels"], width)
    row = f.mul(w["panels"], width)
    offsets = f.alloca(I64)
    f.write(i64(0), offsets)
    share = f.ceiling(i64(row_bytes(isa, "f32")), f.ceiling(w["tiles"], w["strip"]))
    with f.loop(first, last) as item:
        plane, panel = f.sdiv(item.index, w["panels"]), f.srem(item.index, w["panels"])
        here = f.at(w["u"], f.mul(item.index, size))
        following = f.at(here, size)
        v = f.at(w["v"], f.mul(plane, w["v_step"]))
        sums = f.at(w["sums"], f.add(f.mul(plane, w["sums_step"]), f.mul(panel, width)))
        with f.loop(i64(0), w["tiles"], w["strip"]) as tile:
            height = f.least(w["strip"], f.sub(w["tiles"], tile.index))
            number = f.sdiv(tile.index, w["strip"])
            ahead = f.at(following, f.mul(f.mul(number, share), w["channels"]), I8)
            a, c = f.at(v, f.mul(tile.index, w["channels"])), f.at(sums, f.mul(tile.index, row))
            words = [a, w["channels"], offsets, i64(1), w["channels"], here, ahead, share, c, row]
            strips.emit(f, [*words, null, null, i64(0)], height, width)
    f.ret_void()
    return KernelText(str(module), name)
