"""`KernelDevice`: a device that runs kernels of the C family; `DeviceBuffer`: elements on it.

A device compiles kernels once, by their text, and runs them in the order in which they are
launched. Weights are uploaded once for each parameter, and freed with it.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.c_family.kernels import KERNELS, Maker
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Operation
from gptrs.ir.types import Array, DType, Type
from gptrs.lazy_dataclass import dataclass
from gptrs.locks import new_lock


@dataclass(frozen=True)
class Launch:
    """A kernel call at given sizes."""

    kernel: Kernel
    extent: int
    numbers: tuple[int, ...]
    """The numbers of the kernel, then the sizes of its symbols."""
    is_heavy: bool
    """Whether a work item has much work."""
    status: int | None
    """The entry of the status array that it sets where it fails."""


class KernelDevice(ABC):
    """One device. Its methods are called with `lock` held."""

    backend: str
    """The name of its backend."""
    dtypes: frozenset[str] = frozenset(IN_MEMORY)
    """The dtypes of its kernels."""
    makers: Mapping[Operation, Maker] = KERNELS
    """The kernels of ops that no loop computes, which suit the device."""
    has_groups: bool = False
    """Whether work items run in groups that share memory, and thousands of them at a time."""
    most_arrays: int | None = None
    """The arrays that a kernel may have; None where there is no limit."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self._weights: dict[int, Any] = {}

    @abstractmethod
    def name_of(self, kernel: Kernel) -> str:
        """The name of a kernel's function."""

    @abstractmethod
    def compile(self, kernels: Iterable[Kernel]) -> None:
        """Compile the kernels that are not compiled yet."""

    @abstractmethod
    def launch(self, launch: Launch, arrays: Sequence[Any], status: Any) -> None:
        """Enqueue a kernel on buffers, by array of the kernel."""

    @abstractmethod
    def allocate(self, size: int) -> Any:
        """A buffer of so many bytes, whose memory is used again when nothing refers to it."""

    @abstractmethod
    def upload(self, array: Array) -> Any:
        """A buffer with the elements of ``array``."""

    @abstractmethod
    def download(self, buffers: Sequence[tuple[Any, Type]]) -> list[Array]:
        """The elements of buffers, after all kernels before."""

    @abstractmethod
    def copy(self, buffer: Any, type: Type) -> Any:
        """Another buffer with the same elements."""

    def item_bytes(self, dtype: DType) -> int:
        """The size of an element on the device."""
        return dtype.numpy.itemsize

    def fits(self, launches: Iterable[Launch]) -> bool:
        """Whether the device can count as far as these launches do."""
        return True

    def array(self, buffer: Any, type: Type) -> DeviceBuffer:
        """The elements of a buffer that no other value has."""
        return DeviceBuffer(self, buffer, type)

    def put(self, array: Array) -> DeviceBuffer:
        """A copy of ``array`` on the device."""
        with self.lock:
            return self.array(self.upload(array), Type.of(array))

    def weights(self, parameter: Parameter) -> Any:
        """A buffer with the elements of a parameter, uploaded once."""
        key = id(parameter)
        found = self._weights.get(key)
        if found is None:
            found = self._weights[key] = self.upload(parameter.numpy())
            weakref.finalize(parameter, self._weights.pop, key, None)
        return found


class DeviceBuffer(DeviceArray):
    """A buffer that belongs to nobody else, as a Tensor holds it."""

    __slots__ = ("_device", "_host", "_type", "buffer")

    def __init__(self, device: KernelDevice, buffer: Any, type: Type) -> None:
        self._device, self.buffer, self._type = device, buffer, type
        self._host: Array | None = None

    @property
    def type(self) -> Type:
        return self._type

    @property
    def device(self) -> str:
        return self._device.backend

    def numpy(self) -> Array:
        if self._host is None:
            with self._device.lock:
                (self._host,) = self._device.download([(self.buffer, self._type)])
        return self._host


def as_bytes(array: Array) -> Array:
    """The bytes of an array's elements, in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def compile_new(
    known: Mapping[Kernel, Any], kernels: Iterable[Kernel], made: Callable[[list[Kernel]], None]
) -> None:
    """Call ``made`` with the kernels that are not known yet, if there are any."""
    if new := [kernel for kernel in dict.fromkeys(kernels) if kernel not in known]:
        made(new)
