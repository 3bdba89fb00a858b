"""Steps for drivers: three kernels, a chain of steps, and Python functions as kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.step_table import Status, Step, StepTable, emit_failure
from gptrs.kernels.driver.worker_pool import supported

# llvmlite has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

needs_pool = pytest.mark.skipif(not supported(), reason="needs a futex")

KERNELS = """
; arguments: source, target, length n.  target[i] = 3 source[n - 1 - i] + i
define void @mirror(i64 %block, i64 %first, i64 %last) {
entry:
  %words = inttoptr i64 %block to ptr
  %at1 = getelementptr i64, ptr %words, i64 1
  %at2 = getelementptr i64, ptr %words, i64 2
  %source = load ptr, ptr %words
  %target = load ptr, ptr %at1
  %n = load i64, ptr %at2
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %below = sub i64 %n, %i
  %j = sub i64 %below, 1
  %from = getelementptr i64, ptr %source, i64 %j
  %x = load i64, ptr %from
  %x3 = mul i64 %x, 3
  %y = add i64 %x3, %i
  %to = getelementptr i64, ptr %target, i64 %i
  store i64 %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}

; arguments: visits, ends.  visits[i] += 1 for each element, ends[first] = last
define void @visit(i64 %block, i64 %first, i64 %last) {
entry:
  %words = inttoptr i64 %block to ptr
  %at1 = getelementptr i64, ptr %words, i64 1
  %visits = load ptr, ptr %words
  %ends = load ptr, ptr %at1
  %end0 = getelementptr i64, ptr %ends, i64 %first
  store i64 %last, ptr %end0
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %visits, i64 %i
  %seen = load i64, ptr %at
  %seen1 = add i64 %seen, 1
  store i64 %seen1, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def _fail_kernel() -> str:
    """fail: arguments status, code, index; fails in the chunk that holds the index."""
    word = ir.IntType(64)
    module: Any = ir.Module("fail")
    function: Any = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), "fail")
    builder: Any = ir.IRBuilder(function.append_basic_block())
    block, first, last = function.args
    words = builder.inttoptr(block, word.as_pointer())
    status, code, index = (
        builder.load(builder.gep(words, [ir.Constant(word, i)])) for i in range(3)
    )
    inside = builder.and_(
        builder.icmp_signed("<=", first, index), builder.icmp_signed("<", index, last)
    )
    with builder.if_then(inside):
        emit_failure(builder, status, code, index)
    builder.ret_void()
    return str(module)


@cache
def kernels() -> dict[str, int]:
    """The addresses of this file's kernels; what is linked stays, as the cache holds it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    jit: Any = llvm.create_lljit_compiler()
    library: Any = llvm.JITLibraryBuilder().add_ir(KERNELS).add_ir(_fail_kernel())
    names = ("mirror", "visit", "fail")
    for name in names:
        library.export_symbol(name)
    linked: Any = library.link(jit, "steps")
    addresses = {name: int(linked[name]) for name in names}
    linked.detach()
    jit.detach()
    return addresses


class Chain:
    """Two buffers and a table of steps, each of which mirrors all that the one before wrote."""

    def __init__(self, steps: int = 8, length: int = 61, chunks: int = 5) -> None:
        self.buffers = np.zeros((2, length), np.int64)
        self.expected = self.buffers[0].copy()
        at = [row.ctypes.data for row in self.buffers]
        self.blocks = np.array([[*at, length], [*at[::-1], length]], np.int64)
        rows = [
            Step(kernels()["mirror"], self.blocks[i % 2].ctypes.data, length, chunks)
            for i in range(steps)
        ]
        self.table, self.status = StepTable(rows), Status()

    def run(self, driver: Driver, threads: int, times: int = 1) -> None:
        """Run the chain, and the same in NumPy; the results stay equal to the last bit."""
        ramp = np.arange(len(self.expected))
        for _ in range(times):
            assert driver.run(self.table, self.status, threads=threads) is None
            for _ in range(self.table.count):
                self.expected = 3 * self.expected[::-1] + ramp
        assert np.array_equal(self.buffers[0], self.expected)


class callback:  # noqa: N801
    """A Python function as a kernel, alive inside the block."""

    def __init__(self, function: Callable[[int, int, int], None]) -> None:
        self._native = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(function)

    def __enter__(self) -> int:
        return ctypes.cast(self._native, ctypes.c_void_p).value or 0

    def __exit__(self, *_: object) -> None:
        pass
