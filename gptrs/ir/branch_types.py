"""Type unification of control flow: result types of branches and of loop bodies.

Called by `gptrs.ir.control` between tracing the regions and closing them. The two branches of a
cond have to return the same types, and a loop body the types of its state. A weak tensor (made of a
Python number) takes the dtype of the tensor in the same place of the other tree.

The types of a loop's state are a fixed point: a weak part of the state takes the dtype that the
body returns in its place, and the body is traced again, until no dtype changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gptrs.ir.closure_conversion import RegionRecorder
from gptrs.ir.dispatch import OPS, Interpreter, current, interpreter
from gptrs.ir.operand_trees import OperandTree, Sides, check_form, check_types
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import KIND_RANK, DType
from gptrs.lazy_dataclass import dataclass

_BRANCHES = Sides("in then", "in otherwise", "both branches return values of the same types")
_STATE = Sides("before a step", "after it", "the state of a loop keeps its shapes and dtypes")


@dataclass(frozen=True)
class Outcome:
    """The result tree of a function, and the recorder of its trace (None if it ran eagerly)."""

    parts: OperandTree
    recorder: RegionRecorder | None = None
    ys: OperandTree | None = None  # outputs of a step of a scan

    @property
    def has_effects(self) -> bool:
        """Whether the trace has an instruction with effects."""
        return self.recorder is not None and any(i.has_effects for i in self.recorder.body)

    def cast(self, tensor: Tensor, dtype: DType, *, weak: bool) -> Tensor:
        """``tensor``, which the function returned, in another dtype."""
        return cast_to(tensor, dtype, weak, self.recorder)

    def region(self) -> tuple[RegionRecorder, list[Tensor]]:
        """The recorder and the result tensors, as `close` takes them."""
        assert self.recorder is not None
        return self.recorder, self.parts.tensors + (self.ys.tensors if self.ys else [])


def agreed(first: Outcome, second: Outcome) -> tuple[Outcome, Outcome]:
    """The results of two branches, with weak results in the dtype of the other branch's result."""
    check_form(first.parts, second.parts, _BRANCHES)
    ones: list[Tensor] = []
    others: list[Tensor] = []
    for a, b in zip(first.parts.tensors, second.parts.tensors, strict=True):
        weak = a.weak and b.weak
        ones.append(first.cast(a, b.dtype if _gives_way(a, b) else a.dtype, weak=weak))
        others.append(second.cast(b, a.dtype if _gives_way(b, a) else b.dtype, weak=weak))
    first = replace(first, parts=first.parts.with_tensors(ones))
    second = replace(second, parts=second.parts.with_tensors(others))
    check_types(first.parts, second.parts, _BRANCHES)
    return first, second


def settled(
    state: OperandTree, step: Callable[[OperandTree], Outcome]
) -> tuple[OperandTree, Outcome]:
    """The fixed point of a loop: its state before a step, and the result of the step with its
    types."""
    while True:
        outcome = step(state)
        check_form(state, outcome.parts, _STATE)
        pairs = list(zip(state.tensors, outcome.parts.tensors, strict=True))
        if not any(_gives_way(before, after) for before, after in pairs):
            break
        raised = [
            cast_to(before, after.dtype, after.weak, current())
            if _gives_way(before, after)
            else before
            for before, after in pairs
        ]
        state = state.with_tensors(raised)
    kept = [
        outcome.cast(after, b.dtype if _gives_way(after, b) else after.dtype, weak=b.weak)
        for b, after in pairs
    ]
    outcome = replace(outcome, parts=outcome.parts.with_tensors(kept))
    check_types(state, outcome.parts, _STATE)
    return state, outcome


def _gives_way(weak: Tensor, other: Tensor) -> bool:
    """Whether ``weak`` takes the dtype of ``other``: it is weak, and of a lower or equal kind."""
    mine, others = KIND_RANK[weak.dtype.kind], KIND_RANK[other.dtype.kind]
    return weak.weak and (mine < others or (mine == others and not other.weak))


def cast_to(tensor: Tensor, dtype: DType, weak: bool, scope: Interpreter | None) -> Tensor:
    """``tensor`` in a dtype, weak or not; ``scope`` records the cast of a traced tensor."""
    if tensor.dtype is not dtype:
        with interpreter(scope if tensor.is_traced else None):
            tensor = OPS["cast"](tensor, dtype=dtype)
    if tensor.weak == weak:
        return tensor
    if tensor.value is not None:
        return Tensor.of_value(tensor.value, tensor.recorder, weak=weak)
    return Tensor.of_array(tensor.numpy(), weak=weak)
