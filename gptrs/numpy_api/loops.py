"""Loops and branches over `cond`, `while_loop` and `scan`: fori_loop, map, switch,
associative_scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.batching.over_batch import over_batch
from gptrs.ir.dims import Dim, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.operand_trees import OperandTree, Sides, check_form, check_types, take_apart
from gptrs.ir.operands import describe
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import dim_text, normal_axis, si64
from gptrs.numpy_api.creation import arange
from gptrs.numpy_api.function import as_tensor, public
from gptrs.numpy_api.joining import concat, stack
from gptrs.numpy_api.manipulation import flip

__all__ = ["associative_scan", "fori_loop", "map", "switch"]

_STEP = Sides("in an operand", "in the result", "fn returns what it takes")


@public
def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """The state after ``state = body(i, state)`` for ``i`` from ``lower`` to ``upper`` − 1.

    The state is that of `while_loop`. ``i`` is an integer of rank 0: si64, or what the dtypes of
    traced bounds promote to.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        steps = arange(lower, max(lower, upper), dtype=si64)

        def each(state: Any, i: Tensor) -> tuple[Any, None]:
            return body(i, state), None

        return OPS["scan"](each, init, steps)[0]
    first, last = _bound("lower", lower), _bound("upper", upper)
    end = first + (last - first)  # both in the dtype that they share
    start = first.astype(end.dtype)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        i, inner = state
        return i + 1, body(i, inner)

    def going(state: tuple[Any, Any]) -> Tensor:
        return state[0] < end

    return OPS["while_loop"](going, step, (start, init))[1]


def _bound(name: str, value: Any) -> Tensor:
    bound = as_tensor(value)
    if bound.ndim or not bound.dtype.is_integer:
        raise ShapeError(f"{name} is {bound.type}, expected an integer of rank 0")
    return bound


@public
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f(x)`` for each slice ``x`` of the arrays in ``xs`` along their first axes, stacked.

    One after the other, in the memory of one; `vmap` runs all at once. With ``batch_size`` as many
    at once.
    """
    if batch_size is None:

        def each(state: None, x: Any) -> tuple[None, Any]:
            return state, f(x)

        return OPS["scan"](each, None, xs)[1]
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ArgumentError(f"batch_size is {describe(batch_size)}, expected at least 1")
    parts = take_apart(xs, "xs")
    count = _extent(parts, 0)
    whole, rest = count // batch_size, count % batch_size
    done = whole * batch_size
    found: list[OperandTree] = []
    if whole or not rest:
        blocks = [x[:done].reshape(whole, batch_size, *x.shape[1:]) for x in parts.tensors]
        made = map(lambda block: over_batch(f, (block,)), parts.with_tensors(blocks).value())
        tree = take_apart(made, "the result")
        joined = [x.reshape(done, *x.shape[2:]) for x in tree.tensors]
        found.append(tree.with_tensors(joined))
    if rest:
        last = parts.with_tensors([x[done:] for x in parts.tensors])
        found.append(take_apart(over_batch(f, (last.value(),)), "the result"))
    pairs = zip(*[part.tensors for part in found], strict=True)
    return found[0].with_tensors([concat(list(pair)) for pair in pairs]).value()


def _extent(parts: OperandTree, axis: int) -> int:
    """The extent of all arrays along ``axis``, which has to be known."""
    extent: Any = None
    for path, tensor in zip(parts.places, parts.tensors, strict=True):
        if not -tensor.ndim <= axis < tensor.ndim:
            raise ShapeError(f"{path} is {tensor.type}, which has no axis {axis}")
        if extent is None:
            extent = tensor.shape[axis]
        if not same(extent, tensor.shape[axis]):
            raise ShapeError(
                f"{path} is {tensor.type}, expected {dim_text(extent)} along axis {axis}",
                fix="all arrays have one extent there",
            )
    if extent is None:
        raise ArgumentError(f"there are no arrays in {parts.root}")
    if isinstance(extent, Dim):
        raise ShapeError(f"the extent {extent} along axis {axis} is symbolic, expected a number")
    return extent


@public
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``, of branches that return the same types; one of them runs.

    An ``index`` out of range is moved to the first or last branch. Raises as `cond`.
    """
    if not branches:
        raise ArgumentError("switch: there are no branches, expected at least one")
    if isinstance(index, int) and not isinstance(index, bool):
        return branches[min(max(index, 0), len(branches) - 1)](*operands)
    at = as_tensor(index)
    if at.ndim or not at.dtype.is_integer:
        raise ShapeError(f"index is {at.type}, expected an integer of rank 0")

    def choose(first: int, last: int) -> Callable[..., Any]:
        """The branches ``first`` to ``last`` − 1 by halving."""
        if last - first == 1:
            return branches[first]
        middle = (first + last) // 2
        lower, upper = choose(first, middle), choose(middle, last)
        return lambda *given: OPS["cond"](at < middle, lower, upper, *given)

    return choose(0, len(branches))(*operands)


@public
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """The results of an associative ``fn`` over the elements up to and including each along
    ``axis``.

    ``fn`` takes two trees like ``elems`` with any number of elements along ``axis``, and combines
    them place by place. It runs 2 · log₂ n times, on n elements in all each way, where `scan` runs
    n times. ``reverse`` goes from the last to the first.
    """
    parts = take_apart(elems, "elems")
    count = _extent(parts, axis)
    axes = [normal_axis(axis, tensor.ndim) for tensor in parts.tensors]

    def flipped(tensors: Sequence[Tensor]) -> list[Tensor]:
        return [flip(x, axis=at) for x, at in zip(tensors, axes, strict=True)]

    def part(tensors: Sequence[Tensor], start: int, stop: int, step: int = 1) -> list[Tensor]:
        return [
            x[(*[slice(None)] * at, slice(start, stop, step))]
            for x, at in zip(tensors, axes, strict=True)
        ]

    def combined(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
        made = take_apart(
            fn(parts.with_tensors(first).value(), parts.with_tensors(second).value()), "elems"
        )
        like = parts.with_tensors(first)
        check_form(like, made, _STEP)
        check_types(like, made, _STEP)
        return made.tensors

    def totals(tensors: Sequence[Tensor], n: int) -> list[Tensor]:
        """The results at all n places: those at odd ones from sums of pairs, by half as many."""
        if n < 2:
            return [*tensors]
        pairs = combined(part(tensors, 0, n - 1, 2), part(tensors, 1, n, 2))
        odd = totals(pairs, n // 2)
        if n == 2:
            even = part(tensors, 0, 1)
        else:
            later = combined(part(odd, 0, (n - 1) // 2), part(tensors, 2, n, 2))
            even = [
                concat([first, rest], axis=at)
                for first, rest, at in zip(part(tensors, 0, 1), later, axes, strict=True)
            ]
        return [_woven(a, b, at) for a, b, at in zip(even, odd, axes, strict=True)]

    tensors = flipped(parts.tensors) if reverse else parts.tensors
    found = totals(tensors, count)
    return parts.with_tensors(flipped(found) if reverse else found).value()


def _woven(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """The elements of ``even`` and ``odd`` along ``axis`` in turn."""
    whole = (slice(None),) * axis
    count = cast("int", odd.shape[axis])
    paired = stack([even[(*whole, slice(0, count))], odd], axis=axis + 1)
    shape = (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :])
    woven = paired.reshape(*shape)
    if even.shape[axis] == count:
        return woven
    return concat([woven, even[(*whole, slice(count, count + 1))]], axis=axis)
