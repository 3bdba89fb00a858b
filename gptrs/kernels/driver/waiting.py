"""Waiting in the worker pool: spin with pauses, then yield, then a futex, as LLVM IR.

Idle workers wait so for the next ticket, and the caller for the last chunks of a step. The counts
`PAUSES` and `YIELDS` are measured.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gptrs.kernels.driver.control_block import I32, I64, VOID, PoolCode, i32, i64

PAUSES = 200
"""How often an idle worker looks at the ticket, and a caller at *done*, with a pause in between
(25 ns on AMD Zen, 50 on Intel Skylake): 5 to 10 µs in which nothing but a store is waited for."""

YIELDS = 150
"""How often they look afterwards, leaving the core to other threads in between, before they sleep.

A yield takes half a µs where no other thread wants the core, so that sleep, from which a worker
needs about 40 µs to wake, begins after some 90. Where another thread does (more threads than cores,
another program, the scheduler's habit of waking a worker on its caller's core) pausing on would
keep the core from the very thread that is waited for. Beside other busy programs 2,000 pauses made
two threads 0.7 to 0.9 times as fast as one, yields 1 to 1.8 times, and 8 threads on 2 cores no
slower than 2.
"""

FUTEX = {"x86_64": 202, "aarch64": 98}  # the system call's number: asm/unistd.h
# `isb` waits longer than `yield`, which is nothing on most Arm cores (as Rust's spin_loop).
PAUSE = {"x86_64": ("llvm.x86.sse2.pause", list[int]()), "aarch64": ("llvm.aarch64.isb", [15])}
WAIT, WAKE = 128, 129  # FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG: linux/futex.h
EVERYBODY = 0x7FFFFFFF


class Waiting:
    """Emits pauses, sleeps and wake-ups into functions of ``module``, for ``machine``."""

    def __init__(self, module: Any, machine: str) -> None:
        self._number = i64(FUTEX[machine])
        name, arguments = PAUSE[machine]
        self._pause_arguments = [i32(value) for value in arguments]
        pause = ir.FunctionType(VOID, [I32] * len(arguments))
        self._pause_call: Any = ir.Function(module, pause, name)
        self._yield_call: Any = ir.Function(module, ir.FunctionType(I32, []), "sched_yield")
        variadic = ir.FunctionType(I64, [I64], var_arg=True)
        self._syscall: Any = ir.Function(module, variadic, "syscall")

    def pause(self, code: PoolCode, looks: Any) -> None:
        """Wait a moment between two looks, the more politely the more there were."""
        patient = code.icmp_unsigned(">", looks, i64(PAUSES))
        with code.if_else(patient, likely=False) as (politely, shortly):
            with politely:
                code.call(self._yield_call, [])
            with shortly:
                code.call(self._pause_call, self._pause_arguments)

    def futex(self, code: PoolCode, address: Any, operation: int, value: Any) -> None:
        """Sleep while the 32 bits at ``address`` equal ``value``, or wake ``value`` sleepers.

        Returns early for a signal or a changed value: every caller looks again.
        """
        zero = i64(0)
        rest = [code.ptrtoint(address, I64), i64(operation), value, zero, zero, zero]
        code.call(self._syscall, [self._number, *rest])
