"""Functions of one, two and three spatial axes, and the orders of axes: channels second outside,
channels last in the ops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from gptrs.errors import ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.numpy_api.nn.operands import nn_function

P = ParamSpec("P")
R = TypeVar("R")


def at_rank(body: Callable[Concatenate[int, P], R], rank: int) -> Callable[P, R]:
    """The function of ``ptir.nn`` for ``rank`` spatial axes: ``pool_nd(rank, ...)`` is
    ``pool2d(...)``, with the same signature but for the rank."""
    function = cast("Any", partial(body, rank))
    function.__name__ = body.__name__.replace("_nd", f"{rank}d")
    function.__module__ = body.__module__
    function.__doc__ = body.__doc__
    return nn_function(function)


def batched(x: Tensor, rank: int) -> tuple[Tensor, bool]:
    """x [N, C, spatial...], with N = 1 for one example [C, spatial...], and whether N was there."""
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"input has rank {x.ndim}, expected {rank + 2}, or {rank + 1} of one")
    return (x, True) if x.ndim == rank + 2 else (x.unsqueeze(0), False)


def channels_last(x: Tensor) -> Tensor:
    """[N, C, spatial...] as [N, spatial..., C]."""
    return OPS["transpose"](x, perm=(0, *range(2, x.ndim), 1))


def channels_second(y: Tensor, batched: bool) -> Tensor:
    """[N, spatial..., C] as [N, C, spatial...], without N where it was not there."""
    turned: Tensor = OPS["transpose"](y, perm=(0, y.ndim - 1, *range(1, y.ndim - 1)))
    return turned if batched else turned.squeeze(0)
