"""Control flow on devices: the plan of a branch or of a step, which the host enqueues.

A loop is a program of one step, over a state that is overwritten:

    scan        for each position: state, ys, position = step(state, ys, position, xs, captured)
    while_loop  while flag: state, flag = step(state, captured)

The steps of a scan are enqueued without waiting. A condition is read, which waits for the device,
and with it whether an element had no result. State that the body returns as it was is captured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.ops.control import cond, scan, while_loop
from gptrs.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from gptrs.ir.ops.elementwise import add
from gptrs.ir.ops.shape import reshape
from gptrs.ir.program import Instruction, Program, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type, si64


@dataclass(frozen=True)
class Step:
    """The step of a loop as a program, and which parts of the state it changes."""

    program: Program
    changed: tuple[int, ...]


def is_control(instruction: Instruction) -> bool:
    """Whether an instruction is a branch or a loop."""
    return instruction.op in (cond, scan, while_loop)


def scan_step(instruction: Instruction) -> Step:
    """The step of a scan: its parameters are the changed state, the outputs, the position, the
    unchanged state, the xs, and what is captured."""
    state, xs, captured = _operands(instruction)
    body: Program = instruction.attrs["body"]
    changed = _changed(body, len(state))
    recorder = Recorder(body.name, where=instruction.where)
    given = dict[int, Value]()
    for n in changed:
        given[n] = _value(recorder.input(state[n].type, f"state{n}", donated=True))
    outputs = [
        recorder.input(v.type, "out", donated=True) for v in instruction.results[len(state) :]
    ]
    position = recorder.input(Type((), si64), "position", donated=True)
    for n, value in enumerate(state):
        if n not in given:
            given[n] = _value(recorder.input(value.type, f"state{n}"))
    rows = [recorder.input(x.type, "x") for x in xs]
    others = [_value(recorder.input(v.type, "captured")) for v in captured]
    with interpreter(recorder):
        parts: list[Value] = []
        for row in rows:
            shape = row.shape[1:]
            start = (position, *(0 for _ in shape))
            parts.append(_value(reshape(dynamic_slice(row, start, sizes=(1, *shape)), shape=shape)))
        found = _inlined(recorder, body, [*(given[n] for n in range(len(state))), *parts, *others])
        made = [found[n] for n in changed]
        for output, y in zip(outputs, found[len(state) :], strict=True):
            shape = output.shape[1:]
            start = (position, *(0 for _ in shape))
            update = reshape(Tensor.of_value(y, recorder), shape=(1, *shape))
            made.append(_value(dynamic_update_slice(output, update, start)))
        made.append(_value(add(position, -1 if instruction.attrs["reverse"] else 1)))
    return Step(recorder.finish(made), changed)


def while_step(instruction: Instruction) -> Step:
    """The step of a while loop: its parameters are the changed state, the unchanged, and what is
    captured; its last result is whether there is another step."""
    state, captured = _operands(instruction)
    body: Program = instruction.attrs["body"]
    condition: Program = instruction.attrs["condition"]
    changed = _changed(body, len(state))
    recorder = Recorder(body.name, where=instruction.where)
    given = dict[int, Value]()
    for n in changed:
        given[n] = _value(recorder.input(state[n].type, f"state{n}", donated=True))
    for n, value in enumerate(state):
        if n not in given:
            given[n] = _value(recorder.input(value.type, f"state{n}"))
    others = [_value(recorder.input(v.type, "captured")) for v in captured]
    found = _inlined(recorder, body, [*(given[n] for n in range(len(state))), *others])
    flags = _inlined(recorder, condition, [*found, *others])
    return Step(recorder.finish([*(found[n] for n in changed), *flags]), changed)


def _operands(instruction: Instruction) -> Sequence[tuple[Value, ...]]:
    return instruction.operands  # pyright: ignore[reportReturnType]


def _changed(body: Program, count: int) -> tuple[int, ...]:
    pairs = zip(body.params[:count], body.results[:count], strict=True)
    return tuple(n for n, (before, after) in enumerate(pairs) if before is not after)


def _inlined(recorder: Recorder, region: Program, given: Sequence[Value]) -> list[Value]:
    """The results of a region whose instructions join those that are recorded."""
    replace: Mapping[Value, Value] = dict(zip(region.params, given, strict=True))
    recorder.body += [instruction.reading(replace) for instruction in region.body]
    return [replace.get(result, result) for result in region.results]


def _value(tensor: Tensor) -> Value:
    assert isinstance(tensor.value, Value)
    return tensor.value
