"""`NvrtcBackend`: programs as kernels on the first GPU of NVIDIA; and what ``cuda`` stands for.

The backend ``cuda`` is torch's where torch is built with CUDA, and these kernels where it is not.
"""

from __future__ import annotations

from gptrs.backends.base import Backend
from gptrs.backends.c_family.gpu_backend import GpuBackend
from gptrs.backends.cuda import driver
from gptrs.backends.cuda.device import CudaGpu
from gptrs.backends.torch import devices
from gptrs.backends.torch.backend import CudaBackend as TorchCudaBackend


class NvrtcBackend(GpuBackend):
    """Kernels in CUDA C."""

    name = "nvrtc"
    driver = driver
    gpu = CudaGpu


class _CudaKernels(NvrtcBackend):
    name = "cuda"


def chosen_cuda() -> type[Backend]:
    """The class that ``cuda`` stands for, by what is installed."""
    by_torch = devices.missing("cuda")
    return _CudaKernels if driver.missing() and not by_torch else TorchCudaBackend


CudaBackend: type[Backend] = chosen_cuda()
