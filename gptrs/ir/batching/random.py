"""Batching rules of the random ops: each seed has numbers of its own."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dims import DimLike
from gptrs.ir.op import Op
from gptrs.ir.ops.control import scan
from gptrs.ir.ops.random import rng_normal, rng_uniform
from gptrs.ir.tensor import Tensor


def for_each_seed(op: Op[..., Any]) -> None:
    """Give ``op`` the rule of a loop over the seeds."""

    @op.batching
    def _(_: DimLike, __: Any, seeds: Tensor, **attrs: Any) -> Tensor:  # pyright: ignore[reportUnusedFunction]
        def step(state: None, seed: Tensor) -> tuple[None, Tensor]:
            return state, op(seed, **attrs)

        return scan(step, None, seeds)[1]


for _op in (rng_uniform, rng_normal):
    for_each_seed(_op)
