"""`FaerBackend`: the native CPU backend. Its pipeline is described in `gptrs.backends.faer`."""

from __future__ import annotations

from gptrs.backends.base import Backend, DeviceInfo
from gptrs.backends.faer.arena import ArenaPool
from gptrs.backends.faer.constant_updates import broadcast_updates
from gptrs.backends.faer.custom_calls import (
    arrange_products,
    claims,
    keep_loop_weights,
    make_calls,
)
from gptrs.backends.faer.plan import FaerPlan
from gptrs.backends.host import cpu_device
from gptrs.backends.parameter_cache import parameter_cache
from gptrs.ir.program import Instruction, Program
from gptrs.passes.legalize import inlined


class FaerBackend(Backend):
    """Matrix products, attention, convolutions and norms by hand-written kernels, the rest by fused
    loops."""

    name = "faer"
    passes = (arrange_products, broadcast_updates, keep_loop_weights, make_calls)

    def __init__(self) -> None:
        self._arenas = ArenaPool()

    def claims(self, instruction: Instruction) -> bool:
        return claims(instruction)

    def plan(self, program: Program, *, precise: bool = False) -> FaerPlan:
        if precise:  # kernels sum in another order than NumPy
            program = inlined(program, lambda _: False)
        return FaerPlan(program, parameter_cache, self._arenas, precise=precise)

    def devices(self) -> tuple[DeviceInfo, ...]:
        return (cpu_device(),)
