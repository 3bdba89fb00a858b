"""What the driver of AMD finds: GPUs, or what is missing."""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_int, c_size_t, c_uint

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.hip.hiprtc import has_compiler
from gptrs.backends.hip.libraries import call, library, status_of
from gptrs.errors import PtirError

_INSTALL = "install ROCm, which has the driver, the runtime amdhip64 and the compiler hipRTC"
_LONGEST_NAME = 256
_PROPERTIES = 16384  # bytes, more than the structure of any version has
_ARCHITECTURE = re.compile(rb"gfx[0-9a-f]+")


def missing() -> Availability:
    """Whether the runtime is installed."""
    if library("amdhip64") is None:
        return Availability("the runtime of ROCm is not installed", _INSTALL, is_absent=True)
    return Availability()


def device_count() -> int:
    """The number of GPUs; 0 without a driver."""
    count = c_int()
    if status_of("hipInit", c_uint(0)) or status_of("hipGetDeviceCount", byref(count)):
        return 0
    return count.value


def info(index: int) -> DeviceInfo:
    """A GPU as other code sees it."""
    name = ctypes.create_string_buffer(_LONGEST_NAME)
    memory, major, minor = c_size_t(), c_int(), c_int()
    call("hipDeviceGetName", name, c_int(_LONGEST_NAME), c_int(index))
    call("hipDeviceTotalMem", byref(memory), c_int(index))
    call("hipDeviceComputeCapability", byref(major), byref(minor), c_int(index))
    version = f"{major.value}.{minor.value}"
    return DeviceInfo(index, name.value.decode(), memory.value, compute_capability=version)


def architecture(index: int) -> str:
    """The architecture of a GPU, such as ``gfx942``. Raises `PtirError` where it is not told.

    It is a text of the properties, whose place in their structure differs by version.
    """
    found = ctypes.create_string_buffer(_PROPERTIES)
    names = (
        "hipGetDevicePropertiesR0600",
        "hipGetDeviceProperties",
    )  # that of ROCm 6 on, and before
    known = [name for name in names if hasattr(library("amdhip64"), name)]
    call((known or names)[0], found, c_int(index))
    name = _ARCHITECTURE.search(found.raw)
    if name is None:
        raise PtirError(f"HIP does not tell the architecture of GPU {index}")
    return name[0].decode()


def availability() -> Availability:
    """Whether there is a GPU, or what is missing."""
    if not (found := missing()):
        return found
    if not device_count():
        return Availability("no driver has an AMD GPU here", _INSTALL, is_absent=True)
    if not has_compiler():
        return Availability("the compiler hipRTC is not installed", _INSTALL)
    return Availability()
