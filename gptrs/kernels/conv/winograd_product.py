"""Matrix products between Winograd's transforms: one product per plane.

    for plane, for panel of U:                  # extent
        for row block of tiles:
            M[plane, tiles, w] = V[plane, tiles, :] · panel     # indirect GEMM, prefetched panels

    V [planes, tiles, C] × U [planes, panels, C, w] = M [planes, tiles, panels·w]

The rows of V are contiguous: their `places` are multiples of C. See `gptrs.kernels.conv.winograd`.
"""

from __future__ import annotations

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.conv.indirect_gemm import Epilogue, IndirectGemm, Places, Rows, strided_rows

WINOGRAD_PRODUCT_ARGUMENTS = (
    *("v", "u", "sums"),
    *("tiles", "channels", "panels", "v_step", "sums_step"),
)
"""The argument block of `winograd_product_kernel`: three pointers, then sizes.

The steps are those from plane to plane.
"""


def winograd_product_kernel(isa: Isa) -> KernelText:
    """V [planes, tiles, C] times panels U [planes, panels, C, w]: sums [planes, tiles, panels·w].

    Arguments: `WINOGRAD_PRODUCT_ARGUMENTS`; extent: planes times panels, panels innermost.
    """
    name = "winograd_product"
    module = ir.Module(f"{name} {isa.name}")
    igemm = IndirectGemm(module, isa, Epilogue())
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    w = f.argument_block(address, WINOGRAD_PRODUCT_ARGUMENTS[:3], WINOGRAD_PRODUCT_ARGUMENTS[3:])
    width, null = i64(isa.tile_columns), ir.Constant(POINTER, None)
    size = f.mul(w["channels"], width)
    row = f.mul(w["panels"], width)
    places = strided_rows(f, w["channels"])
    with f.loop(first, last) as item:
        plane, panel = f.sdiv(item.index, w["panels"]), f.srem(item.index, w["panels"])
        v = f.at(w["v"], f.mul(plane, w["v_step"]))
        a = Rows(v, w["tiles"], w["channels"], places)
        sums = f.at(w["sums"], f.add(f.mul(plane, w["sums_step"]), f.mul(panel, width)))
        here = f.at(w["u"], f.mul(item.index, size))
        igemm.emit_panel(f, a, here, Places(sums, row), null, null, width)
    f.ret_void()
    return KernelText(str(module), name)
