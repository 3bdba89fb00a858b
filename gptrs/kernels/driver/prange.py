"""The Numba driver: Numba's parallel loops execute the step table. Importing it imports Numba.

    for step in first..last:
        NAME_parallel(its arguments, extent, chunks)                   a fused loop, else
        for chunk in prange(chunks):  kernel(arguments, begin, end)
        stop if the status has a code

``NAME_parallel`` is the function of the module that `explain` shows, compiled by Numba from its
text, in half a second; only where ``GPTRS_DRIVER`` asks for this driver, and for steps of several
chunks. The bits are those of the kernel.

It works with every threading layer that Numba finds. `workqueue` aborts the process when two
threads launch at once and GNU OpenMP ends a forked child at its first launch, so one caller has the
layer at a time, and a child of a process that had this driver runs alone. (This driver cannot
protect a user's own parallel Numba functions from each other.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast, final

import numba
import numpy as np
from llvmlite import ir
from numba import cfunc, njit, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.intrinsics import doubles, words
from gptrs.kernels.compiler.parallel_loop import LoopSource
from gptrs.kernels.compiler.shield import shielded
from gptrs.kernels.driver.control_block import MAX_CHUNKS
from gptrs.kernels.driver.driver import Driver
from gptrs.kernels.driver.recording import recorded_run
from gptrs.kernels.driver.step_table import Status, StepTable, emit_failure
from gptrs.locks import late_import_that_logs, new_lock, numba_threads

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


def _run_steps(
    table: NDArray[np.int64],
    loops: NDArray[np.int64],
    first: int,
    last: int,
    status: NDArray[np.int64],
    threads: int,
) -> int:
    status[1] = 0
    for step in range(first, last):
        kernel, arguments = table[step, 0], table[step, 1]
        extent = table[step, 2]
        chunks = max(1, min(table[step, 3], extent, MAX_CHUNKS))
        if extent > 0 and threads > 1 and chunks > 1 and loops[step] != 0:
            call_kernel(loops[step], arguments, extent, chunks)
        elif extent > 0 and threads > 1 and chunks > 1:
            for chunk in prange(chunks):
                begin = chunk * extent // chunks
                end = (chunk + 1) * extent // chunks
                call_kernel(kernel, arguments, begin, end)
        elif extent > 0:
            for chunk in range(chunks):
                begin = chunk * extent // chunks
                end = (chunk + 1) * extent // chunks
                call_kernel(kernel, arguments, begin, end)
        if status[1] != 0:
            status[0] = step
            return step
    return -1


_RunSteps = Callable[[NDArray[np.int64], NDArray[np.int64], int, int, NDArray[np.int64], int], int]


def _compile() -> _RunSteps:
    """The native form of `_run_steps`, from Numba's cache if there is one (compiling takes 1.5 s).

    The cache is Numba's own, next to this file: one function with one signature, whose index no two
    processes can write differently.
    """
    signature = "int64(int64[:,::1],int64[::1],int64,int64,int64[::1],int64)"
    options: dict[str, Any] = {"parallel": True, "nogil": True, "error_model": "numpy"}
    try:
        return cast(_RunSteps, njit(signature, cache=True, **options)(_run_steps))
    except RuntimeError:  # no folder that the cache could be written to
        return cast(_RunSteps, njit(signature, **options)(_run_steps))


def compile_loop(loop: LoopSource) -> int:
    """The address of `LoopSource.parallel` as Numba compiles it, as a native function
    ``void(intp arguments, intp extent, intp chunks)``."""
    given = [
        f"{'numbers' if kind == 'float64' else 'block'}[{place}]"
        for place, kind in enumerate(loop.parameters.values())
    ]
    entry = (
        "def entry(arguments, extent, chunks):\n"
        "    block, numbers = words(arguments), doubles(arguments)\n"
        f"    {loop.parallel}({', '.join([*given, 'extent', 'chunks'])})\n"
    )
    namespace: dict[str, Any] = {"words": words, "doubles": doubles}
    exec(loop.module() + entry, namespace)
    with late_import_that_logs():  # Numba imports what parallel loops need when it meets one
        compiled: Any = cfunc("void(intp,intp,intp)", error_model="numpy")(namespace["entry"])
    _compiled[loop.name] = compiled
    return compiled.address


def _address(loop: LoopSource) -> int:
    """The address of `compile_loop`, which compiles each loop once."""
    with _compiling:
        found = _compiled.get(loop.name)
        return shielded(lambda: compile_loop(loop)) if found is None else found.address


_compiled: dict[str, Any] = {}  # by the kernel's name; their code is never freed
_NONE = np.zeros(0, np.int64)
_compiling = new_lock()


def _same_code() -> bool:
    """Whether Numba multiplies and adds as kernels do, and calls the same functions."""
    svml: bool = cast(Any, numba).config.USING_SVML
    return isa.current().fma == isa.host_levels()[0].fma and not svml


@final
class PrangeDriver(Driver):
    """Runs plans with Numba's ``prange``, on at most ``NUMBA_NUM_THREADS`` threads.

    With ``loops``, fused loops are Numba's own parallel functions.
    """

    name = "numba"

    def __init__(self, *, loops: bool = True) -> None:
        super().__init__()
        self._native = _compile()
        self._most: int = cast(Any, numba).config.NUMBA_NUM_THREADS
        self._loops = loops
        self._forked = False
        self._buffer = 0  # of a recording

    def after_fork(self) -> None:
        self._forked, self._buffer = True, 0

    def record(self, buffer: int) -> None:
        self._buffer = buffer

    def ticks(self) -> int:
        return time.perf_counter_ns()

    def _run_steps(
        self, table: StepTable, first: int, last: int, status: Status, threads: int
    ) -> int:
        if not self._buffer:
            return self._run(table, first, last, status, threads)
        with recorded_run(self._buffer, table.address, first, last, threads) as stamp:
            for step in range(first, last):
                if self._run(table, step, step + 1, status, threads) >= 0:
                    return step
                stamp()
        return -1

    def _run(self, table: StepTable, first: int, last: int, status: Status, threads: int) -> int:
        threads = min(threads, self._most)
        if threads > 1 and not self._forked:
            loops = self._loops_of(table)
            if numba_threads.acquire(blocking=False):
                try:
                    return self._together(table, loops, first, last, status, threads)
                finally:
                    numba_threads.release()
        return self._native(table.words, _NONE, first, last, status.words, 1)

    def _loops_of(self, table: StepTable) -> NDArray[np.int64]:
        """The addresses of the parallel loops of ``table``, compiled if nobody had use for them."""
        found = table.loop_addresses
        if found is None:
            found = np.zeros(table.count, np.int64)
            for step, kernel in enumerate(table.kernels if self._loops and _same_code() else ()):
                if table.words[step, 3] > 1 and (loop := kernel.loop) is not None:
                    found[step] = _address(loop)
            table.loop_addresses = found
        return found

    def _together(
        self,
        table: StepTable,
        loops: NDArray[np.int64],
        first: int,
        last: int,
        status: Status,
        threads: int,
    ) -> int:
        """With the layer's threads; Numba keeps their number per calling thread: put it back."""
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            return self._native(table.words, loops, first, last, status.words, threads)
        finally:
            numba.set_num_threads(before)
