"""What the package ``wgpu`` finds: adapters, the fastest kind first."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.host import machine_memory
from gptrs.locks import late_import

_INSTALL = (
    "pip install 'gptrs[webgpu]' brings wgpu, which needs a driver of Vulkan, Metal, Direct3D 12 or"
    " OpenGL: mesa-vulkan-drivers has one that runs on the CPU"
)
_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")
OPENGL = "OpenGL"


def wgpu() -> Any:
    """The package ``wgpu``."""
    return late_import("wgpu")


def found_adapters() -> list[Any]:
    """The adapters, each device once: accelerators before what the CPU plays, and of the drivers of
    a device that of OpenGL last."""
    found: list[Any] = list(wgpu().gpu.enumerate_adapters_sync())
    found.sort(key=lambda a: (_KINDS.index(_kind(a)), a.info["backend_type"] == OPENGL))
    return list({(a.info["device"], _kind(a)): a for a in reversed(found)}.values())[::-1]


def _kind(adapter: Any) -> str:
    kind: str = adapter.info["adapter_type"]
    return kind if kind in _KINDS else "Unknown"


def is_software(adapter: Any) -> bool:
    """Whether the CPU plays an adapter."""
    return _kind(adapter) == "CPU"


def info(index: int, adapter: Any) -> DeviceInfo:
    """A device as other code sees it. WebGPU does not say how much memory there is: of a device
    with memory of its own, it is at least the size of the largest buffer."""
    unified = _kind(adapter) in ("IntegratedGPU", "CPU")
    most = machine_memory().total if unified else int(adapter.limits["max-buffer-size"])
    name = f"{adapter.info['device']} ({adapter.info['backend_type']})"
    software = is_software(adapter)
    return DeviceInfo(index, name, most, unified_memory=unified, is_software=software)


def availability() -> Availability:
    """Whether there is an adapter, or what is missing."""
    if find_spec("wgpu") is None:
        return Availability("wgpu is not installed", _INSTALL, is_absent=True)
    if not found_adapters():
        return Availability("no driver has a WebGPU adapter here", _INSTALL, is_absent=True)
    return Availability()
