"""`DeviceArray`: the interface of elements that are in the memory of a device.

A `Tensor` holds one in place of a NumPy array when a plan of a device backend returned it. The
elements travel to the host when they are asked for, and not at all when the Tensor is an argument
of another plan on the same device.
"""

from __future__ import annotations

from gptrs.ir.types import Array, Type


class DeviceArray:
    """Elements on a device, which do not change."""

    __slots__ = ()

    base = None  # it shares its memory with no other

    @property
    def type(self) -> Type:
        """Dtype and shape."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """The name of the backend whose device has them."""
        raise NotImplementedError

    def numpy(self) -> Array:
        """The elements as a NumPy array, which a first call copies to the host."""
        raise NotImplementedError


def on_host(array: Array | DeviceArray) -> Array:
    """Elements as a NumPy array."""
    return array.numpy() if isinstance(array, DeviceArray) else array
