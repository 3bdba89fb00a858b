"""One call of a bound plan."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gptrs.backends.faer.arena import Arena
from gptrs.backends.faer.binding import ARENA, READY, Bound
from gptrs.backends.faer.storage import Home
from gptrs.backends.faer.work import CallStep, ReferenceStep
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ElementError
from gptrs.ir.dims import size_at
from gptrs.ir.program import Param, Program, Value
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.kernels.driver import Failure, current_driver

if TYPE_CHECKING:
    from gptrs.backends.faer.plan import FaerPlan


class Call:
    """A run of the steps: with these arguments, in this arena."""

    def __init__(
        self, plan: FaerPlan, bound: Bound, arena: Arena, arguments: Sequence[Array | Parameter]
    ) -> None:
        self._plan, self._bound, self._arena = plan, bound, arena
        self._given = list(arguments)
        self._made: dict[int, Array] = {}
        now = bound.addresses
        if now[ARENA] != arena.address:
            bound.move(ARENA, arena.address)
        for buffer, number, wanted in bound.inputs:
            array = cast("Array", arguments[number])
            if array.flags.num & wanted != wanted:
                self._given[number] = array = np.array(array, order="C")
            address: int = array.__array_interface__["data"][0]
            if now[buffer] != address:
                bound.move(buffer, address)
        for buffer, number, shape, dtype in bound.outputs:
            self._made[number] = array = np.empty(shape, dtype)
            address = array.__array_interface__["data"][0]
            if now[buffer] != address:
                bound.move(buffer, address)
        if bound.weights:
            self._load(arguments)

    def _load(self, arguments: Sequence[Array | Parameter]) -> None:
        """Have the words point to the parameters, which are the same ones in most calls."""
        bound = self._bound
        parameters = [arguments[number] for _, number, _ in bound.weights]
        if len(bound.loaded) == len(parameters) and all(map(is_, bound.loaded, parameters)):
            return
        bound.loaded, bound.held = [], []
        for buffer, number, form in bound.weights:
            array = self._plan.parameter(arguments[number], form)
            if array.flags.num & READY != READY:
                array = np.array(array, order="C")
            bound.move(buffer, array.ctypes.data)
            bound.held.append(array)
        bound.loaded = parameters

    def results(self) -> tuple[Array, ...]:
        """Run the steps. Raises `ElementError` where an element has no result."""
        bound, driver = self._bound, current_driver()
        table, status, threads = bound.table, bound.status, bound.threads
        for first, last, reference in bound.segments:
            if reference is not None:
                self._refer(reference)
                continue
            failure = driver.run(table, status, threads=threads, first=first, last=last)
            if failure is not None:
                self._fail(failure)
        if bound.direct:
            return tuple(self._made.values())
        returned: set[Home] = set()
        return tuple([self._result(value, returned) for value in self._plan.program.results])

    def _refer(self, step: ReferenceStep) -> None:
        """Do an instruction by its meaning."""
        for value, array in zip(step.results, self._evaluate(step), strict=True):
            np.copyto(self._look(value), array)

    def _evaluate(self, step: ReferenceStep) -> tuple[Array, ...]:
        instruction, inputs = step.instruction, step.inputs
        if isinstance(step, CallStep):
            program: Program = instruction.attrs["definition"]
        else:
            params = cast("tuple[Param, ...]", inputs)
            program = Program("step", params, (instruction,), instruction.results)
        arrays = [self._look(value) for value in inputs]
        return ReferencePlan(program).run(arrays, self._bound.sizes)

    def _fail(self, failure: Failure) -> None:
        """Raise the error of a kernel that failed, in the words of the reference."""
        work = self._bound.owners[failure.step]
        assert isinstance(work, ReferenceStep)
        self._evaluate(work)
        raise ElementError(f"a kernel failed with code {failure.code} at element {failure.index}")

    def _look(self, value: Value) -> Array:
        """A value as an array over its memory."""
        home = self._plan.storage.homes[value]
        shape = [size_at(n, self._bound.sizes) for n in value.type.shape]
        dtype = value.type.dtype.numpy
        found: Any
        if home.kind == "arena":
            begin, size = self._bound.offsets[home], dtype.itemsize
            for extent in shape:
                size *= extent
            found = self._arena.block[begin : begin + size].view(dtype)
        elif home.kind == "result":
            found = self._made.setdefault(home.number, np.empty(shape, dtype))
        elif home.kind == "constant":
            found = self._plan.program.body[home.number].attrs["value"]
        else:
            found = self._given[home.number]
            found = found.numpy() if isinstance(found, Parameter) else found
        return found.reshape(shape)

    def _result(self, value: Value, returned: set[Home]) -> Array:
        """A result in memory that nobody else has."""
        home = self._plan.storage.homes[value]
        array = self._look(value)
        if (home.kind == "result" or home.donated) and home not in returned:
            returned.add(home)
            return array
        return np.array(array, order="C")
