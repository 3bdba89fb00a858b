"""What torch finds on this machine: which builds there are, and the devices of each kind.

The build is read from the file that torch says its versions in, so that nothing heavy is imported
to learn that a device cannot be there.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gptrs.backends.base import Availability, DeviceInfo
from gptrs.backends.host import cpu_device, machine_memory
from gptrs.locks import late_import

_INSTALL = "pip install 'gptrs[torch]'"
_BUILDS = "install a build of torch that has it: https://pytorch.org/get-started/locally"
_WORDS = {"cuda": "CUDA", "hip": "ROCm", "xpu": "Intel GPUs"}


@cache
def torch_build() -> dict[str, str | None] | None:
    """The versions that the installed torch was built for, by name (``cuda``, ``hip``, ``xpu``);
    None where torch is not installed."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
        lines = ast.parse(text).body
    except (OSError, SyntaxError):
        return {}
    found: dict[str, str | None] = {}
    for line in lines:
        match line:
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value))
                | ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value))
            ):
                found[name] = value if isinstance(value, str) else None
            case _:
                pass
    return found


def missing(build: str | None) -> Availability:
    """Whether torch is there, built for ``build``, told without importing it."""
    known = torch_build()
    if known is None:
        return Availability("torch is not installed", _INSTALL, is_absent=True)
    if build == "mps":
        mac = sys.platform == "darwin"
        return Availability() if mac else Availability("this is no Mac", is_absent=True)
    if build is not None and known.get(build) is None:
        version = known.get("__version__") or "?"
        return Availability(
            f"this torch ({version}) is built without {_WORDS[build]}", _BUILDS, True
        )
    return Availability()


def software_device() -> DeviceInfo:
    """The processor, which plays torch's CPU device."""
    found = cpu_device()
    return DeviceInfo(
        0, f"torch on {found.name}", found.total_memory, found.free_memory, None, True, True
    )


def cuda_devices() -> tuple[DeviceInfo, ...]:
    """The GPUs of NVIDIA or AMD."""
    torch: Any = late_import("torch")
    if not torch.cuda.is_available():
        return ()
    found: list[DeviceInfo] = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
        capability = f"{properties.major}.{properties.minor}"
        if torch.version.hip is not None:
            capability = str(getattr(properties, "gcnArchName", capability)).partition(":")[0]
        unified = bool(getattr(properties, "is_integrated", False))
        found.append(DeviceInfo(index, properties.name, total, free, capability, unified))
    return tuple(found)


def metal_devices() -> tuple[DeviceInfo, ...]:
    """The GPU of a Mac, which shares the memory of its processor."""
    torch: Any = late_import("torch")
    if not torch.backends.mps.is_available():
        return ()
    memory = machine_memory()
    most = int(torch.mps.recommended_max_memory())
    free = max(min(most - int(torch.mps.driver_allocated_memory()), memory.available), 0)
    return (DeviceInfo(0, "Apple GPU", most, free, unified_memory=True),)


def xpu_devices() -> tuple[DeviceInfo, ...]:
    """The GPUs of Intel."""
    torch: Any = late_import("torch")
    if not torch.xpu.is_available():
        return ()
    found: list[DeviceInfo] = []
    for index in range(torch.xpu.device_count()):
        properties = torch.xpu.get_device_properties(index)
        found.append(DeviceInfo(index, properties.name, properties.total_memory))
    return tuple(found)
