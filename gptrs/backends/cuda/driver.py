"""The driver of NVIDIA, by ``cuda.bindings.driver``: its calls, and the GPUs that it finds."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.cuda.nvrtc import has_compiler
from gptrs.errors import PtirError
from gptrs.locks import late_import

_INSTALL = "pip install 'gptrs[cuda]' brings cuda-bindings and NVRTC; the driver is NVIDIA's"


def driver() -> Any:
    """The bindings of the driver."""
    return late_import("cuda.bindings.driver")


def missing() -> Availability:
    """Whether the packages are installed, told without importing them."""
    for module in ("cuda", "cuda.bindings", "cuda.bindings.driver"):
        if find_spec(module) is None:
            return Availability("cuda-bindings is not installed", _INSTALL, is_absent=True)
    return Availability()


def call(name: str, *given: Any) -> Any:
    """The result of a call of the driver. Raises `PtirError` where it fails."""
    lib = driver()
    status, *values = getattr(lib, name)(*given)
    if status != lib.CUresult.CUDA_SUCCESS:
        raise PtirError(f"the CUDA driver fails in {name}: {status!r}")
    return values[0] if len(values) == 1 else tuple(values)


def device_count() -> int:
    """The number of GPUs; 0 without a driver."""
    lib = driver()
    try:
        (status,) = lib.cuInit(0)
    except RuntimeError:  # the library of the driver is not there
        return 0
    return call("cuDeviceGetCount") if status == lib.CUresult.CUDA_SUCCESS else 0


def architecture(device: Any) -> tuple[int, int]:
    """The compute capability of a GPU."""
    kinds = driver().CUdevice_attribute
    major = kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    minor = kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
    return tuple(call("cuDeviceGetAttribute", kind, device) for kind in (major, minor))  # pyright: ignore[reportReturnType]


def info(index: int) -> DeviceInfo:
    """A GPU as other code sees it."""
    device = call("cuDeviceGet", index)
    major, minor = architecture(device)
    name = call("cuDeviceGetName", 256, device).split(b"\0")[0].decode()
    return DeviceInfo(
        index, name, call("cuDeviceTotalMem", device), compute_capability=f"{major}.{minor}"
    )


def availability() -> Availability:
    """Whether there is a GPU, or what is missing."""
    if not (found := missing()):
        return found
    if not device_count():
        return Availability("no driver has an NVIDIA GPU here", _INSTALL, is_absent=True)
    if not has_compiler():
        return Availability("the compiler NVRTC is not installed", _INSTALL)
    return Availability()
