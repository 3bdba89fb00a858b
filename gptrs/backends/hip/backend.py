"""`HiprtcBackend`: programs as kernels on the first GPU of AMD; and what ``rocm`` stands for.

The backend ``rocm`` is torch's where torch is built with HIP, and these kernels where it is not.
"""

from __future__ import annotations

from gptrs.backends.base import Backend
from gptrs.backends.c_family.gpu_backend import GpuBackend
from gptrs.backends.hip import driver
from gptrs.backends.hip.device import HipGpu
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import RocmBackend as TorchRocmBackend


class HiprtcBackend(GpuBackend):
    """Kernels in HIP."""

    name = "hiprtc"
    driver = driver
    gpu = HipGpu


class _RocmKernels(HiprtcBackend):
    name = "rocm"


def chosen_rocm() -> type[Backend]:
    """The class that ``rocm`` stands for, by what is installed."""
    by_torch = devices.missing("hip")
    return _RocmKernels if driver.missing() and not by_torch else TorchRocmBackend


RocmBackend: type[Backend] = chosen_rocm()
