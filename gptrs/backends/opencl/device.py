"""An OpenCL device: its context and queue, compiled kernels, and a pool of memory.

The new kernels of a plan are compiled together.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gptrs.backends.c_family.device import KernelDevice, Launch, as_bytes, compile_new
from gptrs.backends.c_family.device_function import kernel_name, kernel_text, vocabulary
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import KERNELS, PARALLEL_KERNELS
from gptrs.backends.opencl.dialect import OPENCL
from gptrs.backends.opencl.driver import found_devices, has_f64, is_cpu, opencl
from gptrs.ir.types import Array, Type
from gptrs.locks import late_import

_GROUP = 64
"""Work items of a group, of kernels with little work in each."""


class Device(KernelDevice):
    """The first device of this machine."""

    backend = "opencl"

    def __init__(self) -> None:
        super().__init__()
        cl = opencl()
        self._device = found_devices()[0]
        self._context: Any = cl.Context([self._device])
        self._queue: Any = cl.CommandQueue(self._context)
        self._pool: Any = late_import("pyopencl.tools").MemoryPool(
            late_import("pyopencl.tools").ImmediateAllocator(self._queue)
        )
        self._kernels: dict[Kernel, Any] = {}
        self._is_cpu = is_cpu(self._device)
        self.makers = KERNELS if self._is_cpu else PARALLEL_KERNELS
        self.has_groups = not self._is_cpu
        self.dtypes = frozenset(IN_MEMORY) - ({"f64"} if not has_f64(self._device) else set())

    def name_of(self, kernel: Kernel) -> str:
        return kernel_name(kernel, OPENCL)

    def compile(self, kernels: Iterable[Kernel]) -> None:
        compile_new(self._kernels, kernels, self._compile)

    def _compile(self, new: Sequence[Kernel]) -> None:
        cl = opencl()
        source = "\n".join([vocabulary(), *(kernel_text(kernel, OPENCL) for kernel in new)])
        rounds = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT & self._device.single_fp_config
        options = ["-cl-std=CL1.2", f"-DCOPIES_PANELS={int(self._is_cpu)}"]
        if rounds:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what compilers say of a program that they take
            program = cl.Program(self._context, source).build(options=options)
        for kernel in new:
            made = cl.Kernel(program, kernel_name(kernel, OPENCL))
            made.set_scalar_arg_dtypes(_scalars(kernel))
            self._kernels[kernel] = made

    def launch(self, launch: Launch, arrays: Sequence[Any], status: Any) -> None:
        """Enqueue a kernel. On a CPU a work item with much work is a group of its own, so that
        cores share them."""
        if group := launch.kernel.group:
            size = launch.extent * group
        else:
            group = 1 if self._is_cpu and launch.is_heavy else min(_GROUP, launch.extent)
            size = -(-launch.extent // group) * group
        given = [*arrays, *launch.numbers]
        if launch.status is not None:
            given += [status, launch.status]
        self._kernels[launch.kernel](self._queue, (size,), (group,), *given)

    def allocate(self, size: int) -> Any:
        return self._pool.allocate(max(size, 1))

    def upload(self, array: Array) -> Any:
        buffer = self.allocate(array.nbytes)
        if array.nbytes:
            opencl().enqueue_copy(self._queue, buffer, as_bytes(array))
        return buffer

    def download(self, buffers: Sequence[tuple[Any, Type]]) -> list[Array]:
        found: list[Array] = []
        for buffer, type in buffers:
            array = np.empty(type.shape, type.dtype.numpy)
            if array.nbytes:
                opencl().enqueue_copy(self._queue, array.reshape(-1).view(np.uint8), buffer)
            found.append(array)
        return found

    def copy(self, buffer: Any, type: Type) -> Any:
        size = int(type.size) * type.dtype.numpy.itemsize
        made = self.allocate(size)
        if size:
            opencl().enqueue_copy(self._queue, made, buffer, byte_count=size)
        return made


def _scalars(kernel: Kernel) -> list[Any]:
    """By argument of a kernel: its dtype, None for arrays."""
    words: list[Any] = [None] * len(kernel.arrays)
    words += [np.int64] * (len(kernel.numbers) + len(kernel.symbols))
    return words + ([None, np.int64] if kernel.fails else [])
