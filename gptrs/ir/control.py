"""Tracing of cond, while_loop and scan: Python functions become regions of one instruction.

Under a `Recorder` each function is traced into a region (`gptrs.ir.closure_conversion`), the result
types are unified (`gptrs.ir.branch_types`, which traces a loop body again when a dtype changes),
and one instruction is emitted. In eager mode the functions run as Python. The ops, with the
documentation for users, are in `gptrs.ir.ops.control`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, cast

import numpy as np

from gptrs.errors import ArgumentError, NanError, PtirError, ShapeError, TraceError
from gptrs.ir.branch_types import Outcome, agreed, cast_to, settled
from gptrs.ir.closure_conversion import RegionRecorder, close, is_parameter
from gptrs.ir.dims import Dim, DimLike, same, size_at, surely_greater
from gptrs.ir.dispatch import OPS, current, interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.operand_trees import (
    OperandTree,
    Sides,
    check_form,
    check_types,
    element_type,
    take_apart,
)
from gptrs.ir.operands import describe
from gptrs.ir.program import Attrs, Role, Value
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Type, dim_text, i1

Function = Callable[..., Any]

_OUTPUTS = Sides("in one step", "in another", "all steps return outputs of the same types")

_TOKEN = Tensor.of_array(np.zeros((), np.bool_))
"""A result for regions that have effects alone: a program without results could not be read."""


def cond(pred: Any, then: Function, otherwise: Function, *operands: Any) -> Any:
    """One of two functions of ``operands``, see `gptrs.ir.ops.control.cond`."""
    flag = _truth(pred, "pred")
    given = take_apart(operands, "operands", modules=False)
    outer = current()
    if not isinstance(outer, Recorder):
        return _cond_eagerly(bool(flag.numpy()), then, otherwise, given)
    first, second = agreed(
        _branch("then", then, given, outer), _branch("otherwise", otherwise, given, outer)
    )
    if not first.parts.tensors:
        if first.has_effects or second.has_effects:
            return cond(flag, _with_token(then), _with_token(otherwise), *operands)[0]
        return first.parts.value()
    (one, other), captured = close([first.region(), second.region()])
    operands = (flag, (*given.tensors, *captured))
    results = _emit(outer, "cond", operands, {"then": one, "otherwise": other})
    return _like(first.parts, results).value()


def _with_token(function: Function) -> Function:
    return lambda *operands: (function(*operands), _TOKEN)


def _branch(
    name: str, function: Function, given: OperandTree, enclosing: Recorder | None
) -> Outcome:
    def call(operands: tuple[Any, ...]) -> Any:
        return function(*operands)

    recorder, returned = _trace(name, call, [given], enclosing)
    return Outcome(take_apart(returned, "result"), recorder)


def _cond_eagerly(flag: bool, then: Function, otherwise: Function, given: OperandTree) -> Any:
    taken = Outcome(take_apart((then if flag else otherwise)(*given.value()), "result"))
    name, function = ("otherwise", otherwise) if flag else ("then", then)
    try:
        other = _branch(name, function, given, None)
    except Exception as error:
        if isinstance(error, PtirError) and not isinstance(error, TraceError):
            raise
        return taken.parts.value()  # the other one looks at values, which only eager mode has
    if flag:
        return agreed(taken, other)[0].parts.value()
    return agreed(other, taken)[1].parts.value()


def while_loop(condition: Function, body: Function, init: Any) -> Any:
    """The state when ``condition`` no longer holds, see `gptrs.ir.ops.control.while_loop`."""
    state = take_apart(init, "state")
    outer = current()
    if not isinstance(outer, Recorder):
        return _while_eagerly(condition, body, state)
    state, step = settled(state, lambda s: _next_state(body, s, outer))
    recorder, returned = _trace("condition", condition, [_typed(state)], outer)
    if not state.tensors:
        if not (step.has_effects or any(i.has_effects for i in recorder.body)):
            return state.value()

        def holds(state: Any) -> Any:
            return condition(state[0])

        def advance(state: Any) -> Any:
            return body(state[0]), state[1]

        return while_loop(holds, advance, (init, _TOKEN))[0]
    flag = _truth(returned, "condition")
    (test, next_state), captured = close([(recorder, [flag]), step.region()])
    operands = tuple(state.tensors), tuple(captured)
    attrs = {"condition": test, "body": next_state}
    return _like(state, _emit(outer, "while_loop", operands, attrs)).value()


def _settled_ahead(state: OperandTree, step: Callable[[OperandTree], Outcome]) -> OperandTree:
    """``state`` in the dtypes that ``step``, which is traced for it, keeps: a first step that ran
    again for them would have its effects twice."""
    if any(tensor.weak for tensor in state.tensors):
        with suppress(Exception):  # it looks at values; or it is wrong, as the step itself will say
            return settled(state, step)[0]
    return state


def _next_state(body: Function, state: OperandTree, enclosing: Recorder | None) -> Outcome:
    recorder, returned = _trace("body", body, [_typed(state)], enclosing, donated=True)
    return Outcome(take_apart(returned, "state"), recorder)


def _while_eagerly(condition: Function, body: Function, state: OperandTree) -> Any:
    def step(state: OperandTree) -> Outcome:
        return Outcome(take_apart(body(state.value()), "state"))

    state = _settled_ahead(state, lambda s: _next_state(body, s, None))
    if not _truth(condition(state.value()), "condition").numpy():
        with suppress(TraceError):  # the body looks at values, which only eager mode has
            state, _ = settled(state, lambda s: _next_state(body, s, None))
        return state.value()
    for number in count():
        if not _truth(condition(state.value()), "condition").numpy():
            break
        with _iteration("while_loop", number):
            state = settled(state, step)[1].parts
    return state.value()


def scan(
    body: Function,
    init: Any,
    xs: Any = None,
    *,
    length: DimLike | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The last state and the stacked outputs, see `gptrs.ir.ops.control.scan`."""
    state, rows = take_apart(init, "state"), take_apart(xs, "xs")
    count = _length(rows, length)
    outer = current()
    if not isinstance(outer, Recorder):
        return _scan_eagerly(body, state, rows, count, reverse)
    state, step = settled(state, lambda s: _next_step(body, s, rows, outer))
    assert step.ys is not None
    if not (state.tensors or step.ys.tensors) and step.has_effects:

        def both(state: Any, x: Any) -> Any:
            after, y = body(state[0], x)
            return (after, state[1]), y

        (value, _), ys = scan(both, (init, _TOKEN), xs, length=count, reverse=reverse)
        return value, ys
    if not (state.tensors or step.ys.tensors):
        return state.value(), step.ys.value()
    (program,), captured = close([step.region()])
    operands = tuple(state.tensors), tuple(rows.tensors), tuple(captured)
    attrs = {"body": program, "length": count, "reverse": reverse}
    results = _emit(outer, "scan", operands, attrs)
    last, ys = results[: len(state.tensors)], results[len(state.tensors) :]
    return _like(state, last).value(), _like(step.ys, ys).value()


