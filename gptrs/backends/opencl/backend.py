"""`OpenCLBackend`: programs as kernels on the first device that an OpenCL driver finds."""

from __future__ import annotations

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.opencl.device import Device
from gptrs.backends.opencl.driver import availability, found_devices, info


class OpenCLBackend(DeviceBackend):
    """Kernels of the C family in OpenCL C."""

    name = "opencl"

    def open(self) -> KernelDevice:
        return Device()

    def is_available(self) -> Availability:
        return availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not availability():
            return ()
        return tuple(info(index, device) for index, device in enumerate(found_devices()))
