"""If, Loop and Scan, whose bodies are graphs that see the values around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import OperandsNeededError, UnsupportedOperatorError, onnx, ptir

Body = Callable[..., tuple[Any, ...]]


@onnx("If")
def if_(condition: Any, then_branch: Body, else_branch: Body) -> Any:
    """The results of one branch."""
    if isinstance(condition, np.ndarray):
        return then_branch() if condition.reshape(-1)[0] else else_branch()
    chosen = ptir.reshape(condition, ())
    return ptir.cond(chosen, lambda: _tensors(then_branch()), lambda: _tensors(else_branch()))


def _tensors(values: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(ptir.asarray(v) for v in values)


@onnx("Loop")
def loop(most: Any, condition: Any, *state: Any, body: Body) -> Any:
    """The state after at most so many steps, while the condition holds; and what each step gave.

    A number of steps that is known, with a condition that stays known, is unrolled. Otherwise the
    body may change the state alone: results of steps whose number is unknown have no size.
    """
    is_known = all(v is None or isinstance(v, np.ndarray) for v in (most, condition))
    if is_known and (made := _unrolled(most, condition, state, body)) is not None:
        return made
    try:
        return _looped(most, condition, state, body)
    except UnsupportedOperatorError as error:
        raise OperandsNeededError((0, 1), error) from error


_MOST_UNROLLED = 1024


def _unrolled(
    most: Any, condition: Any, state: tuple[Any, ...], body: Body
) -> tuple[Any, ...] | None:
    """The loop step by step; None where the condition becomes unknown, or there is no end."""
    bound = _MOST_UNROLLED if most is None else int(most.reshape(-1)[0])
    goes = condition is None or bool(condition.reshape(-1)[0])
    given: list[tuple[Any, ...]] = []
    step = 0
    while goes and step < bound:
        if step == _MOST_UNROLLED:
            return None
        after, *made = body(np.array(step, np.int64), np.array(goes), *state)
        if not isinstance(after, np.ndarray):
            return None
        goes = bool(after.reshape(-1)[0])
        state, results = tuple(made[: len(state)]), tuple(made[len(state) :])
        given.append(results)
        step += 1
    if most is None and goes:
        return None
    return (*state, *(ptir.stack(list(each)) for each in zip(*given, strict=True)))


def _looped(most: Any, condition: Any, state: tuple[Any, ...], body: Body) -> tuple[Any, ...]:
    start = (
        ptir.full((), 0, dtype=ptir.si64),
        ptir.full((), True) if condition is None else ptir.reshape(condition, ()),
        *_tensors(state),
    )
    bound = None if most is None else ptir.reshape(most, ())

    def going(now: tuple[Tensor, ...]) -> Tensor:
        return now[1] if bound is None else ptir.logical_and(now[1], now[0] < bound)

    def step(now: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        after, *made = body(*now)
        if len(made) > len(state):
            raise UnsupportedOperatorError("a Loop of unknown length that collects results")
        return (now[0] + 1, ptir.reshape(after, ()), *_tensors(made))

    return ptir.while_loop(going, step, start)[2:]


@onnx("Scan", since=9)
def scan(
    *operands: Any,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
) -> tuple[Tensor, ...]:
    """The state after a step for each slice of the sequences, and what the steps gave."""
    count = len(operands) - num_scan_inputs
    state = _tensors(operands[:count])
    sequences = [
        _turned(ptir.moveaxis(x, axis, 0), way)
        for x, axis, way in zip(
            _tensors(operands[count:]),
            scan_input_axes or (0,) * num_scan_inputs,
            scan_input_directions or (0,) * num_scan_inputs,
            strict=True,
        )
    ]

    def step(now: Any, slices: Any) -> Any:
        made = _tensors(body(*now, *slices))
        return made[:count], made[count:]

    last, given = ptir.scan(step, state, tuple(sequences))
    axes = scan_output_axes or (0,) * len(given)
    ways = scan_output_directions or (0,) * len(given)
    return (
        *last,
        *(
            ptir.moveaxis(_turned(y, way), 0, axis)
            for y, axis, way in zip(given, axes, ways, strict=True)
        ),
    )


def _turned(x: Tensor, is_backward: int) -> Tensor:
    return ptir.flip(x, 0) if is_backward else x
