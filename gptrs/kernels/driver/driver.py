"""The interface of drivers: executors of step tables, without a return to Python between steps.

Implementations: `gptrs.kernels.driver.pool_driver` (native worker threads) and
`gptrs.kernels.driver.prange` (Numba's parallel loops); `gptrs.kernels.driver.current` chooses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from gptrs.errors import ArgumentError
from gptrs.kernels.driver.repetition import Repetition, Steps, repeat_in_python
from gptrs.kernels.driver.step_table import Failure, Status, StepTable
from gptrs.locks import tell_children


class NativeDriver(NamedTuple):
    """A driver for native code: ``run(block, order)`` of `gptrs.kernels.driver.worker_pool`."""

    run: int
    """The address of the function."""
    words: int
    """The address of two words: the control block, and the number of threads that its workers
    suffice for. Both change: a forked child has a new block, which has no workers."""
    repeat: int
    """The addresses of the functions ``repeat(block, order)`` and ``ticks()``."""
    ticks: int


class Driver(ABC):
    """Runs step tables. One driver may be called by many Python threads at once."""

    name: str

    def __init__(self) -> None:
        tell_children(self)

    def run(
        self,
        table: StepTable,
        status: Status,
        *,
        threads: int,
        first: int = 0,
        last: int | None = None,
    ) -> Failure | None:
        """Run the steps ``first`` to ``last`` (all) on at most ``threads`` threads.

        The GIL is released meanwhile. A failed step ends the run; its failure is returned.
        Raises `ArgumentError` for steps outside the table.
        """
        if last is None:
            last = table.count
        if not 0 <= first <= last <= table.count:
            raise ArgumentError(f"steps {first} to {last} of a table with {table.count}")
        if self._run_steps(table, first, last, status, threads) < 0:
            return None
        return status.failure()

    def repeat(self, repetition: Repetition, first: int, last: int) -> int:
        """Run the iterations ``first`` to ``last`` of a repetition, and return ``last``; before
        that the iteration whose condition does not hold, or that failed (see the statuses)."""

        def failed(steps: Steps) -> bool:
            return self.run(steps.table, steps.status, threads=steps.threads) is not None

        return repeat_in_python(failed, repetition, first, last)

    @abstractmethod
    def record(self, buffer: int) -> None:
        """Have all runs from now on, on any thread, append timestamps to the buffer at this address
        (`gptrs.kernels.driver.recording`); 0 for none. A forked child has none."""

    @abstractmethod
    def ticks(self) -> int:
        """The counter that timestamps are taken from."""

    def native(self) -> NativeDriver | None:
        """How native code runs steps; None if this driver is Python's."""
        return None

    @abstractmethod
    def _run_steps(
        self, table: StepTable, first: int, last: int, status: Status, threads: int
    ) -> int: ...

    @abstractmethod
    def after_fork(self) -> None:
        """Called in a forked child, whose only thread is the one that forked."""
