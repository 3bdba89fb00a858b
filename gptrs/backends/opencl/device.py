"""An OpenCL device: its context and queue, compiled kernels, memory, and the weights on it.

Kernels are compiled once, by their text; those of a plan together. Memory comes from a pool.
Weights are uploaded once for each parameter, and freed with it.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.opencl.dialect import kernel_name, kernel_text, vocabulary
from gptrs.backends.opencl.driver import found_devices, has_f64, is_cpu, opencl
from gptrs.ir.tensor import Parameter
from gptrs.ir.types import Array
from gptrs.locks import cached_property, late_import, new_lock

_GROUP = 64
"""Work items of a group, of kernels with little work in each."""


class Device:
    """The first device of this machine."""

    def __init__(self) -> None:
        cl = opencl()
        self._device = found_devices()[0]
        self._context: Any = cl.Context([self._device])
        self.queue: Any = cl.CommandQueue(self._context)
        self._pool: Any = late_import("pyopencl.tools").MemoryPool(
            late_import("pyopencl.tools").ImmediateAllocator(self.queue)
        )
        self._kernels: dict[Kernel, Any] = {}
        self._weights: dict[int, Any] = {}
        self.lock = new_lock()
        """Held while a run enqueues kernels: their arguments are set one after the other."""

    @cached_property
    def has_f64(self) -> bool:
        """Whether its kernels may compute in f64."""
        return has_f64(self._device)

    @cached_property
    def is_cpu(self) -> bool:
        return is_cpu(self._device)

    def compile(self, kernels: Iterable[Kernel]) -> None:
        """Compile the kernels that are not compiled yet, as one program."""
        new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._kernels]
        if not new:
            return
        cl = opencl()
        source = "\n".join([vocabulary(), *map(kernel_text, new)])
        rounds = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT & self._device.single_fp_config
        options = ["-cl-std=CL1.2", f"-DCOPIES_PANELS={int(self.is_cpu)}"]
        if rounds:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what compilers say of a program that they take
            program = cl.Program(self._context, source).build(options=options)
        for kernel in new:
            made = cl.Kernel(program, kernel_name(kernel))
            made.set_scalar_arg_dtypes(_scalars(kernel))
            self._kernels[kernel] = made

    def launch(self, kernel: Kernel, extent: int, arguments: list[Any], *, heavy: bool) -> None:
        """Enqueue a kernel. On a CPU a work item with much work is a group of its own, so that
        cores share them."""
        group = 1 if self.is_cpu and heavy else min(_GROUP, extent)
        size = -(-extent // group) * group
        self._kernels[kernel](self.queue, (size,), (group,), *arguments)

    def allocate(self, size: int) -> Any:
        """A buffer of so many bytes, which returns to the pool when nothing refers to it."""
        return self._pool.allocate(max(size, 1))

    def upload(self, array: Array) -> Any:
        """A buffer with the elements of ``array``."""
        contiguous = np.ascontiguousarray(array)
        buffer = self.allocate(contiguous.nbytes)
        if contiguous.nbytes:
            opencl().enqueue_copy(self.queue, buffer, contiguous.reshape(-1).view(np.uint8))
        return buffer

    def download(self, buffer: Any, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array with the elements of a buffer, after all kernels before."""
        array = np.empty(shape, dtype)
        if array.nbytes:
            opencl().enqueue_copy(self.queue, array.reshape(-1).view(np.uint8), buffer)
        return array

    def fill(self, size: int) -> Any:
        """A buffer of zeros."""
        return self.upload(np.zeros(size, np.uint8))

    def weights(self, parameter: Parameter) -> Any:
        """A buffer with the elements of a parameter, uploaded once."""
        key = id(parameter)
        found = self._weights.get(key)
        if found is None:
            found = self._weights[key] = self.upload(parameter.numpy())
            weakref.finalize(parameter, self._weights.pop, key, None)
        return found


def _scalars(kernel: Kernel) -> list[Any]:
    """By argument of a kernel: its dtype, None for arrays."""
    words: list[Any] = [None] * len(kernel.arrays)
    words += [np.int64] * (len(kernel.numbers) + len(kernel.symbols))
    return words + ([None, np.int64] if kernel.fails else [])
