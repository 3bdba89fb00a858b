"""`WebGPUBackend`: programs as kernels on the first adapter that ``wgpu`` finds."""

from __future__ import annotations

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.webgpu.device import Device
from gptrs.backends.webgpu.driver import availability, found_adapters, info


class WebGPUBackend(DeviceBackend):
    """Kernels of the C family in WGSL."""

    name = "webgpu"

    def open(self) -> KernelDevice:
        return Device()

    def is_available(self) -> Availability:
        return availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not availability():
            return ()
        return tuple(info(index, adapter) for index, adapter in enumerate(found_adapters()))
