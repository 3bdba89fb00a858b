"""Step tables: the instruction format that drivers execute, and how kernels report failures.

A kernel is a native function `void(intp arguments, intp first, intp last)`: the address of its
argument block (64-bit words whose meaning the kernel defines), and a half-open range of its
parallel extent. A *step* is a kernel with its block, its extent and the number of chunks that the
extent is cut into (`cuts`). Steps run in order: all chunks of one step end before the next step
starts, and their stores are visible to it. Chunks of one step run in any order, on any thread.

    int64 [steps, 4]:   | kernel | arguments | extent | chunks |
    Status, int64 [7]:  | step | code | index | poll | exception (3) |

A kernel cannot raise. A kernel that can fail has the address of the plan's `Status` in its argument
block: `emit_failure` stores an error code there, and the plan stops after that step. A kernel that
may run for long calls the function ``poll``, if there is one (`gptrs.kernels.driver.polling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from gptrs.errors import ArgumentError
from gptrs.kernels.compiler.parallel_loop import LoopSource
from gptrs.kernels.driver.control_block import MAX_CHUNKS
from gptrs.lazy_dataclass import dataclass

CODE, POLL, EXCEPTION = 1, 3, 4
"""Words of a status: the code, the address of `gptrs.kernels.driver.polling.poll_address`, or 0,
and the first of the exception that it keeps."""
INTERRUPTED = 1 << 32
"""The code of a kernel that ended because of the exception of a signal handler."""


class Step(NamedTuple):
    """One row of a step table: two addresses, the extent, and how many chunks it is cut into.

    A single chunk runs in the calling thread and wakes no worker. A step without extent is skipped.
    """

    kernel: int
    arguments: int
    extent: int
    chunks: int = 1


class LoopKernel(Protocol):
    """A kernel that may be a loop written for Numba."""

    @property
    def loop(self) -> LoopSource | None:
        """Its source, if it is one."""
        ...


@final
class StepTable:
    """Steps in the form that drivers read: int64 [steps, 4] in C order.

    The caller keeps kernels and argument blocks alive. `words` may be changed in place between
    runs. Raises `ArgumentError` for a step that no driver could run.
    """

    def __init__(self, steps: Iterable[Step], kernels: Sequence[LoopKernel] = ()) -> None:
        rows = list(steps)
        for i, step in enumerate(rows):
            if step.kernel == 0 or step.extent < 0 or not 1 <= step.chunks <= MAX_CHUNKS:
                raise ArgumentError(
                    f"step {i}: expected a kernel, an extent of at least 0 and 1 to {MAX_CHUNKS}"
                    f" chunks, got {step}"
                )
        flat = [word for step in rows for word in step]  # nested, NumPy takes ten times as long
        self.words: NDArray[np.int64] = np.array(flat, np.int64).reshape(len(rows), 4)
        self.address: int = self.words.ctypes.data
        self.count: int = len(rows)
        self.kernels = kernels
        """Of the steps, where drivers may look at their sources."""
        self.loop_addresses: NDArray[np.int64] | None = None
        """By step: where a driver has compiled its loop as a parallel one, or 0."""
        self._order: tuple[tuple[int, ...], int, object] | None = None

    def without(self, places: Iterable[int]) -> StepTable:
        """A table that skips the steps at these places; the others keep their numbers."""
        rows = [Step(*row) for row in self.words.tolist()]
        for place in places:
            rows[place] = rows[place]._replace(extent=0)
        return StepTable(rows, self.kernels)

    def order(self, *words: int) -> tuple[tuple[int, ...], int, object]:
        """The address of an array of this table's address and these words, between those and the
        array itself: mostly what the last run of the table was given.

        A function of C takes longer with each argument, as long as all of this with five.
        """
        order = self._order
        if order is None or order[0] != words:
            array = np.array([self.address, *words], np.int64)
            self._order = order = words, array.ctypes.data, array
        return order


@dataclass(frozen=True, slots=True)
class Failure:
    """The first failure that a run met: its step, the kernel's code, the element or row."""

    step: int
    code: int
    index: int


@final
class Status:
    """The memory where kernels report failures: step, code and index, an int64 each; then `POLL`
    and `EXCEPTION`.

    Code 0 means that all is well. A kernel that fails exchanges code 0 for its own by one
    compare-exchange, and stores the index if that succeeds. Then the kernel returns; its result
    does not matter. The driver clears the code when it starts and stores the step when it
    stops. If several chunks fail, one of them is reported. One status serves one run at a time.
    """

    def __init__(self) -> None:
        self.words: NDArray[np.int64] = np.zeros(EXCEPTION + 3, np.int64)
        self.address: int = self.words.ctypes.data

    def failure(self) -> Failure | None:
        """The failure of the last run, if any."""
        step, code, index = self.words[:POLL].tolist()
        return Failure(step, code, index) if code else None


def emit_failure(builder: Any, status: Any, code: Any, index: Any) -> None:
    """Store ``code`` (not 0) and ``index`` in the status at address ``status``, if it is the first.

    ``builder`` is an llvmlite ``IRBuilder``, the others are its i64 values.
    """
    word = status.type
    zero, one, two = (ir.Constant(word, value) for value in range(3))
    words = builder.inttoptr(status, word.as_pointer())
    exchange = builder.cmpxchg(builder.gep(words, [one]), zero, code, "monotonic", "monotonic")
    with builder.if_then(builder.extract_value(exchange, 1), likely=False):
        builder.store(index, builder.gep(words, [two]))


def cuts(extent: int, chunks: int) -> list[tuple[int, int]]:
    """The ranges that a step's extent is cut into; they depend on nothing else.

    No more than there are elements; those that are longer, by one, are spread evenly, as a thread
    takes one run of them and another thread another.
    """
    if extent <= 0:
        return []
    chunks = max(1, min(chunks, extent, MAX_CHUNKS))
    firsts = [i * extent // chunks for i in range(chunks)]
    return list(zip(firsts, [*firsts[1:], extent], strict=True))
