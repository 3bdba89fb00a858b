"""A GPU of NVIDIA: compiled kernels, one stream, and a pool of memory.

All work goes into the stream, in order, so that memory that is freed can be used again by what
comes after it (``cuMemFreeAsync``); the host waits where it reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gptrs.backends.c_family.device import KernelDevice, Launch, as_bytes, compile_new
from gptrs.backends.c_family.device_function import kernel_name
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import PARALLEL_KERNELS
from gptrs.backends.cuda.dialect import CUDA, GROUP, source
from gptrs.backends.cuda.driver import architecture, call
from gptrs.backends.cuda.nvrtc import compiled
from gptrs.ir.types import Array, Type


class Buffer:
    """Memory of the device, which is freed after nothing refers to it."""

    __slots__ = ("_freed", "address")

    def __init__(self, address: int, freed: list[int]) -> None:
        self.address, self._freed = address, freed

    def __del__(self) -> None:
        self._freed.append(self.address)  # another thread may end it, which is in no context


class Device(KernelDevice):
    """The first GPU."""

    makers = PARALLEL_KERNELS

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        call("cuInit", 0)
        device = call("cuDeviceGet", 0)
        self._context: Any = call("cuDevicePrimaryCtxRetain", device)
        self._enter()
        self._stream: Any = call("cuStreamCreate", 1)  # it does not wait for the default stream
        self._architecture = "sm_{}{}".format(*architecture(device))
        self._kernels: dict[Kernel, Any] = {}
        self._modules: list[Any] = []
        self._freed: list[int] = []

    def _enter(self) -> None:
        """The calls of this thread are for this device."""
        call("cuCtxSetCurrent", self._context)

    def name_of(self, kernel: Kernel) -> str:
        return kernel_name(kernel, CUDA)

    def compile(self, kernels: Iterable[Kernel]) -> None:
        compile_new(self._kernels, kernels, self._compile)

    def _compile(self, new: Sequence[Kernel]) -> None:
        self._enter()
        module = call("cuModuleLoadData", compiled(source(new), self._architecture))
        self._modules.append(module)
        for kernel in new:
            name = kernel_name(kernel, CUDA).encode()
            self._kernels[kernel] = call("cuModuleGetFunction", module, name)

    def launch(self, launch: Launch, arrays: Sequence[Buffer], status: Buffer | None) -> None:
        self._enter()
        kernel = launch.kernel
        threads = kernel.group or GROUP
        blocks = launch.extent if kernel.group else -(-launch.extent // GROUP)
        given = [array.address for array in arrays]
        kinds: list[Any] = [ctypes.c_void_p] * len(given)
        given += launch.numbers
        if launch.status is not None:
            assert status is not None
            given += [status.address, launch.status]
        numbers = len(launch.numbers)
        kinds += [ctypes.c_int64] * numbers
        kinds += [ctypes.c_void_p, ctypes.c_int64][: len(given) - len(kinds)]
        shape = (blocks, 1, 1, threads, 1, 1, 0)
        function = self._kernels[kernel]
        call("cuLaunchKernel", function, *shape, self._stream, (tuple(given), tuple(kinds)), 0)

    def allocate(self, size: int) -> Buffer:
        self._enter()
        while self._freed:
            call("cuMemFreeAsync", self._freed.pop(), self._stream)
        return Buffer(int(call("cuMemAllocAsync", max(size, 1), self._stream)), self._freed)

    def upload(self, array: Array) -> Buffer:
        data = as_bytes(array)
        buffer = self.allocate(data.nbytes)
        if data.nbytes:  # from memory that is not pinned: copied before the call returns
            address = data.ctypes.data
            call("cuMemcpyHtoDAsync", buffer.address, address, data.nbytes, self._stream)
        return buffer

    def download(self, buffers: Sequence[tuple[Any, Type]]) -> list[Array]:
        self._enter()
        found: list[Array] = []
        for buffer, type in buffers:
            array = np.empty(type.shape, type.dtype.numpy)
            if array.nbytes:
                address = array.ctypes.data
                call("cuMemcpyDtoHAsync", address, buffer.address, array.nbytes, self._stream)
            found.append(array)
        call("cuStreamSynchronize", self._stream)
        return found

    def copy(self, buffer: Any, type: Type) -> Buffer:
        size = int(type.size) * type.dtype.numpy.itemsize
        made = self.allocate(size)
        if size:
            call("cuMemcpyDtoDAsync", made.address, buffer.address, size, self._stream)
        return made
