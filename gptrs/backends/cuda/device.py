"""The first GPU of NVIDIA's driver, and its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.backends.c_family.gpu import Gpu
from gptrs.backends.cuda.driver import architecture, call
from gptrs.backends.cuda.nvrtc import compiled


class CudaGpu(Gpu):
    """Its primary context, which torch has too, and a stream."""

    def __init__(self) -> None:
        call("cuInit", 0)
        device = call("cuDeviceGet", 0)
        self._context: Any = call("cuDevicePrimaryCtxRetain", device)
        self.enter()
        self._stream: Any = call("cuStreamCreate", 1)  # it does not wait for the default stream
        self._architecture = "sm_{}{}".format(*architecture(device))

    def enter(self) -> None:
        call("cuCtxSetCurrent", self._context)

    def load(self, text: str) -> Any:
        return call("cuModuleLoadData", compiled(text, self._architecture))

    def function(self, module: Any, name: str) -> Any:
        return call("cuModuleGetFunction", module, name.encode())

    def launch(
        self, function: Any, blocks: int, threads: int, values: Sequence[int], kinds: Sequence[Any]
    ) -> None:
        shape = (blocks, 1, 1, threads, 1, 1, 0)
        given = (tuple(values), tuple(kinds))
        call("cuLaunchKernel", function, *shape, self._stream, given, 0)

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
