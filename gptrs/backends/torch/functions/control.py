"""Loops: emitted functions of the bodies, called from Python over values on the device."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from gptrs.backends.torch.run import Run

Values: TypeAlias = tuple[Tensor, ...]
Region: TypeAlias = Callable[..., Values]


def while_loop(
    run: Run, condition: Region, body: Region, state: Values, captured: Values
) -> Values:
    """The state after ``body`` was applied for as long as ``condition`` holds. A step waits for
    the device: its checks are read with the condition."""
    while True:
        (holds,) = condition(run, *state, *captured)
        run.settle()
        if not bool(holds):
            return state
        state = body(run, *state, *captured)


def scan(
    run: Run,
    body: Region,
    state: Values,
    xs: Values,
    captured: Values,
    length: int,
    reverse: bool,
    outputs: tuple[tuple[torch.dtype, tuple[int, ...]], ...],
) -> Values:
    """The last state, and all outputs of ``body`` in the places of their ``xs``."""
    ys = [
        torch.empty((length, *(max(n, 0) for n in shape)), dtype=dtype, device=run.device)
        for dtype, shape in outputs
    ]
    count = len(state)
    for step in reversed(range(length)) if reverse else range(length):
        found = body(run, *state, *(x[step] for x in xs), *captured)
        state = found[:count]
        for y, made in zip(ys, found[count:], strict=True):
            y[step] = made
    return (*state, *ys)
