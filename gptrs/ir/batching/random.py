"""Batching rules of the random ops: each seed has numbers of its own, and seeds lead the result."""

from __future__ import annotations

from typing import Any

from gptrs.ir.batching.axes import spread
from gptrs.ir.dims import DimLike
from gptrs.ir.ops.random import random_bits, rng_normal, rng_uniform
from gptrs.ir.tensor import Tensor


@rng_uniform.batching
def _(_: DimLike, __: Any, seeds: Tensor, **attrs: Any) -> Tensor:
    return rng_uniform(seeds, **attrs)


@rng_normal.batching
def _(_: DimLike, __: Any, seeds: Tensor, **attrs: Any) -> Tensor:
    return rng_normal(seeds, **attrs)


@random_bits.batching
def _(size: DimLike, mapped: tuple[bool, ...], *operands: Any, **attrs: Any) -> Tensor:
    return random_bits(*spread(operands, size, mapped), **attrs)
