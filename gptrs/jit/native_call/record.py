"""Records: what native calls check, run and return for one cached call, as words.

`record_of` collects the rows of checks and the fields of a launch. A record is a tuple that begins
with the array of its words and the cached call; behind them are the objects that the words refer
to, as far as a record keeps them alive: not the parameters and arguments of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gptrs.backends.base import Launch
from gptrs.backends.weight_residency import Lease, next_use
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type
from gptrs.jit.cache import Slot
from gptrs.jit.fast_path.fast_key import ArgumentBinding
from gptrs.jit.guards import Guard
from gptrs.jit.native_call.argument_checks import add_arguments
from gptrs.jit.native_call.checks import Checks, NoRowsError
from gptrs.jit.native_call.context_checks import add_context
from gptrs.jit.native_call.guard_checks import add_guard
from gptrs.kernels.driver.main_thread import main_thread_address
from gptrs.kernels.native_call.fields import SINGLE, TUPLE, Field
from gptrs.kernels.native_call.layout import new_array_address, slot
from gptrs.kernels.native_call.rows import Op
from gptrs.lazy_dataclass import dataclass

Record: TypeAlias = tuple[Any, ...]
_MOST_WORDS = 1 << 13  # of the state, on the stack of whatever thread calls
_RUNNING, _IDLE, _EMPTY = 1, 0, ""


@dataclass(frozen=True)
class Results:
    """The results of a program as the function returns them."""

    tensors: Sequence[tuple[int, Type, bool]]
    """Result of the program, type, weakness."""
    join: Callable[[list[object]], object] | None
    """The return value from a list of Tensors; None if it is a Tensor."""
    is_tuple: bool
    """Whether it is a tuple of them."""


@dataclass(frozen=True)
class Hit:
    """A call that the call cache has answered."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    binding: ArgumentBinding
    arrays: int
    """The number of arrays among the arguments."""
    roots: int
    """The number of objects that the guard reads from."""
    guard: Guard
    values: Sequence[Any]
    """What the guard has read."""
    cached: Any
    """The cached call, which has a slot ``used``."""
    slot: Slot[Any]
    ticks: object
    """The counter of uses."""
    variables: tuple[str, ...]
    """The variables of the environment in the key."""
    results: Results


def record_of(hit: Hit, launch: Launch) -> Record | None:
    """The record of a call; None where it keeps to the Python path."""
    checks = Checks()
    try:
        registers = add_arguments(checks, hit.binding, hit.args, hit.kwargs)
        if checks.arrays != hit.arrays or any(n >= hit.arrays for n, _ in launch.inputs):
            return None
        for number, flags in launch.inputs:
            if number in registers:
                checks.add(Op.FLAGS, registers[number], 0, flags)
        add_context(checks, hit.variables, launch.driver, launch.threads)
        add_guard(checks, hit.guard, hit.roots, hit.values)
    except NoRowsError:
        return None
    checks.add(Op.END)
    words = _Words(checks, launch)
    if words.state() > _MOST_WORDS:
        return None
    words.arrays()
    words.binding()
    if not words.lease():
        return None
    words.cache(hit)
    words.run()
    words.results(hit.results)
    held = *checks.held, *launch.held, hit.slot, hit.ticks, hit.results
    return words.fields, hit.cached, held


