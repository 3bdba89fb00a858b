"""`OpenCLBackend`: programs as kernels on the first device that an OpenCL driver finds."""

from __future__ import annotations

from gptrs.backends.base import Availability, Backend, DeviceInfo, Plan
from gptrs.backends.c_family.schedule import claims
from gptrs.backends.opencl.device import Device
from gptrs.backends.opencl.driver import availability, found_devices, info
from gptrs.backends.opencl.plan import OpenCLPlan
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.program import Instruction, Program
from gptrs.locks import cached_property
from gptrs.passes.legalize import inlined


class OpenCLBackend(Backend):
    """Kernels of the C family; what has none runs on the host."""

    name = "opencl"
    needs_driver = True

    @cached_property
    def _device(self) -> Device:
        return Device()

    def claims(self, instruction: Instruction) -> bool:
        return claims(instruction)

    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        if precise:  # sums of kernels have another order than NumPy's, and functions other bits
            return ReferencePlan(inlined(program, lambda _: False))
        return OpenCLPlan(program, self._device)

    def is_available(self) -> Availability:
        return availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not availability():
            return ()
        return tuple(info(index, device) for index, device in enumerate(found_devices()))
