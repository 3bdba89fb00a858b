"""Rejection sampling, and inversion by sequential search: loops over whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gptrs.ir.dims import Shape
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, i1, si32, ui64
from gptrs.numpy_api.arithmetic import where
from gptrs.numpy_api.creation import arange, zeros
from gptrs.numpy_api.joining import concat
from gptrs.numpy_api.random.keys import fold_in

Propose = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Of a key: proposals of the result's shape, and which of them are accepted."""


def first_accepted(
    key: Tensor, propose: Propose, shape: Shape, dtype: DType, *, skip: Tensor | None = None
) -> Tensor:
    """For each element its first proposal that is accepted; 0 where ``skip``.

    All elements are proposed for in each step, until each has been accepted once.
    """
    done = zeros(shape, i1) if skip is None else OPS["broadcast_to"](skip, shape=shape)

    def going(state: Any) -> Tensor:
        return ~OPS["reduce_all"](state[1])

    def step(state: Any) -> Any:
        number, done, values = state
        drawn, accepted = propose(fold_in(key, number))
        return number + 1, done | accepted, where(done, values, drawn)

    start = (zeros((), ui64), done, zeros(shape, dtype))
    return OPS["while_loop"](going, step, start)[2]


_MOST = 128
"""Steps of a search; sums of probabilities whose mean is below 10 reach 1 before."""
_TABLE = 48
"""Probabilities of a table: those of a mean below 10 that are left out sum to less than 2⁻⁵³."""


def searched(u: Tensor, none: Tensor, ratio_of: Callable[[Tensor], Tensor]) -> Tensor:
    """For each ``u`` of [0, 1) the least k whose distribution function is above it, as f64.

    ``none`` is the probability of 0, and ``ratio_of(k)`` that of k over that of k − 1; the mean is
    below 10. Of one distribution for all elements, how many of a table are not above u; else step
    by step.
    """
    if not none.ndim:
        ratios = ratio_of(arange(1, _TABLE, dtype=u.dtype))
        chances = concat([none.reshape((1,)), none * OPS["cumprod"](ratios, axis=0)])
        passed = u[..., None] >= OPS["cumsum"](chances, axis=0)
        return OPS["reduce_sum"](passed.astype(si32), axes=-1).astype(u.dtype)

    def going(state: Any) -> Tensor:
        k, rest, chance, _ = state
        return OPS["reduce_any"](rest >= chance) & (k < _MOST)

    def step(state: Any) -> Any:
        k, rest, chance, found = state
        further = rest >= chance
        rest, found = where(further, rest - chance, rest), where(further, k + 1, found)
        return k + 1, rest, where(further, chance * ratio_of(k + 1), chance), found

    chance = OPS["broadcast_to"](none, shape=u.shape)
    start = (zeros((), u.dtype), u, chance, zeros(u.shape, u.dtype))
    return OPS["while_loop"](going, step, start)[3]
