"""Control flow that Python has a part in: branches and loops with a plan for each region.

A loop that is no step of the plan itself (`gptrs.backends.faer.native_loops`) packs arrays in each
call; the driver repeats its steps (`repeat`). Python runs a loop where one of them is not native,
and takes the branches.

A parameter of the model is passed to regions as a parameter, so that a weight is packed once and
not in each iteration. The state of a loop is copied at the start; after that the body may overwrite
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from gptrs.backends.faer.steps import ControlStep, Iterations, RegionPlan
from gptrs.errors import PtirError
from gptrs.ir.dims import size_at
from gptrs.ir.ops.control import cond, while_loop
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Value
from gptrs.ir.types import Array

Argument: TypeAlias = Array | Parameter
Sizes: TypeAlias = Mapping[str, int]


def drive(step: ControlStep, look: Callable[[Value], Argument], sizes: Sizes) -> Sequence[Array]:
    """The results of a control step in fresh memory; ``look`` returns the operands."""
    given = [look(value) for value in step.given]
    try:
        if step.instruction.op is cond:
            return _branch(
                step, _array(look(cast("Value", step.instruction.operands[0]))), given, sizes
            )
        state = [_array(a) for a in given[: _state_size(step)]]
        rest = given[len(state) :]
        if step.instruction.op is while_loop:
            return _loop(step, state, rest, sizes)
        return _scan(step, state, rest, sizes)
    except PtirError as error:
        error.context.append(step.instruction.op.name)
        error.where = error.where or step.instruction.where
        raise


def _state_size(step: ControlStep) -> int:
    return len(cast("tuple[Any, ...]", step.instruction.operands[0]))


def _branch(
    step: ControlStep, pred: Array, given: Sequence[Argument], sizes: Sizes
) -> Sequence[Array]:
    plan = step.plans["then" if pred else "otherwise"]
    return plan.run(_fitting(plan, 0, given), sizes)


def _loop(
    step: ControlStep, state: Sequence[Array], rest: Sequence[Argument], sizes: Sizes
) -> Sequence[Array]:
    condition, body = step.plans["condition"], step.plans["body"]
    asked, fixed = _fitting(condition, len(state), rest), _fitting(body, len(state), rest)
    iterations = Iterations(state, (), fixed, (), condition=condition, asked=asked)
    if (found := body.repeat(iterations, sizes)) is not None:
        return found
    state = _copies(state)
    while condition.run([*state, *asked], sizes)[0]:
        state = body.run([*state, *fixed], sizes)
    return state


def _scan(
    step: ControlStep, state: Sequence[Array], rest: Sequence[Argument], sizes: Sizes
) -> Sequence[Array]:
    body, attrs, count = step.plans["body"], step.instruction.attrs, len(state)
    length = size_at(attrs["length"], sizes)
    along = len(cast("tuple[Any, ...]", step.instruction.operands[1]))
    xs = [_array(x) for x in rest[:along]]
    fixed = _fitting(body, count + along, rest[along:])
    ys: list[Array] = []
    for result in step.results[count:]:
        # An extent that is negative at these sizes is the first step's error, or no step's.
        shape = [max(size_at(n, sizes), 0) for n in result.type.shape]
        ys.append(np.empty(shape, result.type.dtype.numpy))
    iterations = Iterations(state, xs, fixed, ys, attrs["reverse"], length)
    if (last := body.repeat(iterations, sizes)) is not None:
        return [*last, *ys]
    state = _copies(state)
    for n in reversed(range(length)) if attrs["reverse"] else range(length):
        found = body.run([*state, *[x[n, ...] for x in xs], *fixed], sizes)
        state = found[:count]
        for y, made in zip(ys, found[count:], strict=True):
            y[n] = made
    return [*state, *ys]


def _copies(arrays: Sequence[Array]) -> list[Array]:
    return [np.array(a, order="C") for a in arrays]


def _fitting(plan: RegionPlan, first: int, given: Sequence[Argument]) -> list[Argument]:
    """``given`` as arguments of a region, for its parameters from number ``first`` on."""
    fitting: list[Argument] = []
    for param, argument in zip(plan.program.params[first:], given, strict=True):
        if param.role != "parameter":
            argument = _array(argument)
        elif not isinstance(argument, Parameter):
            argument = argument.view()  # by whose identity its packed form is known for this run
        fitting.append(argument)
    return fitting


def _array(argument: Argument) -> Array:
    return argument.numpy() if isinstance(argument, Parameter) else argument
