"""`GpuDevice`: a GPU that is programmed in C++, with a stream and a pool of memory; and `Gpu`, the
calls that its driver has for that.

All work goes into the stream, in order, so that memory that is freed can be used again by what
comes after it; the host waits where it reads.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gptrs.backends.c_family.device import KernelDevice, Launch, as_bytes, compile_new
from gptrs.backends.c_family.device_function import kernel_name
from gptrs.backends.c_family.gpu_dialect import GPU_CPP, GROUP, source
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import PARALLEL_KERNELS
from gptrs.backends.triton import compiler
from gptrs.backends.triton.compiler import Target, TileCode
from gptrs.backends.triton.table import TILE_KERNELS
from gptrs.ir.types import Array, Type


class Shape(NamedTuple):
    """Of a launch."""

    blocks: int
    threads: int
    """Of a block."""
    shared: int = 0
    """Bytes that a block shares, beyond those of the text."""


class Gpu(ABC):
    """The first GPU of a driver, and one stream. Each call raises `PtirError` where it fails."""

    @abstractmethod
    def enter(self) -> None:
        """The calls of this thread are for this GPU."""

    @abstractmethod
    def target(self) -> Target:
        """What code for this GPU is compiled for."""

    @abstractmethod
    def compiled(self, text: str) -> bytes:
        """The code of ``text`` for this GPU."""

    @abstractmethod
    def load(self, code: bytes) -> Any:
        """A module of this code."""

    @abstractmethod
    def function(self, module: Any, name: str, shared: int) -> Any:
        """A kernel of a module, whose blocks share so many bytes beyond those of the text."""

    @abstractmethod
    def launch(
        self, function: Any, shape: Shape, values: Sequence[int], kinds: Sequence[Any]
    ) -> None:
        """Enqueue a kernel; its arguments, and their types of `ctypes`."""

    @abstractmethod
    def allocate(self, size: int) -> int:
        """The address of so many bytes, for what comes after this in the stream."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Free memory after what is in the stream."""

    @abstractmethod
    def upload(self, address: int, source: int, size: int) -> None:
        """Copy bytes of the host, which may change after the call."""

    @abstractmethod
    def download(self, target: int, address: int, size: int) -> None:
        """Copy bytes to the host; they are there after `wait`."""

    @abstractmethod
    def copy(self, address: int, source: int, size: int) -> None:
        """Copy bytes on the GPU."""

    @abstractmethod
    def wait(self) -> None:
        """Until all in the stream is done."""


class Buffer:
    """Memory of the device, which is freed after nothing refers to it."""

    __slots__ = ("_freed", "address")

    def __init__(self, address: int, freed: list[int]) -> None:
        self.address, self._freed = address, freed

    def __del__(self) -> None:
        self._freed.append(self.address)  # another thread may end it, which is in no context


class GpuDevice(KernelDevice):
    """The first GPU of a driver. Where Triton is installed, hot kernels are tile programs."""

    has_groups = True

    def __init__(self, backend: str, gpu: Gpu) -> None:
        super().__init__()
        self.backend, self._gpu = backend, gpu
        self.makers = TILE_KERNELS if compiler.has_triton() else PARALLEL_KERNELS
        self._kernels: dict[Kernel, Any] = {}
        self._tiles: dict[Kernel, TileCode] = {}
        self._modules: list[Any] = []
        self._freed: list[int] = []

    def name_of(self, kernel: Kernel) -> str:
        return compiler.tile_name(kernel) if kernel.tiles else kernel_name(kernel, GPU_CPP)

    def compile(self, kernels: Iterable[Kernel]) -> None:
        compile_new(self._kernels, kernels, self._compile)

    def _compile(self, new: Sequence[Kernel]) -> None:
        self._gpu.enter()
        if texts := [kernel for kernel in new if not kernel.tiles]:
            module = self._load(self._gpu.compiled(source(texts)))
            for kernel in texts:
                self._kernels[kernel] = self._gpu.function(module, self.name_of(kernel), 0)
        for kernel in (kernel for kernel in new if kernel.tiles):
            code = self._tiles[kernel] = compiler.compiled(kernel, self._gpu.target())
            module = self._load(code.binary)
            self._kernels[kernel] = self._gpu.function(module, code.name, code.shared)

    def _load(self, code: bytes) -> Any:
        module = self._gpu.load(code)
        self._modules.append(module)
        return module

    def launch(self, launch: Launch, arrays: Sequence[Buffer], status: Buffer | None) -> None:
        self._gpu.enter()
        kernel = launch.kernel
        given = [array.address for array in arrays]
        kinds: list[Any] = [ctypes.c_void_p] * len(given)
        given += launch.numbers
        kinds += [ctypes.c_int64] * len(launch.numbers)
        if launch.status is not None:
            assert status is not None
            given += [status.address, launch.status]
            kinds += [ctypes.c_void_p, ctypes.c_int64]
        if (code := self._tiles.get(kernel)) is not None:
            given += [0] * code.scratch
            kinds += [ctypes.c_void_p] * code.scratch
            shape = Shape(launch.extent, code.threads, code.shared)
        elif kernel.group:
            shape = Shape(launch.extent, kernel.group)
        else:
            shape = Shape(-(-launch.extent // GROUP), GROUP)
        self._gpu.launch(self._kernels[kernel], shape, given, kinds)

    def allocate(self, size: int) -> Buffer:
        self._gpu.enter()
        while self._freed:
            self._gpu.free(self._freed.pop())
        return Buffer(self._gpu.allocate(max(size, 1)), self._freed)

    def upload(self, array: Array) -> Buffer:
        data = as_bytes(array)
        buffer = self.allocate(data.nbytes)
        if data.nbytes:
            self._gpu.upload(buffer.address, data.ctypes.data, data.nbytes)
        return buffer

    def download(self, buffers: Sequence[tuple[Any, Type]]) -> list[Array]:
        self._gpu.enter()
        found: list[Array] = []
        for buffer, type in buffers:
            array = np.empty(type.shape, type.dtype.numpy)
            if array.nbytes:
                self._gpu.download(array.ctypes.data, buffer.address, array.nbytes)
            found.append(array)
        self._gpu.wait()
        return found

    def copy(self, buffer: Any, type: Type) -> Buffer:
        size = int(type.size) * type.dtype.numpy.itemsize
        made = self.allocate(size)
        if size:
            self._gpu.copy(made.address, buffer.address, size)
        return made
