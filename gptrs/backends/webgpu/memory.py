"""Buffers of a WebGPU device, and the memory of freed ones, which others take."""

from __future__ import annotations

from typing import Any

_SMALLEST = 256


class Buffer:
    """Words on the device. Its memory is free when nothing refers to it."""

    __slots__ = ("_pool", "number", "raw", "size")

    def __init__(self, pool: Pool, raw: Any, size: int, number: int) -> None:
        self._pool, self.raw, self.size, self.number = pool, raw, size, number

    def __del__(self) -> None:
        self._pool.freed.append((self.size, self.number))


class Pool:
    """Memory by size. What was freed may still be read by kernels that have not been submitted,
    which those that are enqueued after them do not disturb; writes of the host would."""

    def __init__(self, device: Any, usage: int) -> None:
        self._device, self._usage = device, usage
        self.freed: list[tuple[int, int]] = []
        self._free: dict[int, list[int]] = {}
        # Held here, as the garbage collector may end one before the `Buffer` that refers to it.
        self._raw: dict[int, Any] = {}
        self._made = 0

    def take(self, size: int) -> Buffer:
        """A buffer of at least so many bytes."""
        self._sort()
        rounded = _rounded(size)
        if found := self._free.get(rounded):
            number = found.pop()
        else:
            number, self._made = self._made, self._made + 1
            self._raw[number] = self._device.create_buffer(size=rounded, usage=self._usage)
        return Buffer(self, self._raw[number], rounded, number)

    def drop(self) -> None:
        """Give free memory back to the driver."""
        self._sort()
        for number in (number for numbers in self._free.values() for number in numbers):
            self._raw.pop(number).destroy()
        self._free.clear()

    def _sort(self) -> None:
        while self.freed:
            size, number = self.freed.pop()
            self._free.setdefault(size, []).append(number)


def _rounded(size: int) -> int:
    """The next size of which there are eight between powers of two."""
    size = max(size, _SMALLEST)
    step = 1 << max(size.bit_length() - 4, 2)
    return -(-size // step) * step
