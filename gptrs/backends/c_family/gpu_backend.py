"""`GpuBackend`: programs as kernels on the first GPU of a driver."""

from __future__ import annotations

from typing import ClassVar, Protocol

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.device_backend import DeviceBackend
from gptrs.backends.c_family.gpu import Gpu, GpuDevice


class Driver(Protocol):
    """What a driver finds: a module."""

    def missing(self) -> Availability:
        """Whether what it is called through is installed, told without importing it."""
        ...

    def availability(self) -> Availability:
        """Whether there is a GPU, or what is missing."""
        ...

    def device_count(self) -> int:
        """The number of GPUs; 0 without a driver."""
        ...

    def info(self, index: int) -> DeviceInfo:
        """A GPU as other code sees it."""
        ...


class GpuBackend(DeviceBackend):
    """Kernels of the C family in the C++ of GPUs."""

    driver: ClassVar[Driver]
    gpu: ClassVar[type[Gpu]]

    @classmethod
    def missing(cls) -> Availability:
        """Whether what the driver is called through is installed."""
        return cls.driver.missing()

    def open(self) -> KernelDevice:
        return GpuDevice(self.name, self.gpu())

    def is_available(self) -> Availability:
        return self.driver.availability()

    def devices(self) -> tuple[DeviceInfo, ...]:
        if not self.driver.availability():
            return ()
        return tuple(map(self.driver.info, range(self.driver.device_count())))
