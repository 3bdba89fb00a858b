"""Batching rules of control flow: their regions become programs over the batch.

A condition that is the same for all examples stays one. Where it differs, a conditional runs both
branches and selects, and a loop runs until it is done for all examples, of which those that are
done keep their state. Examples that are not active are masked (`gptrs.ir.batching.replay`): what
may fail does not fail there. Regions in which that cannot be masked run one example at a time, as
the body of a `scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gptrs.ir.batching.axes import move_axis
from gptrs.ir.batching.replay import (
    Mapped,
    Replay,
    Result,
    call,
    cares,
    maskable,
    per_example,
    results_in,
)
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.operand_trees import element_type
from gptrs.ir.operands import map_operand
from gptrs.ir.ops.control import cond, scan, while_loop
from gptrs.ir.ops.custom import custom_call
from gptrs.ir.ops.effects import callback, check, print_
from gptrs.ir.ops.elementwise import logical_and, logical_not, select
from gptrs.ir.ops.reduce import reduce_any
from gptrs.ir.program import Instruction, Program
from gptrs.ir.tensor import Tensor

Results = list[Result]


def tensor_of(x: Result) -> Tensor:
    """The tensor of a value, mapped or not."""
    return x.tensor if isinstance(x, Mapped) else x


def flags_of(values: Sequence[Result]) -> list[bool]:
    """Which of ``values`` are mapped."""
    return [isinstance(x, Mapped) for x in values]


def flagged(tensors: Sequence[Tensor], flags: Sequence[bool]) -> Results:
    """``tensors`` as values, those that ``flags`` says are mapped."""
    return [Mapped(x) if flag else x for x, flag in zip(tensors, flags, strict=True)]


def all_of(mask: Tensor | None, other: Tensor) -> Tensor:
    """``other`` where the mask holds."""
    return other if mask is None else logical_and(mask, other)


class _Region:
    """A region being recorded again. ``given`` are its parameters, one for each of ``like``, in
    front of which ``change`` leaves the batch axis out."""

    def __init__(
        self, name: str, like: Sequence[Result], change: Sequence[bool] | None = None
    ) -> None:
        self.recorder = Recorder(name)
        self.given: Results = []
        taken = change or [False] * len(like)
        for number, (x, inner) in enumerate(zip(like, taken, strict=True)):
            tensor = tensor_of(x)
            type = element_type(tensor.type) if inner else tensor.type
            made = self.recorder.input(type, f"x{number}")
            self.given.append(Mapped(made) if isinstance(x, Mapped) else made)

    def record(self, body: Callable[[Results], Results]) -> Results:
        """The results of ``body`` for the parameters."""
        with interpreter(self.recorder):
            return body(self.given)

    def finish(self, replay: Replay, results: Results, flags: Sequence[bool]) -> Program:
        """The program, whose results get the batch axis where ``flags`` say so."""
        with interpreter(self.recorder):
            tensors = [
                replay.spread(x) if flag else tensor_of(x)
                for x, flag in zip(results, flags, strict=True)
            ]
        return self.recorder.finish(tensors)


def _masks(replay: Replay, *regions: Program) -> list[Result]:
    """The mask as an operand, where a region needs it."""
    needed = replay.mask is not None and any(map(cares, regions))
    return [Mapped(replay.mask)] if needed and replay.mask is not None else []


def _inner(replay: Replay, masks: Sequence[Result]) -> Replay:
    return Replay(replay.size, tensor_of(masks[0]) if masks else None)


@cond.batching
def _cond(replay: Replay, i: Instruction, operands: tuple[Any, ...]) -> Results:
    pred, given = operands
    branches: tuple[Program, Program] = i.attrs["then"], i.attrs["otherwise"]
    if not isinstance(pred, Mapped):
        return _one_condition(replay, pred, list(given), branches)
    if not all(map(maskable, branches)):
        return one_by_one(replay, i, operands)
    flags = pred.tensor
    masks = [all_of(replay.mask, f) for f in (flags, logical_not(flags))]
    then, otherwise = (
        Replay(replay.size, mask if cares(branch) else None).run(branch, list(given))
        for branch, mask in zip(branches, masks, strict=True)
    )
    chosen: Results = []
    for a, b in zip(map(replay.spread, then), map(replay.spread, otherwise), strict=True):
        chosen.append(Mapped(select(per_example(flags, a), a, b)))
    return chosen


def _one_condition(
    replay: Replay, pred: Tensor, given: Results, branches: tuple[Program, Program]
) -> Results:
    """A conditional that takes the same branch for all examples."""
    masks = _masks(replay, *branches)
    regions = [_Region(branch.name, [*given, *masks]) for branch in branches]

    def run(branch: Program) -> Callable[[Results], Results]:
        def body(x: Results) -> Results:
            return _inner(replay, x[len(given) :]).run(branch, x[: len(given)])

        return body

    found = [r.record(run(branch)) for r, branch in zip(regions, branches, strict=True)]
    flags = [a or b for a, b in zip(*map(flags_of, found), strict=True)]
    then, otherwise = (
        r.finish(replay, results, flags) for r, results in zip(regions, found, strict=True)
    )
    tensors = tuple([tensor_of(x) for x in (*given, *masks)])
    return flagged(call(cond, (pred, tensors), {"then": then, "otherwise": otherwise}), flags)


@while_loop.batching
def _while(replay: Replay, i: Instruction, operands: tuple[Any, ...]) -> Results:
    state, captured = list(operands[0]), list(operands[1])
    condition, body = i.attrs["condition"], i.attrs["body"]
    masks = _masks(replay, condition, body)
    count = len(state)

    def step(program: Program) -> Callable[[Results], Results]:
        def run(x: Results) -> Results:
            last = len(x) - len(masks)
            return _inner(replay, x[last:]).run(program, x[:last])

        return run

    while True:  # until what the body makes of the state differs by example where the state does
        given = [*state, *captured, *masks]
        test, next_state = _Region("condition", given), _Region("body", given)
        (done,) = test.record(step(condition))
        if isinstance(done, Mapped):
            return _differing_loop(replay, i, state, captured)
        after = next_state.record(step(body))
        flags = [a or b for a, b in zip(flags_of(state), flags_of(after), strict=True)]
        if flags == flags_of(state):
            break
        state = [Mapped(replay.spread(x)) if f else x for x, f in zip(state, flags, strict=True)]
    if masks:
        with interpreter(test.recorder):
            done = logical_and(tensor_of(done), reduce_any(tensor_of(test.given[-1])))
    attrs = {
        "condition": test.recorder.finish([tensor_of(done)]),
        "body": next_state.finish(replay, after, flags),
    }
    tensors = [tensor_of(x) for x in given]
    return flagged(call(while_loop, (tuple(tensors[:count]), tuple(tensors[count:])), attrs), flags)


def _differing_loop(replay: Replay, i: Instruction, state: Results, captured: Results) -> Results:
    """A loop with a condition for each example: which of them are active is part of the state."""
    condition, body = i.attrs["condition"], i.attrs["body"]
    if not (maskable(condition) and maskable(body)):
        return one_by_one(replay, i, (tuple(state), tuple(captured)))
    count, size = len(state), replay.size
    kept = [
        result is param and not isinstance(x, Mapped)
        for result, param, x in zip(body.results, body.params[:count], state, strict=True)
    ]
    state = [x if k else Mapped(replay.spread(x)) for x, k in zip(state, kept, strict=True)]
    (first,) = replay.run(condition, [*state, *captured])
    active: Result = Mapped(all_of(replay.mask, replay.spread(first)))
    given = [*state, active, *captured]

    def step(x: Results) -> Results:
        before, (running, *outside) = x[:count], x[count:]
        inner = Replay(size, tensor_of(running))
        after: Results = []
        for old, new, keep in zip(before, inner.run(body, [*before, *outside]), kept, strict=True):
            if keep:
                after.append(old)
                continue
            last = replay.spread(old)
            after.append(Mapped(select(inner.active(last), replay.spread(new), last)))
        (test,) = inner.run(condition, [*after, *outside])
        return [*after, Mapped(logical_and(tensor_of(running), replay.spread(test)))]

    test, next_state = _Region("condition", given), _Region("body", given)
    going = test.record(lambda x: [reduce_any(tensor_of(x[count]))])
    attrs = {
        "condition": test.recorder.finish([tensor_of(going[0])]),
        "body": next_state.finish(replay, next_state.record(step), flags_of(given[: count + 1])),
    }
    tensors = [tensor_of(x) for x in given]
    found = call(while_loop, (tuple(tensors[: count + 1]), tuple(tensors[count + 1 :])), attrs)
    return flagged(found[:count], flags_of(state))


@scan.batching
def _scan(replay: Replay, i: Instruction, operands: tuple[Any, ...]) -> Results:
    state, rows, captured = (list(part) for part in operands)
    body: Program = i.attrs["body"]
    captured += _masks(replay, body)
    count, masked = len(state), len(captured) > len(operands[2])
    rows = [Mapped(move_axis(x.tensor, 0, 1)) if isinstance(x, Mapped) else x for x in rows]

    def step(x: Results) -> Results:
        last = len(x) - masked
        return _inner(replay, x[last:]).run(body, x[:last])

    while True:
        given = [*state, *rows, *captured]
        slices = [count <= n < count + len(rows) for n in range(len(given))]
        region = _Region(body.name, given, slices)
        after = region.record(step)
        flags = [a or b for a, b in zip(flags_of(state), flags_of(after[:count]), strict=True)]
        if flags == flags_of(state):
            break
        state = [Mapped(replay.spread(x)) if f else x for x, f in zip(state, flags, strict=True)]
    flags += flags_of(after[count:])
    attrs = {**i.attrs, "body": region.finish(replay, after, flags)}
    parts = tuple(tuple(map(tensor_of, part)) for part in (state, rows, captured))
    found = flagged(call(scan, parts, attrs), flags)
    outputs = [
        Mapped(move_axis(y.tensor, 1, 0)) if isinstance(y, Mapped) else y for y in found[count:]
    ]
    return [*found[:count], *outputs]


@custom_call.batching
def _custom_call(replay: Replay, i: Instruction, operands: tuple[Any, ...]) -> Results:
    return replay.run(i.attrs["definition"], list(operands[0]))


def one_by_one(replay: Replay, i: Instruction, operands: tuple[Any, ...]) -> Results:
    """An instruction run one example at a time, as the body of a loop."""
    given = list(results_in(operands))
    rows = [x for x in given if isinstance(x, Mapped)]
    whole = [x for x in given if not isinstance(x, Mapped)]
    region = _Region(i.op.name, [*rows, *whole], [True] * len(rows) + [False] * len(whole))
    made = iter(map(tensor_of, region.given))
    inside = {id(x): next(made) for x in (*rows, *whole)}

    def placed(operand: Any) -> Any:
        return inside[id(operand)] if isinstance(operand, Tensor | Mapped) else operand

    body = region.record(lambda _: list(call(i.op, map_operand(placed, operands), i.attrs)))
    attrs = {"body": region.recorder.finish(list(map(tensor_of, body))), "length": replay.size}
    parts = (), tuple(x.tensor for x in rows), tuple(whole)
    return [Mapped(x) for x in call(scan, parts, {**attrs, "reverse": False})]


for _op in (print_, callback, check):  # one effect for each example, in their order
    _op.batching(one_by_one)
