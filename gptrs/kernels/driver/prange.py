"""The portable driver: a Numba parallel loop executes the step table. Importing it imports Numba.

    for step in first..last:
        for chunk in prange(chunks):  kernel(arguments, begin, end)
        stop if the status has a code

It works with every threading layer that Numba finds. `workqueue` aborts the process when two
threads launch at once and GNU OpenMP ends a forked child at its first launch, so one caller has the
layer at a time, and a child of a process that had this driver runs alone. (This driver cannot
protect a user's own parallel Numba functions from each other.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, final

import numba
import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gptrs.kernels.driver.control_block import MAX_CHUNKS
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.step_table import Status, StepTable, emit_failure
from gptrs.locks import numba_threads

# numba has no types: its values are Any here and stay in this file.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false

_intrinsic: Any = intrinsic  # its stated type keeps the typing context among the arguments


@_intrinsic
def call_kernel(typing: Any, address: Any, arguments: Any, first: Any, last: Any) -> Any:
    """Call the kernel at ``address``, from Numba code."""

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        word = ir.IntType(64)
        kernel = ir.FunctionType(ir.VoidType(), [word] * 3).as_pointer()
        builder.call(builder.inttoptr(given[0], kernel), given[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@_intrinsic
def store_failure(typing: Any, status: Any, code: Any, index: Any) -> Any:
    """`emit_failure` from Numba code: the status's address, the code (not 0), the index."""

    def generate(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        emit_failure(builder, *given)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), generate


def _walk(
    table: NDArray[np.int64], first: int, last: int, status: NDArray[np.int64], threads: int
) -> int:
    status[1] = 0
    for step in range(first, last):
        kernel, arguments = table[step, 0], table[step, 1]
        extent = table[step, 2]
        chunks = max(1, min(table[step, 3], extent, MAX_CHUNKS))
        length = extent // chunks
        longer = extent - length * chunks
        if extent > 0 and threads > 1 and chunks > 1:
            for chunk in prange(chunks):
                begin = chunk * length + min(chunk, longer)
                end = (chunk + 1) * length + min(chunk + 1, longer)
                call_kernel(kernel, arguments, begin, end)
        elif extent > 0:
            for chunk in range(chunks):
                begin = chunk * length + min(chunk, longer)
                end = (chunk + 1) * length + min(chunk + 1, longer)
                call_kernel(kernel, arguments, begin, end)
        if status[1] != 0:
            status[0] = step
            return step
    return -1


_Walk = Callable[[NDArray[np.int64], int, int, NDArray[np.int64], int], int]


def _compile() -> _Walk:
    """The native form of `_walk`, from Numba's cache if there is one (compiling takes 1.5 s).

    The cache is Numba's own, next to this file: one function with one signature, whose index no two
    processes can write differently.
    """
    signature = "int64(int64[:,::1],int64,int64,int64[::1],int64)"
    options: dict[str, Any] = {"parallel": True, "nogil": True, "error_model": "numpy"}
    try:
        return cast(_Walk, njit(signature, cache=True, **options)(_walk))
    except RuntimeError:  # no folder that the cache could be written to
        return cast(_Walk, njit(signature, **options)(_walk))


@final
class PrangeDriver(Driver):
    """Runs plans with Numba's ``prange``, on at most ``NUMBA_NUM_THREADS`` threads."""

    name = "numba"

    def __init__(self) -> None:
        super().__init__()
        self._native = _compile()
        self._most: int = cast(Any, numba).config.NUMBA_NUM_THREADS
        self._forked = False
        self._lock = numba_threads

    def after_fork(self) -> None:
        self._forked = True

    def _walk(self, table: StepTable, first: int, last: int, status: Status, threads: int) -> int:
        threads = min(threads, self._most)
        if threads > 1 and not self._forked and self._lock.acquire(blocking=False):
            try:
                return self._together(table, first, last, status, threads)
            finally:
                self._lock.release()
        return self._native(table.words, first, last, status.words, 1)

    def _together(
        self, table: StepTable, first: int, last: int, status: Status, threads: int
    ) -> int:
        """With the layer's threads; Numba keeps their number per calling thread: put it back."""
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return self._native(table.words, first, last, status.words, threads)
        finally:
            numba.set_num_threads(before)
