"""What OpenCL drivers find: devices, the fastest kind first."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.locks import late_import

_INSTALL = "pip install 'gptrs[opencl]' brings pyopencl and PoCL, which runs on the CPU"


def opencl() -> Any:
    """The package ``pyopencl``."""
    return late_import("pyopencl")


def found_devices() -> list[Any]:
    """The devices of all platforms: accelerators before what the CPU plays."""
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # PLATFORM_NOT_FOUND_KHR: there is no driver
        return []
    found: list[Any] = []
    for platform in platforms:
        try:
            found += platform.get_devices()
        except cl.Error:  # a platform without devices
            continue
    return sorted(found, key=is_cpu)  # stable: drivers in their order


def is_cpu(device: Any) -> bool:
    """Whether the CPU plays a device."""
    return bool(device.type & opencl().device_type.CPU)


def has_f64(device: Any) -> bool:
    """Whether kernels of a device may compute in f64."""
    return "cl_khr_fp64" in device.extensions.split()


def info(index: int, device: Any) -> DeviceInfo:
    """A device as other code sees it."""
    return DeviceInfo(
        index,
        f"{device.name.strip()} ({device.platform.name.strip()})",
        int(device.global_mem_size),
        unified_memory=bool(device.host_unified_memory),
        is_software=is_cpu(device),
    )


def availability() -> Availability:
    """Whether there is a device, or what is missing."""
    if find_spec("pyopencl") is None:
        return Availability("pyopencl is not installed", _INSTALL, is_absent=True)
    if not found_devices():
        return Availability("no OpenCL driver has a device here", _INSTALL, is_absent=True)
    return Availability()
