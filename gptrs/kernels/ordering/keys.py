"""Order-preserving integer keys of array elements, in kernel source.

    integers          themselves; unsigned ones with as many bits as the key: the upper bit flipped
    floats            sign and magnitude -> two's complement: -0 and 0 are both 0
    NaN               one more than infinity, whatever its sign and its other bits
    descending        the complement: ``flip`` is -1, else 0

Keys are signed integers of 32 or 64 bits that compare as the elements do in the reference. Elements
that are equal there, zeros of both signs or NaNs, have one key.
"""

from __future__ import annotations

from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class KeyType:
    """How the elements of a dtype become keys: functions ``key_of(x, flip)``, of what a pointer of
    type ``pointer`` reads, ``element_of(key, flip)``, its inverse for elements that no other has
    the key of, ``ambiguous(x)``, whether others may have, and ``is_nan(x)``."""

    name: str
    pointer: str
    bits: int
    """The width of a key, 32 or 64."""
    key: str
    element: str
    ambiguous: str = "False"
    is_nan: str = "False"
    nan: int | None = None
    """The bits of a NaN, of floats."""
    numbers: str = ""
    """The pointer type that reads elements as numbers of their own order, if one does."""

    @property
    def keys(self) -> str:
        """The pointer type of keys."""
        return "int32s" if self.bits == 32 else "words"

    @property
    def number(self) -> str:
        """The type of a key."""
        return f"int{self.bits}"

    @property
    def narrow(self) -> bool:
        """Whether elements have at most 16 bits, so that two passes of a radix sort sort them."""
        return self.pointer.lstrip("u") in ("int8s", "int16s")

    @property
    def greatest(self) -> int:
        """No key is greater."""
        return 2 ** (self.bits - 1) - 1

    def source(self) -> str:
        """The functions."""
        return f"""
def key_of(x, flip):
{self.key}    return {self.number}(key ^ flip)


def element_of(key, flip):
    key = {self.number}(key ^ flip)
{self.element}

def ambiguous(x):
    return {self.ambiguous}


def is_nan(x):
    return {self.is_nan}

"""


def integer_keys(name: str, pointer: str, bits: int) -> KeyType:
    """Integers that keys of ``bits`` bits can hold."""
    return KeyType(name, pointer, bits, "    key = x\n", "    return key\n", numbers=pointer)


def unsigned_keys(name: str, pointer: str, bits: int) -> KeyType:
    """Unsigned integers of ``bits`` bits, which ``pointer`` reads as signed ones."""
    flipped = f"int{bits}(x ^ (-{2 ** (bits - 1) - 1} - 1))"
    return KeyType(
        name,
        pointer,
        bits,
        f"    key = {flipped}\n",
        f"    return {flipped.replace('x', 'key')}\n",
        numbers=f"uint{bits}s",
    )


def nibble_keys(name: str, *, signed: bool) -> KeyType:
    """Integers of 4 bits, the lower half of a byte."""
    key = "((int32(x) & 15) ^ 8) - 8" if signed else "int32(x) & 15"
    return KeyType(name, "uint8s", 32, f"    key = int32({key})\n", "    return key & 15\n")


def float_keys(name: str, pointer: str, width: int, infinity: int, bits: int) -> KeyType:
    """Floats of ``width`` bits, which ``pointer`` reads as integers; magnitudes greater than
    ``infinity`` are NaN."""
    number, sign = f"int{bits}", f"(-{2 ** (width - 1) - 1} - 1)"
    magnitude = f"{number}({number}(x) & {2 ** (width - 1) - 1})"
    return KeyType(
        name,
        pointer,
        bits,
        f"    magnitude = {magnitude}\n"
        f"    key = magnitude if {number}(x) == magnitude else {number}(-magnitude)\n"
        f"    key = {number}({infinity + 1}) if magnitude > {infinity} else key\n",
        f"    return key if key >= 0 else {number}({number}(-key) | {sign})\n",
        f"({magnitude} > {infinity}) | (({magnitude} == 0) & ({number}(x) != 0))",
        f"{magnitude} > {infinity}",
        infinity + 1,
        {32: "floats", 64: "doubles"}.get(width, ""),
    )
