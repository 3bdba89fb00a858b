"""A WebGPU device: pipelines, buffers, and one command buffer for the kernels of a program.

Kernels are recorded, and submitted when the host reads something or has written something that they
do not expect: WebGPU orders what is submitted by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gptrs.backends.c_family.device import KernelDevice, Launch, compile_new
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import PARALLEL_KERNELS
from gptrs.backends.webgpu.dialect import ENTRY, GROUP, Variant, kernel_name, module
from gptrs.backends.webgpu.driver import OPENGL, found_adapters, wgpu
from gptrs.backends.webgpu.memory import Buffer, Pool
from gptrs.backends.webgpu.words import as_words, of_words, word_bytes
from gptrs.byte_sizes import size_text
from gptrs.errors import ArgumentError
from gptrs.ir.dims import product
from gptrs.ir.types import Array, DType, Type
from gptrs.lazy_dataclass import dataclass

_ALIGNMENT = 256  # of the offset of a binding, at most
_MOST_GROUPS = 65535  # along an axis
_MOST_KEPT = 8192  # bind groups
_LIMITS = ("max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size")


@dataclass(frozen=True)
class _Pipeline:
    compute: Any
    layout: Any


class Device(KernelDevice):
    """The first device of this machine."""

    backend = "webgpu"
    dtypes = frozenset(IN_MEMORY) - {"f64"}
    makers = PARALLEL_KERNELS
    has_groups = True

    def __init__(self) -> None:
        super().__init__()
        adapter = found_adapters()[0]
        wanted = {name: adapter.limits[name] for name in (*_LIMITS, "max-buffer-size")}
        self._device: Any = adapter.request_device_sync(required_limits=wanted)
        self._bindings = int(wanted[_LIMITS[0]]) - 1  # and the status
        self.most_arrays = self._bindings
        self._most_bytes = int(wanted["max-buffer-size"])
        self._largest = int(wanted[_LIMITS[1]])
        self._part = self._largest // _ALIGNMENT * _ALIGNMENT
        self._polls = adapter.info["backend_type"] == OPENGL
        if self._polls:
            # One thread at a time may use OpenGL: wgpu aborts where another waits for a second.
            self._device._poller.stop()
            self._device._poller = _NoPoller()
        usage = wgpu().BufferUsage
        self._uniform = usage.UNIFORM | usage.COPY_DST
        self._staging = usage.MAP_READ | usage.COPY_DST
        self._pool = Pool(self._device, usage.STORAGE | usage.COPY_DST | usage.COPY_SRC)
        self._pipelines: dict[Variant, _Pipeline] = {}
        self._whole: dict[Kernel, Variant] = {}
        self._numbers: dict[tuple[int, ...], Any] = {}
        self._bound: dict[Any, Any] = {}
        self._encoder: Any = None
        self._pass: Any = None

    def name_of(self, kernel: Kernel) -> str:
        return kernel_name(kernel)

    def compile(self, kernels: Iterable[Kernel]) -> None:
        compile_new(self._whole, kernels, self._compile)

    def _compile(self, new: Sequence[Kernel]) -> None:
        for kernel in new:
            variant = self._whole[kernel] = Variant(kernel)
            self._pipelines[variant] = self._pipeline(variant)

    def _pipeline(self, variant: Variant) -> _Pipeline:
        layout = self._device.create_bind_group_layout(entries=_entries(variant))
        shader = self._device.create_shader_module(code=module(variant))
        compute = self._device.create_compute_pipeline(
            layout=self._device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": shader, "entry_point": ENTRY},
        )
        return _Pipeline(compute, layout)

    def _variant(self, kernel: Kernel, arrays: Sequence[Buffer]) -> Variant:
        """The kernel with as many bindings for each array as it takes."""
        if all(array.size <= self._largest for array in arrays):
            return self._whole[kernel]
        parts = tuple(-(-array.size // self._part) for array in arrays)
        if sum(parts) > self._bindings:
            read = size_text(sum(array.size for array in arrays))
            most = f"{self._bindings} bindings of {size_text(self._part)}"
            raise ArgumentError(
                f"{kernel.title} takes arrays of {read}, and a kernel has {most} here",
                fix="use another backend: gptrs backends lists those that are there",
            )
        found = Variant(kernel, parts, self._part)
        if found not in self._pipelines:
            self._pipelines[found] = self._pipeline(found)
        return found

    def fits(self, launches: Iterable[Launch]) -> bool:
        """Whether numbers have 32 bits."""
        return all(abs(n) < 2**31 for x in launches for n in (x.extent, *x.numbers))

    def launch(self, launch: Launch, arrays: Sequence[Any], status: Any) -> None:
        kernel = launch.kernel
        variant = self._variant(kernel, arrays)
        given = [*arrays, *([status] if kernel.fails else [])]
        numbers = (launch.extent, *launch.numbers)
        numbers += () if launch.status is None else (launch.status,)
        groups = launch.extent if kernel.group else -(-launch.extent // GROUP)
        if self._pass is None:
            self._encoder = self._device.create_command_encoder()
            self._pass = self._encoder.begin_compute_pass()
        self._pass.set_pipeline(self._pipelines[variant].compute)
        self._pass.set_bind_group(0, self._bind_group(variant, given, numbers))
        rows = -(-groups // _MOST_GROUPS)
        self._pass.dispatch_workgroups(-(-groups // rows), rows)

    def _bind_group(
        self, variant: Variant, given: Sequence[Buffer], numbers: tuple[int, ...]
    ) -> Any:
        key = variant, tuple([buffer.number for buffer in given]), numbers
        found = self._bound.get(key)
        if found is None:
            if len(self._bound) >= _MOST_KEPT:
                self._bound.clear()
                self._numbers.clear()
            resources: list[Any] = [
                {"buffer": buffer.raw, "offset": at, "size": min(step, buffer.size - at)}
                for buffer, step in zip(given, self._steps(variant, given), strict=True)
                for at in range(0, buffer.size, step)
            ]
            uniform = self._numbers.get(numbers) or self._uploaded_numbers(numbers)
            resources.append({"buffer": uniform, "offset": 0, "size": uniform.size})
            entries = [{"binding": n, "resource": each} for n, each in enumerate(resources)]
            layout = self._pipelines[variant].layout
            found = self._bound[key] = self._device.create_bind_group(
                layout=layout, entries=entries
            )
        return found

    def _steps(self, variant: Variant, given: Sequence[Buffer]) -> list[int]:
        """The size of a part of each buffer."""
        return [self._part if variant.parts else buffer.size for buffer in given]

    def _uploaded_numbers(self, numbers: tuple[int, ...]) -> Any:
        padded = np.zeros(-(-len(numbers) // 4) * 4, np.int32)
        padded[: len(numbers)] = numbers
        found = self._device.create_buffer(size=padded.nbytes, usage=self._uniform)
        self._device.queue.write_buffer(found, 0, padded)
        self._numbers[numbers] = found
        return found

    def _submit(self) -> None:
        """Hand what is recorded to the device."""
        if self._pass is not None:
            self._pass.end()
            self._device.queue.submit([self._encoder.finish()])
            self._pass = self._encoder = None

    def allocate(self, size: int) -> Buffer:
        if size > self._most_bytes:
            raise ArgumentError(
                f"an array takes {size_text(size)}, and a buffer has {size_text(self._most_bytes)}",
                fix="use another backend: gptrs backends lists those that are there",
            )
        return self._pool.take(size)

    def upload(self, array: Array) -> Buffer:
        words = as_words(array)
        buffer = self.allocate(words.nbytes)
        self._submit()  # what had the memory before may be read by a kernel that is recorded
        if words.nbytes:
            self._device.queue.write_buffer(buffer.raw, 0, words)
        return buffer

    def download(self, buffers: Sequence[tuple[Any, Type]]) -> list[Array]:
        sizes = [int(type.size) * word_bytes(type.dtype) for _, type in buffers]
        total = sum(sizes)
        self._submit()
        if not total:
            return [np.zeros(type.shape, type.dtype.numpy) for _, type in buffers]
        staging = self._device.create_buffer(size=total, usage=self._staging)
        encoder = self._device.create_command_encoder()
        at = 0
        for (buffer, _), size in zip(buffers, sizes, strict=True):
            if size:
                encoder.copy_buffer_to_buffer(buffer.raw, 0, staging, at, size)
            at += size
        self._device.queue.submit([encoder.finish()])
        mapped = staging.map_async(wgpu().MapMode.READ)
        if self._polls:
            self._device._poll_wait()
        mapped.sync_wait()
        words = memoryview(staging.read_mapped()).cast("B")
        staging.unmap()
        found: list[Array] = []
        at = 0
        for (_, type), size in zip(buffers, sizes, strict=True):
            found.append(of_words(words[at : at + size], type))
            at += size
        return found

    def copy(self, buffer: Any, type: Type) -> Buffer:
        size = int(product(type.shape)) * word_bytes(type.dtype)
        made = self.allocate(size)
        self._submit()
        if size:
            encoder = self._device.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer.raw, 0, made.raw, 0, size)
            self._device.queue.submit([encoder.finish()])
        return made

    def item_bytes(self, dtype: DType) -> int:
        return word_bytes(dtype)


class _NoPoller:
    """In place of the thread of ``wgpu`` that waits for the device."""

    def get_token(self) -> _NoPoller:
        return self

    def set_done(self) -> None:
        return

    def stop(self) -> None:
        return


def _entries(variant: Variant) -> list[Any]:
    """The layout of a kernel's bindings."""
    compute, kernel = wgpu().ShaderStage.COMPUTE, variant.kernel
    kinds = [
        "storage" if array.written else "read-only-storage"
        for array, count in zip(kernel.arrays, variant.counts, strict=True)
        for _ in range(count)
    ]
    kinds += ["storage"] if kernel.fails else []
    return [
        {"binding": n, "visibility": compute, "buffer": {"type": kind}}
        for n, kind in enumerate([*kinds, "uniform"])
    ]
