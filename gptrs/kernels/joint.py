"""Joint kernel: kernels over parts of a common extent, as one step.

    for part in parts:                                  # in their order
        lo, hi = the part of first..last that is in part.first .. part.first + part.extent
        part.kernel(part.block, lo - part.first, hi - part.first)

    argument block:  | parts | kernel | first | extent | block (words) | kernel | first | ...

Parts that follow each other split the extent among them; of parts at the same place each chunk runs
one kernel after the other over the same items.
"""

from __future__ import annotations

from llvmlite import ir

from gptrs.kernels.compiler.ir_builder import I64, POINTER, Function, KernelText, i64
from gptrs.kernels.compiler.isa import Isa

HEAD = 3
"""The words of a part before its argument block: kernel, first item, extent."""


def joint_kernel(isa: Isa, words: int) -> KernelText:
    """Kernels whose argument blocks have so many ``words``; extent: the end of the last part."""
    name = f"joint{words}"
    module = ir.Module(f"{name} {isa.name}")
    f = Function.kernel(module, isa, name)
    address, first, last = f.arguments
    kind = ir.FunctionType(ir.VoidType(), [I64] * 3)
    count = f.word(f.inttoptr(address, POINTER))
    with f.loop(i64(0), count) as part:
        place = f.add(address, f.add(i64(8), f.mul(part.index, i64(8 * (HEAD + words)))))
        head = f.inttoptr(place, POINTER)
        kernel, begin, extent = (f.word(f.at(head, i64(i), I64)) for i in range(HEAD))
        low = f.positive(f.sub(first, begin))
        high = f.least(f.sub(last, begin), extent)
        with f.if_then(f.icmp_signed("<", low, high)):
            block = f.add(place, i64(8 * HEAD))
            f.call(f.inttoptr(kernel, kind.as_pointer()), [block, low, high])
    f.ret_void()
    return KernelText(str(module), name)