def _next_step(
    body: Function, state: OperandTree, rows: OperandTree, enclosing: Recorder | None
) -> Outcome:
    given = [_typed(state), replace(_typed(rows, element_type), root="x")]
    recorder, returned = _trace("body", body, given, enclosing, donated=True)
    return _both(returned, recorder)


def _both(returned: object, recorder: RegionRecorder | None = None) -> Outcome:
    pair = cast("tuple[object, ...]", returned) if isinstance(returned, tuple) else ()
    if len(pair) != 2:
        raise ArgumentError(
            f"body returned {describe(cast('object', returned))}, expected (state, y)",
            fix="return state, None where there is no output",
        )
    state, y = pair
    return Outcome(take_apart(state, "state"), recorder, take_apart(y, "y"))


def _scan_eagerly(
    body: Function, state: OperandTree, rows: OperandTree, count: DimLike, reverse: bool
) -> Any:
    if isinstance(count, Dim):
        raise ArgumentError(f"length {count} is a symbol, which has no value in eager mode")
    state = _settled_ahead(state, lambda s: _next_step(body, s, rows, None))
    outputs: list[OperandTree] = []
    for n in reversed(range(count)) if reverse else range(count):
        slices = [Tensor.of_array(t.numpy()[n, ...], weak=t.weak) for t in rows.tensors]
        x = rows.with_tensors(slices)

        def step(state: OperandTree, x: OperandTree = x) -> Outcome:
            return _both(body(state.value(), x.value()))

        with _iteration("scan", n):
            outcome = settled(state, step)[1]
        state = outcome.parts
        assert outcome.ys is not None
        if outputs:
            check_form(outputs[0], outcome.ys, _OUTPUTS)
            check_types(outputs[0], outcome.ys, _OUTPUTS)
        outputs.append(outcome.ys)
    if not outputs:
        state, outcome = settled(state, lambda s: _next_step(body, s, rows, None))
        assert outcome.ys is not None
        return state.value(), _stacked(outcome.ys, []).value()
    return state.value(), _stacked(outputs[0], outputs[::-1] if reverse else outputs).value()


