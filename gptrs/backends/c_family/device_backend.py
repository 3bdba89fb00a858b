"""`DeviceBackend`: programs as kernels of the C family on one device; what has none runs on the
host."""

from __future__ import annotations

from abc import abstractmethod

from gptrs.backends.base import Backend, Plan
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_plan import DevicePlan
from gptrs.backends.c_family.schedule import claims
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.program import Instruction, Program
from gptrs.ir.types import Array
from gptrs.locks import cached_property
from gptrs.passes.legalize import inlined


class DeviceBackend(Backend):
    """A backend with a device that runs kernels."""

    needs_driver = True

    @abstractmethod
    def open(self) -> KernelDevice:
        """The first device."""

    @cached_property
    def device(self) -> KernelDevice:
        """The device that programs run on."""
        return self.open()

    def claims(self, instruction: Instruction) -> bool:
        return claims(instruction)

    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        if precise:  # sums of kernels have another order than NumPy's, and functions other bits
            return ReferencePlan(inlined(program, lambda _: False))
        return DevicePlan(program, self.device)

    def to_device(self, array: Array) -> DeviceArray:
        return self.device.put(array)
