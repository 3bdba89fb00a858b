"""The dialect of GPUs that are programmed in C++: a kernel of the C family as a ``__global__``
function of CUDA and of HIP, which have the same words."""

from __future__ import annotations

from collections.abc import Iterable

from gptrs.backends.c_family.device_function import Words, kernel_text, vocabulary
from gptrs.backends.c_family.kernel import Kernel

GROUP = 128
"""Threads of a block, of kernels whose work items are independent."""

GPU_CPP = Words(
    function='extern "C" __global__ void',
    memory="",
    restrict="__restrict__",
    shared="__shared__",
    item="(isize)blockIdx.x * blockDim.x + threadIdx.x",
    group="blockIdx.x",
    lane="threadIdx.x",
)


def source(kernels: Iterable[Kernel]) -> str:
    """The text of several kernels, with what comes before them."""
    return "\n".join([vocabulary(), *(kernel_text(kernel, GPU_CPP) for kernel in kernels)])
