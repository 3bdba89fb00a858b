"""Runs of branches and loops on a device: nested plans, enqueued step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gptrs.backends.c_family.control import is_control, scan_step, while_step
from gptrs.backends.c_family.device import DeviceBuffer, KernelDevice
from gptrs.ir.dims import same, size_at
from gptrs.ir.ops.control import cond, scan
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.types import Type, si64

Buffers = Sequence[DeviceBuffer]
Made = Callable[[Program], Any]
"""The plan of a program, which `Enclosing.nested` takes."""


class Enclosing(Protocol):
    """The run of a plan that a branch or a loop is a part of."""

    device: KernelDevice
    sizes: Mapping[str, int]

    def nested(self, plan: Any, arguments: Buffers) -> tuple[DeviceBuffer, ...] | None:
        """The results of a branch or of a step; None where it has none."""
        ...

    def host(self, value: Value) -> Any:
        """The elements of a value on the host."""
        ...

    def on_device(self, value: Value) -> DeviceBuffer:
        """The array of a value, which is not to be written."""
        ...

    def copied(self, value: Value) -> DeviceBuffer:
        """The array of a value in memory of its own."""
        ...

    def empty(self, value: Value) -> DeviceBuffer:
        """Memory for the array of a value."""
        ...

    def flag(self, buffer: DeviceBuffer) -> bool | None:
        """A truth value on the device; None where an element before it has no result."""
        ...


class ControlRun(ABC):
    """A branch or a loop, which runs as part of a run of the plan around it."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction

    @abstractmethod
    def enqueue(self, run: Enclosing) -> Buffers | None:
        """The results, in buffers that no other value has; None where an element has none."""


class _Branch(ControlRun):
    def __init__(self, instruction: Instruction, made: Made) -> None:
        super().__init__(instruction)
        self._then = made(instruction.attrs["then"])
        self._otherwise = made(instruction.attrs["otherwise"])

    def enqueue(self, run: Enclosing) -> Buffers | None:
        flag, given = self.instruction.operands
        plan = self._then if run.host(_one(flag)) else self._otherwise
        return run.nested(plan, [run.on_device(v) for v in _several(given)])


class _Scan(ControlRun):
    def __init__(self, instruction: Instruction, made: Made) -> None:
        super().__init__(instruction)
        self._changed: tuple[int, ...] = ()
        self._plan: Any = None
        if not same(instruction.attrs["length"], 0):  # a step would have no row to read
            step = scan_step(instruction)
            self._changed, self._plan = step.changed, made(step.program)

    def enqueue(self, run: Enclosing) -> Buffers | None:
        state, xs, captured = map(_several, self.instruction.operands)
        attrs, changed = self.instruction.attrs, self._changed
        count = size_at(attrs["length"], run.sizes)
        first = max(count - 1, 0) if attrs["reverse"] else 0
        outputs = [run.empty(v) for v in self.instruction.results[len(state) :]]
        now: Buffers = [
            *(run.copied(state[n]) for n in changed),
            *outputs,
            run.device.array(run.device.upload(np.asarray(first)), Type((), si64)),
        ]
        kept = [run.on_device(v) for n, v in enumerate(state) if n not in changed]
        kept += [run.on_device(v) for v in (*xs, *captured)]
        for _ in range(count):
            found = run.nested(self._plan, [*now, *kept])
            if found is None:
                return None
            now = found
        last = dict(zip(changed, now, strict=False))
        left = [last[n] if n in last else run.copied(v) for n, v in enumerate(state)]
        return [*left, *now[len(changed) : -1]]


class _While(ControlRun):
    def __init__(self, instruction: Instruction, made: Made) -> None:
        super().__init__(instruction)
        self._condition = made(instruction.attrs["condition"])
        self._step = while_step(instruction)
        self._plan = made(self._step.program)

    def enqueue(self, run: Enclosing) -> Buffers | None:
        state, captured = map(_several, self.instruction.operands)
        changed = self._step.changed
        others = [run.on_device(v) for v in captured]
        flags = run.nested(self._condition, [*(run.on_device(v) for v in state), *others])
        now: Buffers = [run.copied(state[n]) for n in changed]
        kept = [run.on_device(v) for n, v in enumerate(state) if n not in changed]
        while True:
            going = None if flags is None else run.flag(flags[-1])
            if going is None:
                return None
            if not going:
                break
            found = run.nested(self._plan, [*now, *kept, *others])
            if found is None:
                return None
            now, flags = found[:-1], found[-1:]
        last = dict(zip(changed, now, strict=True))
        return [last[n] if n in last else run.copied(v) for n, v in enumerate(state)]


def control_run(instruction: Instruction, dtypes: frozenset[str], made: Made) -> ControlRun | None:
    """How a branch or a loop runs on a device with these dtypes; None for the host."""
    values = (*instruction.values(), *instruction.results)
    if not is_control(instruction) or any(v.type.dtype.name not in dtypes for v in values):
        return None
    if instruction.op is cond:
        return _Branch(instruction, made)
    return _Scan(instruction, made) if instruction.op is scan else _While(instruction, made)


def _one(operand: object) -> Value:
    assert isinstance(operand, Value)
    return operand


def _several(operand: Any) -> tuple[Value, ...]:
    return operand or ()
