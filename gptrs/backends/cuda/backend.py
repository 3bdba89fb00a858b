"""`NvrtcBackend`: programs as kernels on the first GPU of NVIDIA; and what ``cuda`` stands for.

The backend ``cuda`` is torch's where torch is built with CUDA, and these kernels where it is not.
"""

from __future__ import annotations

from gptrs.backends.base import Availability, Backend, DeviceInfo
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.c_family.gpu import GpuDevice
from gptrs.backends.cuda import driver
from gptrs.backends.cuda.device import CudaGpu
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import CudaBackend as TorchCudaBackend


class NvrtcBackend(DeviceBackend):
    """Kernels of the C family in CUDA C."""

    name = "nvrtc"

    @classmethod
    def missing(cls) -> Availability:
        return driver.missing()

    def open(self) -> KernelDevice:
        return GpuDevice(self.name, CudaGpu())

    def is_available(self) -> Availability:
        return driver.availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not driver.availability():
            return ()
        return tuple(map(driver.info, range(driver.device_count())))


class _CudaKernels(NvrtcBackend):
    name = "cuda"


def chosen_cuda() -> type[Backend]:
    """The class that ``cuda`` stands for, by what is installed."""
    by_torch = devices.missing("cuda")
    return _CudaKernels if driver.missing() and not by_torch else TorchCudaBackend


CudaBackend: type[Backend] = chosen_cuda()