class _Words:
    """Fills in the fields of a record."""

    def __init__(self, checks: Checks, launch: Launch) -> None:
        self.fields = np.zeros(len(Field), np.int64)
        self._checks, self._launch = checks, launch
        self._inputs = checks.arrays

    def _set(self, values: Mapping[Field, int]) -> None:
        for field, value in values.items():
            self.fields[field] = value

    def state(self) -> int:
        """The layout of the state; returns its words."""
        outputs = self._inputs + len(self._launch.outputs)
        registers = self._checks.registers
        size = registers + 2 * outputs + 2 * self._inputs
        self._set(
            {
                Field.ROWS: self._checks.words(self._checks.rows),
                Field.STATE: size,
                Field.ARRAYS: 8 * registers,
                Field.OBJECTS: 8 * (registers + outputs),
                Field.NUMBERS: 8 * (registers + 2 * outputs),
            }
        )
        return size

    def arrays(self) -> None:
        """The arrays of arguments and results, and where their addresses go."""
        launch, checks = self._launch, self._checks
        places = [number for number, _ in launch.inputs]
        places += range(self._inputs, self._inputs + len(launch.outputs))
        rows: list[int] = []
        for shape, dtype in launch.outputs:
            checks.held.append(dtype)
            rows += id(dtype), len(shape), checks.words(shape)
        copies = [
            word
            for source, target, size in launch.copies
            for word in (places[source], places[target], size)
        ]
        moves = [
            word
            for source, place, offset in launch.relocations
            for word in (places[source], place, offset)
        ]
        self._set(
            {
                Field.INPUTS: self._inputs,
                Field.HELD: len(launch.inputs),
                Field.HELD_ROWS: checks.words(number for number, _ in launch.inputs),
                Field.OUTPUTS: len(launch.outputs),
                Field.OUTPUT_ROWS: checks.words(rows),
                Field.NEW_ARRAY: new_array_address(),
                Field.NDARRAY: id(np.ndarray),
                Field.RELOCATIONS: len(launch.relocations),
                Field.RELOCATION_ROWS: checks.words(moves),
                Field.COPIES: len(launch.copies),
                Field.COPY_ROWS: checks.words(copies),
            }
        )

    def binding(self) -> None:
        """The binding and its arena."""
        launch = self._launch
        self._checks.held += launch.free, launch.arenas
        self._set({Field.BOUND: id(launch.bound), Field.FREE: id(launch.free)})
        if launch.arenas is not None:
            words = [word for row in launch.arena_relocations for word in row]
            self._set(
                {
                    Field.ARENAS: id(launch.arenas),
                    Field.ARENA_BYTES: launch.arena_bytes,
                    Field.ARENA_WORDS: slot(launch.arena_type, "words"),
                    Field.ARENA_ADDRESS: launch.arena_address,
                    Field.ARENA_RELOCATIONS: len(launch.arena_relocations),
                    Field.ARENA_ROWS: self._checks.words(words),
                }
            )

    def lease(self) -> bool:
        """The lease on the packed weights; false if there is none now."""
        lease = self._launch.lease
        if lease is None:
            return True
        if (given := lease.given) is None:
            return False
        times: Any = next_use
        self._checks.held += lease, given
        self._set(
            {
                Field.LEASE: id(lease),
                Field.GIVEN: id(given),
                Field.LEASE_GIVEN: slot(Lease, "given"),
                Field.LEASE_RUNNING: slot(Lease, "running"),
                Field.LEASE_USED: slot(Lease, "used"),
                Field.TIMES: id(times.__self__),
                Field.RUNNING: id(_RUNNING),
                Field.IDLE: id(_IDLE),
            }
        )
        return True

    def cache(self, hit: Hit) -> None:
        """The last uses of the program and of the cached call."""
        self._set(
            {
                Field.SLOT: id(hit.slot),
                Field.SLOT_DROPPED: slot(Slot, "dropped"),
                Field.SLOT_USED: slot(Slot, "used"),
                Field.TICKS: id(hit.ticks),
                Field.CACHED: id(hit.cached),
                Field.CACHED_USED: slot(hit.cached.__class__, "used"),
                Field.KEPT: id(False),
            }
        )

    def run(self) -> None:
        launch = self._launch
        self._set(
            {
                Field.RUN: launch.driver.run,
                Field.BLOCK: launch.driver.words,
                Field.ORDER: launch.order,
                Field.STATUS: launch.status,
                Field.POLL: launch.poll,
                Field.BRIEF: int(launch.is_brief),
                Field.MAIN: main_thread_address(),
            }
        )

    def results(self, results: Results) -> None:
        outputs, rows = self._launch.results, list[int]()
        for result, type, weak in results.tensors:
            self._checks.held.append(type)
            rows += outputs[result], id(type), id(weak)
        join = SINGLE if results.join is None else TUPLE if results.is_tuple else id(results.join)
        self._set(
            {
                Field.RESULTS: len(results.tensors),
                Field.RESULT_ROWS: self._checks.words(rows),
                Field.TENSOR: id(Tensor),
                Field.TENSOR_TYPE: slot(Tensor, "_type"),
                Field.TENSOR_ARRAY: slot(Tensor, "_array"),
                Field.TENSOR_DONATED: slot(Tensor, "_donated_to"),
                Field.TENSOR_VALUE: slot(Tensor, "value"),
                Field.TENSOR_RECORDER: slot(Tensor, "recorder"),
                Field.TENSOR_WEAK: slot(Tensor, "weak"),
                Field.NONE: id(None),
                Field.EMPTY: id(_EMPTY),
                Field.JOIN: join,
            }
        )
