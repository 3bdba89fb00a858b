"""A driver of CUDA whose GPU is the processor: kernels are compiled by gcc, calls run at once.

It stands in for the driver in tests of what is around kernels: the text of the dialect, arguments,
memory, the order of calls. It says nothing of NVIDIA's compiler or of a GPU.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.support import ROOT

_SHIM = ROOT / "tests" / "support" / "cuda_emulator.cpp"
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{(.*?)^\}', re.S | re.M)


class Emulator:
    """The calls of `gptrs.backends.cuda.driver`, and of the compiler."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._memory: dict[int, Any] = {}
        self.calls: list[str] = []

    def compiled(self, text: str, architecture: str) -> bytes:
        """The path of a library with the kernels of ``text``."""
        assert architecture in ("sm_90", "")
        path = self._directory / f"kernels{len(list(self._directory.glob('*.cpp')))}.cpp"
        launchers: list[str] = []
        for name, parameters, body in _KERNEL.findall(text):
            names = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
            waits = str("BARRIER" in body).lower()
            launchers.append(
                f'extern "C" void launch_{name}(unsigned blocks, unsigned threads, {parameters})'
                f" {{ run(blocks, threads, {waits}, [=] {{ {name}({names}); }}); }}\n"
                f'extern "C" void unpack_{name}(unsigned blocks, unsigned threads, void **given)'
                f" {{ unpack(launch_{name}, blocks, threads, given); }}"
            )
        compiler = "CUDACC" if architecture else "HIPCC"
        head = f'#include "{_SHIM}"\n#define __{compiler}_RTC__\n'
        path.write_text("\n".join([head, text, *launchers]))
        library = path.with_suffix(".so")
        flags = ["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(path), "-o", str(library)], check=True)
        return str(library).encode()

    def call(self, name: str, *given: Any) -> Any:
        """A call of the driver, by its name."""
        self.calls.append(name)
        match name:
            case "cuInit" | "cuCtxSetCurrent" | "cuStreamSynchronize":
                return None
            case "cuDeviceGet" | "cuDevicePrimaryCtxRetain" | "cuStreamCreate":
                return name  # a handle
            case "cuModuleLoadData":
                return ctypes.CDLL(given[0].decode())
            case "cuModuleGetFunction":
                module, function = given
                return module[f"launch_{function.decode()}"]
            case "cuMemAllocAsync":
                return self._allocate(given[0])
            case "cuMemFreeAsync":
                return self._memory.pop(given[0]) and None
            case "cuMemcpyHtoDAsync" | "cuMemcpyDtoHAsync" | "cuMemcpyDtoDAsync":
                return ctypes.memmove(*given[:3]) and None
            case _:
                assert name == "cuLaunchKernel"
                return self._launch(*given)

    def _allocate(self, size: int) -> int:
        memory = ctypes.create_string_buffer(size)
        address = ctypes.addressof(memory)
        self._memory[address] = memory
        return address

    def _launch(self, function: Any, *given: Any) -> None:
        blocks, _, _, threads, _, _, shared, stream, (values, kinds), _ = given
        assert (shared, stream) == (0, "cuStreamCreate")
        assert len(values) == len(kinds)
        function.argtypes = [ctypes.c_uint, ctypes.c_uint, *kinds]
        function.restype = None
        function(blocks, threads, *values)
