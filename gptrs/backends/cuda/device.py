"""The first GPU of NVIDIA's driver, and its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.backends.c_family.gpu import Gpu, Shape
from gptrs.backends.cuda.driver import architecture, call, driver
from gptrs.backends.cuda.nvrtc import compiled
from gptrs.backends.triton.compiler import Target

_WARP = 32
_SHARED = 48 * 1024  # bytes that a block shares without being asked


class CudaGpu(Gpu):
    """Its primary context, which torch has too, and a stream."""

    def __init__(self) -> None:
        call("cuInit", 0)
        device = call("cuDeviceGet", 0)
        self._context: Any = call("cuDevicePrimaryCtxRetain", device)
        self.enter()
        self._stream: Any = call("cuStreamCreate", 1)  # it does not wait for the default stream
        self._architecture = architecture(device)

    def enter(self) -> None:
        call("cuCtxSetCurrent", self._context)

    def target(self) -> Target:
        major, minor = self._architecture
        return Target("cuda", 10 * major + minor, _WARP)

    def compiled(self, text: str) -> bytes:
        return compiled(text, "sm_{}{}".format(*self._architecture))

    def load(self, code: bytes) -> Any:
        return call("cuModuleLoadData", code)

    def function(self, module: Any, name: str, shared: int) -> Any:
        found = call("cuModuleGetFunction", module, name.encode())
        if shared > _SHARED:
            kind = driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", found, kind, shared)
        return found

    def launch(
        self, function: Any, shape: Shape, values: Sequence[int], kinds: Sequence[Any]
    ) -> None:
        sizes = (shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared)
        given = (tuple(values), tuple(kinds))
        call("cuLaunchKernel", function, *sizes, self._stream, given, 0)

    def allocate(self, size: int) -> int:
        return int(call("cuMemAllocAsync", size, self._stream))

    def free(self, address: int) -> None:
        call("cuMemFreeAsync", address, self._stream)

    def upload(self, address: int, source: int, size: int) -> None:
        # From memory that is not pinned: copied before the call returns.
        call("cuMemcpyHtoDAsync", address, source, size, self._stream)

    def download(self, target: int, address: int, size: int) -> None:
        call("cuMemcpyDtoHAsync", target, address, size, self._stream)

    def copy(self, address: int, source: int, size: int) -> None:
        call("cuMemcpyDtoDAsync", address, source, size, self._stream)

    def wait(self) -> None:
        call("cuStreamSynchronize", self._stream)
