"""`HiprtcBackend`: programs as kernels on the first GPU of AMD; and what ``rocm`` stands for.

The backend ``rocm`` is torch's where torch is built with HIP, and these kernels where it is not.
"""

from __future__ import annotations

from gptrs.backends.base import Availability, Backend, DeviceInfo
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.c_family.gpu import GpuDevice
from gptrs.backends.hip import driver
from gptrs.backends.hip.device import HipGpu
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import RocmBackend as TorchRocmBackend


class HiprtcBackend(DeviceBackend):
    """Kernels of the C family in HIP."""

    name = "hiprtc"

    @classmethod
    def missing(cls) -> Availability:
        return driver.missing()

    def open(self) -> KernelDevice:
        return GpuDevice(self.name, HipGpu())

    def is_available(self) -> Availability:
        return driver.availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not driver.availability():
            return ()
        return tuple(map(driver.info, range(driver.device_count())))


class _RocmKernels(HiprtcBackend):
    name = "rocm"


def chosen_rocm() -> type[Backend]:
    """The class that ``rocm`` stands for, by what is installed."""
    by_torch = devices.missing("hip")
    return _RocmKernels if driver.missing() and not by_torch else TorchRocmBackend


RocmBackend: type[Backend] = chosen_rocm()