@contextmanager
def _iteration(op: str, number: int) -> Generator[None]:
    """A `NanError` in the block says in which iteration it was."""
    try:
        yield
    except NanError as error:
        error.context.append(f"{op} body, iteration {number}")
        raise


def _stacked(like: OperandTree, outputs: Sequence[OperandTree]) -> OperandTree:
    """The outputs of all steps stacked, with the types of ``like``."""
    made: list[Tensor] = []
    for place, tensor in enumerate(like.tensors):
        shape = [size_at(n, {}) for n in tensor.shape]
        array = np.empty((len(outputs), *shape), tensor.dtype.numpy)
        for n, each in enumerate(outputs):
            array[n] = each.tensors[place].numpy()
        made.append(Tensor.of_array(array, weak=tensor.weak))
    return like.with_tensors(made)


def _length(rows: OperandTree, length: DimLike | None) -> DimLike:
    """The number of steps: the first extent of every array."""
    if length is not None and (not isinstance(length, int | Dim) or isinstance(length, bool)):
        raise ArgumentError(f"length is {describe(length)}, expected an integer")
    for path, tensor in zip(rows.places, rows.tensors, strict=True):
        if not tensor.ndim:
            raise ShapeError(f"{path} is {tensor.type}, which has no first axis to go along")
        if length is None:
            length = tensor.shape[0]
        elif not same(length, tensor.shape[0]):
            raise ShapeError(
                f"{path} is {tensor.type}, expected {dim_text(length)} along its first axis",
                fix="all arrays in xs have one first extent, which is the length",
            )
    if length is None:
        raise ArgumentError("there are neither xs nor a length", fix="scan(..., length=10)")
    if surely_greater(0, length):
        raise ArgumentError(f"length is {length}, expected at least 0")
    return length


def _typed(parts: OperandTree, change: Callable[[Type], Type] = lambda type: type) -> OperandTree:
    """Abstract tensors: the same tree with types and no elements."""
    return parts.with_tensors(
        [Tensor.of_value(Value(change(t.type)), weak=t.weak) for t in parts.tensors]
    )


def _trace(
    name: str,
    function: Function,
    arguments: Sequence[OperandTree],
    enclosing: Recorder | None,
    *,
    donated: bool = False,
) -> tuple[RegionRecorder, Any]:
    """Trace ``function`` on stand-ins for its arguments; ``donated``: the first tree is donated to
    it."""
    recorder = RegionRecorder(name, enclosing)
    given: list[Any] = []
    for number, parts in enumerate(arguments):
        stand_ins: list[Tensor] = []
        for path, tensor in zip(parts.places, parts.tensors, strict=True):
            role: Role = "parameter" if is_parameter(tensor) else "input"
            own = donated and number == 0
            made = recorder.input(tensor.type, path, role=role, donated=own, weak=tensor.weak)
            stand_ins.append(made)
        given.append(parts.with_tensors(stand_ins).value())
    with interpreter(recorder):
        return recorder, function(*given)


def _emit(outer: Recorder, name: str, operands: tuple[Any, ...], attrs: Attrs) -> Sequence[Tensor]:
    """Append the instruction to the program of ``outer``."""
    results = outer.apply(OPS[name], operands, attrs)
    return cast("Sequence[Tensor]", results if isinstance(results, tuple) else (results,))


def _like(parts: OperandTree, results: Sequence[Tensor]) -> OperandTree:
    """The results of an instruction in the tree ``parts``, weak where ``parts`` is."""
    pairs = zip(parts.tensors, results, strict=True)
    return parts.with_tensors([cast_to(r, r.dtype, t.weak, None) for t, r in pairs])


def _truth(value: Any, name: str) -> Tensor:
    """``value`` as one i1. Raises `ShapeError` when it is something else."""
    (leaf,) = (found := take_apart(value, name)).leaves or (None,)
    if found.structure.kind is not None or not isinstance(leaf, Tensor):
        raise ArgumentError(f"{name} is {describe(value)}, expected one truth value, i1[]")
    if leaf.type != Type((), i1):
        raise ShapeError(
            f"{name} is {leaf.type}, expected one truth value, i1[]",
            fix="compare (x > 0), and reduce with ptir.reduce_any or ptir.reduce_all",
        )
    return leaf
