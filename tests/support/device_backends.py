"""Backends of devices that are not there, which drivers answer for in different ways."""

from __future__ import annotations

import os
import sys
import time

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.reference import ReferenceBackend
from gptrs.errors import LoadError


class Cuda(ReferenceBackend):
    """A device with 8 GB, of which 6 are free, and a driver that prints."""

    name = "cuda"
    needs_driver = True

    def devices(self) -> tuple[DeviceInfo, ...]:
        print("driver 1.2.3")
        sys.stderr.write("a warning of the driver\n")
        return (DeviceInfo(0, "GPU", 8 * 10**9, 6 * 10**9, "9.0"),)


class Software(ReferenceBackend):
    name = "opencl"
    needs_driver = True

    def devices(self) -> tuple[DeviceInfo, ...]:
        return (DeviceInfo(0, "PoCL", 8 * 10**9, is_software=True),)


class Missing(ReferenceBackend):
    name = "metal"

    def is_available(self) -> Availability:
        return Availability("this is no Mac", "buy one")

    def devices(self) -> tuple[DeviceInfo, ...]:
        return ()


class Without(ReferenceBackend):
    name = "rocm"

    def devices(self) -> tuple[DeviceInfo, ...]:
        return ()


class _Driven(ReferenceBackend):
    name = "webgpu"
    needs_driver = True


class Crashing(_Driven):
    def devices(self) -> tuple[DeviceInfo, ...]:
        os.abort()


class Ending(_Driven):
    def devices(self) -> tuple[DeviceInfo, ...]:
        sys.stderr.write("no symbol cuInit\n")
        os._exit(3)


class Hanging(_Driven):
    def devices(self) -> tuple[DeviceInfo, ...]:
        time.sleep(60)
        return ()


class Failing(_Driven):
    def devices(self) -> tuple[DeviceInfo, ...]:
        raise OSError("PLATFORM_NOT_FOUND_KHR")


class Explaining(_Driven):
    def __init__(self) -> None:
        raise LoadError("libcuda.so is too old", fix="install another driver")
