"""The torch device backends: one implementation, the device type a field.

torch itself is imported when a plan is made or a device asked for, so that listing backends and
choosing another one does not load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gptrs.backends.base import Availability, Backend, DeviceInfo, Plan
from gptrs.backends.torch import devices
from gptrs.backends.torch.declines import check_dtypes
from gptrs.backends.torch.op_table import row_of
from gptrs.extras import needed_for
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.program import Instruction, Program
from gptrs.ir.types import Array, Type
from gptrs.locks import late_import

if TYPE_CHECKING:
    from gptrs.backends.torch.plan import TorchPlan


class TorchBackend(Backend):
    """Runs programs as Python functions over torch ops on the first device of a type."""

    device_type: ClassVar[str]
    """What torch calls the device."""
    build: ClassVar[str | None] = None
    """What torch has to be built for."""
    needs_driver = True

    @classmethod
    def missing(cls) -> Availability:
        return devices.missing(cls.build)

    def is_available(self) -> Availability:
        found = self.missing()
        return super().is_available() if found else found

    def claims(self, instruction: Instruction) -> bool:
        return row_of(instruction) is not None

    def plan(self, program: Program, *, precise: bool = False) -> Plan:
        if precise:  # torch rounds and sums in its own order
            return late_import("gptrs.backends.reference").ReferencePlan(program)
        check_dtypes(program, self.device_type, self.name)
        return self._plan(program)

    def to_device(self, array: Array) -> DeviceArray:
        device = self._torch().device(self.device_type)
        tensor = late_import("gptrs.backends.torch.transfer").to_device(np.array(array), device)
        made = late_import("gptrs.backends.torch.device_array")
        return made.TorchArray(tensor, Type.of(array), self.name)

    def _torch(self) -> Any:
        with needed_for(f"the backend {self.name}"):
            return late_import("torch")

    def _plan(self, program: Program) -> TorchPlan:
        torch = self._torch()
        made = late_import("gptrs.backends.torch.plan")
        return made.TorchPlan(program, torch.device(self.device_type), self.name)


class CudaBackend(TorchBackend):
    """GPUs of NVIDIA."""

    name = "cuda"
    device_type = "cuda"
    build = "cuda"

    def devices(self) -> tuple[DeviceInfo, ...]:
        return devices.cuda_devices()


class RocmBackend(TorchBackend):
    """GPUs of AMD, which torch calls ``cuda`` too."""

    name = "rocm"
    device_type = "cuda"
    build = "hip"

    def devices(self) -> tuple[DeviceInfo, ...]:
        return devices.cuda_devices()


class MetalBackend(TorchBackend):
    """The GPU of a Mac."""

    name = "metal"
    device_type = "mps"
    build = "mps"

    def devices(self) -> tuple[DeviceInfo, ...]:
        return devices.metal_devices()


class XpuBackend(TorchBackend):
    """GPUs of Intel."""

    name = "xpu"
    device_type = "xpu"
    build = "xpu"

    def devices(self) -> tuple[DeviceInfo, ...]:
        return devices.xpu_devices()


class TorchCpuBackend(TorchBackend):
    """torch's CPU device: a device that the processor plays, for tests without a GPU."""

    name = "torch"
    device_type = "cpu"
    needs_driver = False

    def devices(self) -> tuple[DeviceInfo, ...]:
        return (devices.software_device(),) if self.missing() else ()
