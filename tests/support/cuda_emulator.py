"""A driver of CUDA whose GPU is the processor: kernels are compiled by gcc, tile programs run in
Triton's interpreter, calls run at once.

It stands in for the driver in tests of what is around kernels: the text of the dialect, arguments,
memory, the order of calls. It says nothing of NVIDIA's compiler or of a GPU.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gptrs.backends import discovery
from gptrs.backends.c_family.kernel import Kernel
from gptrs.backends.cuda import device
from gptrs.backends.cuda.backend import NvrtcBackend
from gptrs.backends.triton import compiler
from gptrs.backends.triton.compiler import Target, TileCode
from tests.support import ROOT
from tests.support.triton_interpreter import interpreted

_SHIM = ROOT / "tests" / "support" / "cuda_emulator.cpp"
_SCRATCH = 2  # pointers that Triton appends
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{(.*?)^\}', re.S | re.M)


class Emulator:
    """The calls of `gptrs.backends.cuda.driver`, and of the compiler."""

    launched: ClassVar[list[str]] = []
    """The names of tile programs that ran."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._memory: dict[int, Any] = {}
        self._tiles: dict[bytes, Kernel] = {}
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

    def compiled_tiles(self, kernel: Kernel, target: Target) -> TileCode:
        """A tile program, which nothing compiles."""
        assert target.warp == 32
        name = compiler.tile_name(kernel)
        self._tiles[name.encode()] = kernel
        return TileCode(name.encode(), name, 128, 1024, _SCRATCH)

    def call(self, name: str, *given: Any) -> Any:
        """A call of the driver, by its name."""
        self.calls.append(name)
        match name:
            case "cuInit" | "cuCtxSetCurrent" | "cuStreamSynchronize":
                return None
            case "cuDeviceGet" | "cuDevicePrimaryCtxRetain" | "cuStreamCreate":
                return name  # a handle
            case "cuModuleLoadData":
                return self._tiles.get(given[0]) or ctypes.CDLL(given[0].decode())
            case "cuModuleGetFunction":
                module, function = given
                if isinstance(module, Kernel):
                    return module
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
        assert stream == "cuStreamCreate"
        assert len(values) == len(kinds)
        if isinstance(function, Kernel):
            self.launched.append(compiler.tile_name(function))
            assert (threads, shared) == (128, 1024)
            assert values[-_SCRATCH:] == (0,) * _SCRATCH
            self._interpret(function, blocks, values[:-_SCRATCH])
            return
        assert shared == 0
        function.argtypes = [ctypes.c_uint, ctypes.c_uint, *kinds]
        function.restype = None
        function(blocks, threads, *values)

    def _interpret(self, kernel: Kernel, blocks: int, values: tuple[int, ...]) -> None:
        count = len(kernel.arrays)
        arrays = [self._memory[address] for address in values[:count]]
        interpreted(kernel, blocks, arrays, values[count:])


def emulated(directory: Path, patch: pytest.MonkeyPatch, *, triton: bool = False) -> Emulator:
    """An emulator that the backend ``nvrtc`` has for a driver, with tile programs or without."""
    found = Emulator(directory)
    patch.setattr(device, "call", found.call)
    patch.setattr(device, "compiled", found.compiled)
    patch.setattr(device, "architecture", lambda _: (9, 0))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    patch.setattr(compiler, "compiled", found.compiled_tiles)
    patch.setattr(compiler, "has_triton", lambda: triton)
    patch.setitem(discovery._instances, "nvrtc", NvrtcBackend())  # pyright: ignore[reportPrivateUsage]
    return found
