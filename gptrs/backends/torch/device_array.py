"""`TorchArray`: elements in a torch tensor, as a Tensor of this package holds them."""

from __future__ import annotations

import torch

from gptrs.backends.torch.transfer import to_host
from gptrs.ir.device_array import DeviceArray
from gptrs.ir.types import Array, Type


class TorchArray(DeviceArray):
    """A torch tensor that carries values of a type. Its memory belongs to nobody else."""

    __slots__ = ("_device", "_host", "_type", "tensor")

    def __init__(self, tensor: torch.Tensor, type: Type, device: str) -> None:
        self.tensor, self._type, self._device = tensor, type, device
        self._host: Array | None = None

    @property
    def type(self) -> Type:
        return self._type

    @property
    def device(self) -> str:
        return self._device

    def numpy(self) -> Array:
        if self._host is None:
            self._host = to_host(self.tensor, self._type)
        return self._host
