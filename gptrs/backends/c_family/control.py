"""Control flow: loops as programs of one step, over a state that is overwritten.

On devices, where the host enqueues each step:

    scan        for each position: state, ys, position = step(state, ys, position, xs, captured)
    while_loop  while flag: state, flag = step(state, captured)

The steps of a scan are enqueued without waiting. A condition is read, which waits for the device,
and with it whether an element had no result. State that the body returns as it was is captured.

In C, where a row of an array is a pointer, the step is the body (`loop_body`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.control import cond, scan, while_loop
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.elementwise import add
from gptrs.ir.ops.shape import reshape
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type, si64
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Step:
    """The step of a loop as a program, and which parts of the state it changes."""

    program: Program
    changed: tuple[int, ...]


def is_control(instruction: Instruction) -> bool:
    """Whether an instruction is a branch or a loop."""
    return instruction.op in (cond, scan, while_loop)


def loop_body(instruction: Instruction) -> Step:
    """The body of a loop: its parameters are the changed state, the unchanged, the rows of xs, and
    what is captured; its results the changed state, then the ys."""
    (state, *_) = _operands(instruction)
    body: Program = instruction.attrs["body"]
    made = _Recording.of(instruction)
    given = made.unchanged()
    given += [made.input(p.type, p.name) for p in body.params[len(state) :]]
    found = made.inlined(body, given)
    return Step(made.recorder.finish(made.next_state(found) + found[len(state) :]), made.changed)


def scan_step(instruction: Instruction) -> Step:
    """The step of a scan: its parameters are the changed state, the outputs, the position, the
    unchanged state, the xs, and what is captured."""
    state, xs, captured = _operands(instruction)
    body: Program = instruction.attrs["body"]
    made = _Recording.of(instruction)
    recorder = made.recorder
    outputs = [
        recorder.input(v.type, "out", donated=True) for v in instruction.results[len(state) :]
    ]
    position = recorder.input(Type((), si64), "position", donated=True)
    given = made.unchanged()
    rows = [recorder.input(x.type, "x") for x in xs]
    others = [made.input(v.type, "captured") for v in captured]
    with interpreter(recorder):
        parts: list[Value] = []
        for row in rows:
            shape = row.shape[1:]
            start = (position, *(0 for _ in shape))
            parts.append(_value(reshape(dynamic_slice(row, start, sizes=(1, *shape)), shape=shape)))
        found = made.inlined(body, [*given, *parts, *others])
        after = made.next_state(found)
        for output, y in zip(outputs, found[len(state) :], strict=True):
            shape = output.shape[1:]
            start = (position, *(0 for _ in shape))
            update = reshape(Tensor.of_value(y, recorder), shape=(1, *shape))
            after.append(_value(dynamic_update_slice(output, update, start)))
        after.append(_value(add(position, -1 if instruction.attrs["reverse"] else 1)))
    return Step(recorder.finish(after), made.changed)


def while_step(instruction: Instruction) -> Step:
    """The step of a while loop: its parameters are the changed state, the unchanged, and what is
    captured; its last result is whether there is another step."""
    _, captured = _operands(instruction)
    made = _Recording.of(instruction)
    given = made.unchanged()
    others = [made.input(v.type, "captured") for v in captured]
    found = made.inlined(instruction.attrs["body"], [*given, *others])
    flags = made.inlined(instruction.attrs["condition"], [*found, *others])
    return Step(made.recorder.finish(made.next_state(found) + flags), made.changed)


class _Recording:
    """A step that is recorded: the state that it changes are its first parameters, donated."""

    def __init__(self, recorder: Recorder, changed: tuple[int, ...], state: Sequence[Type]) -> None:
        self.recorder, self.changed, self._state = recorder, changed, state
        self._given = {n: self.input(state[n], f"state{n}", donated=True) for n in changed}

    @classmethod
    def of(cls, instruction: Instruction) -> _Recording:
        """A recording of the step of a loop, after the changed state."""
        body: Program = instruction.attrs["body"]
        state = [value.type for value in _operands(instruction)[0]]
        pairs = enumerate(zip(body.params[: len(state)], body.results, strict=False))
        changed = tuple(n for n, (before, after) in pairs if before is not after)
        return cls(Recorder(body.name, where=instruction.where), changed, state)

    def input(self, type: Type, name: str, *, donated: bool = False) -> Value:
        """The next parameter."""
        return _value(self.recorder.input(type, name, donated=donated))

    def unchanged(self) -> list[Value]:
        """The whole state, after the unchanged state as the next parameters."""
        for n, type in enumerate(self._state):
            if n not in self.changed:
                self._given[n] = self.input(type, f"state{n}")
        return [self._given[n] for n in range(len(self._state))]

    def inlined(self, region: Program, given: Sequence[Value]) -> list[Value]:
        """The results of a region whose instructions join those that are recorded."""
        replace: Mapping[Value, Value] = dict(zip(region.params, given, strict=True))
        self.recorder.body += [instruction.reading(replace) for instruction in region.body]
        return [replace.get(result, result) for result in region.results]

    def next_state(self, found: Sequence[Value]) -> list[Value]:
        """The changed state among the results of the body."""
        return [found[n] for n in self.changed]


def _operands(instruction: Instruction) -> Sequence[tuple[Value, ...]]:
    return instruction.operands  # pyright: ignore[reportReturnType]


def _value(tensor: Tensor) -> Value:
    assert isinstance(tensor.value, Value)
    return tensor.value
