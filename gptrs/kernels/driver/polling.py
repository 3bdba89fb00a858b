"""Signals during kernels that run for long: a native function that lets Python run its handlers.

    poll(status):  take the GIL; run the handlers of pending signals
                   one raised: keep its exception in the status;  release the GIL
                   -> whether one raised

A loop without a bound must end by Ctrl-C. Python runs signal handlers in the main thread alone, and
not while that thread is in a kernel, so a kernel of a loop calls the function whose address is in
the status (`gptrs.kernels.compiler.intrinsics.interrupted`), some times a second. The address is 0
where there is nothing to do: in other threads. An exception of a handler ends the kernel by the
code `INTERRUPTED`, and `raise_kept` raises it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import ir

from gptrs.kernels.compiler.codegen import KernelError
from gptrs.kernels.compiler.compile import compile_functions
from gptrs.kernels.driver.control_block import I32, I64, VOID, WORDS, PoolCode, i32, i64
from gptrs.kernels.driver.step_table import EXCEPTION

_C_API = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyErr_Fetch", "PyGILState_Release")


def build_poll_ir() -> str:
    """The module with `poll`, ``i64(i64* status)``."""
    module: Any = ir.Module("gptrs_poll")
    kinds = (
        ir.FunctionType(I32, []),
        ir.FunctionType(I32, []),
        ir.FunctionType(VOID, [WORDS] * 3),
        ir.FunctionType(VOID, [I32]),
    )
    ensure, check, fetch, release = (
        ir.Function(module, kind, name) for kind, name in zip(kinds, _C_API, strict=True)
    )
    code = PoolCode(module, "poll", I64, WORDS, public=True)
    (status,) = code.arguments
    state = code.call(ensure, [])
    raised = code.icmp_signed("!=", code.call(check, []), i32(0))
    with code.if_then(raised, likely=False):
        code.call(fetch, [code.word(status, EXCEPTION + part) for part in range(3)])
    code.call(release, [state])
    code.ret(code.select(raised, i64(1), i64(0)))
    return str(module)


@cache
def poll_address() -> int:
    """The address of `poll`; 0 in a process that does not export Python's functions."""
    try:
        return compile_functions(build_poll_ir, ("poll",), _C_API)["poll"]
    except KernelError:
        return 0


def raise_kept(kept: list[int]) -> None:
    """Raise the exception that `poll` kept: its type, value and traceback."""
    restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))
    restore(*kept)
