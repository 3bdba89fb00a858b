"""The backends of this machine as text and as JSON has them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gptrs.backends.base import DeviceInfo
from gptrs.backends.selection import BackendStatus, best_available_backend, discover_backends
from gptrs.byte_sizes import size_text


def print_backend_summary() -> None:
    """Print the backends that are available with their devices and memory, why the others are not,
    and the one that ``"auto"`` takes."""
    print(backend_summary())


def backend_summary() -> str:
    """The text of `print_backend_summary`."""
    found = discover_backends()
    width = max(len(status.name) for status in found)
    lines = [line for status in found for line in _lines(status, width)]
    return "\n".join(["backends", *lines, f"recommended: {best_available_backend()}"])


def backend_report() -> dict[str, Any]:
    """What `backend_summary` says, for scripts; sizes are in bytes."""
    rows = [
        {
            "name": status.name,
            "available": bool(status.availability),
            "reason": status.availability.reason or None,
            "fix": status.availability.fix or None,
            "devices": [asdict(device) for device in status.devices],
        }
        for status in discover_backends()
    ]
    return {"backends": rows, "recommended": best_available_backend()}


def _lines(status: BackendStatus, width: int) -> list[str]:
    if not status.availability:
        return [f"  ✗ {status.name:{width}}  {status.availability.reason}"]
    return [f"  ✓ {status.name:{width}}  {_device(device)}" for device in status.devices]


def _device(device: DeviceInfo) -> str:
    parts = [f"[{device.index}] {device.name}: {size_text(device.total_memory)}"]
    if device.free_memory is not None:
        parts.append(f"{size_text(device.free_memory)} free")
    if device.compute_capability is not None:
        parts.append(f"compute capability {device.compute_capability}")
    if device.unified_memory:
        parts.append("unified memory")
    if device.is_software:
        parts.append("in software")
    return ", ".join(parts)
