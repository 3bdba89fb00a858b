"""What the backends with kernels of their own compute on the device, as a table for the docs.

python -m gptrs.backends.device_table
"""

from __future__ import annotations

from collections.abc import Iterator

from gptrs.backends.c_family.coverage import NONE, coverage
from gptrs.backends.c_family.device import KernelDevice
from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.gpu import GpuDevice
from gptrs.backends.c_family.kernels import IN_F64
from gptrs.backends.opencl.device import Device as OpenCLDevice
from gptrs.backends.webgpu.device import Device as WebGPUDevice
from gptrs.ir.types import f64

_DEVICES: dict[str, tuple[type[KernelDevice], str]] = {
    "opencl": (OpenCLDevice, "OpenCL C 1.2"),
    "webgpu": (WebGPUDevice, "WGSL"),
    "nvrtc": (GpuDevice, "CUDA C"),
    "hiprtc": (GpuDevice, "HIP C"),
}


def table() -> Iterator[str]:
    """The lines of the table."""
    yield "| backend | language | on the host: instructions on |"
    yield "|---|---|---|"
    for name, (device, language) in _DEVICES.items():
        missing = [f"`{dtype}`" for dtype in IN_MEMORY if dtype not in device.dtypes]
        wide = [f"`{op.name}`" for op in IN_F64] if f64.name not in device.dtypes else []
        declined = ", ".join([*missing, "complex numbers", *wide])
        yield f"| `{name}` | {language} | {declined} |"
    yield ""
    names = " ".join(f"`{name}`" for name in coverage()[NONE])
    yield f"On the host with each of them, whatever the dtype: {names}."


if __name__ == "__main__":
    print("\n".join(table()))
