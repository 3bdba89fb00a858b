"""Source lines of a control flow kernel: its arrays, the words of its argument block, its names.

`Array` is the memory of a value as the source names it. Values of an iteration with at most
`MOST_ELEMENTS` elements are local arrays; LLVM keeps scalars in registers. Larger ones are in
scratch memory, `_MOST_BYTES` each.
"""

from __future__ import annotations

from collections.abc import Mapping

from gptrs.backends.faer import scalars
from gptrs.ir.dims import Dim, DimLike
from gptrs.ir.program import Value
from gptrs.ir.types import Type
from gptrs.lazy_dataclass import dataclass

MOST_ELEMENTS = 64
_MOST_BYTES = 1 << 16  # of a value, so that all of them stay in the cache
_MOST_KNOWN = 64  # sizes up to this are in the text, for loops of known length


class UnwritableError(Exception):
    """The loop needs more than regions over small arrays."""


@dataclass(frozen=True)
class Array:
    """The memory of a value in the source: a pointer's text and the element type."""

    text: str
    type: Type

    @property
    def size(self) -> int:
        """The number of elements."""
        return _size(self.type)

    @property
    def bytes(self) -> int:
        """What its elements take; negative where it is not known."""
        return self.size * self.type.dtype.numpy.itemsize

    @property
    def is_small(self) -> bool:
        """Whether it is an array on the stack."""
        return self.size <= MOST_ELEMENTS


class ControlLines:
    """Writes lines, and declares the arrays and words that they use."""

    def __init__(self) -> None:
        self._words: dict[str, DimLike | float] = {}
        self._word_names: dict[object, str] = {}
        self._locals: list[str] = []
        self._scratch: list[Array] = []
        self._lines: list[str] = []
        self._depth = 1
        self._counts: dict[str, int] = {}

    def _array(self, value: Value, env: Mapping[Value, Array]) -> Array:
        if value not in env:
            raise UnwritableError  # a constant array of a region
        return env[value]

    def _local(self, type: Type, word: str, most: int = _MOST_BYTES) -> Array:
        """An array on the stack or, if it is larger, in scratch memory."""
        if type.dtype.name not in scalars.POINTERS:
            raise UnwritableError
        array = Array(self._fresh(word), type)
        self._check_size(array, most)
        if array.is_small:
            self._locals.append(f"    {array.text} = local_{pointer(type)}({array.size})")
        else:
            self._scratch.append(array)
        return array

    def _check_size(self, array: Array, most: int = _MOST_BYTES) -> None:
        if not 0 <= array.bytes <= most:
            raise UnwritableError

    def _copy(self, target: Array, source: Array) -> None:
        if target.text == source.text:
            return
        self._check_size(target)
        if target.size == 1:
            self._add(f"{target.text}[0] = {source.text}[0]")
        elif target.size:
            k = self._fresh("k")
            self._add(f"for {k} in range({target.size}):")
            self._add(f"    {target.text}[{k}] = {source.text}[{k}]")

    def _word(self, value: DimLike | float, letter: str, *, known: bool = True) -> str:
        """A word of the argument block, or the text of a small number."""
        if known and type(value) is int and abs(value) <= _MOST_KNOWN:
            return str(value)
        key = (letter, str(value) if isinstance(value, Dim) else (type(value), repr(value)))
        if key not in self._word_names:
            self._word_names[key] = self._fresh(letter)
            self._words[self._word_names[key]] = value
        return self._word_names[key]

    def _fresh(self, word: str) -> str:
        self._counts[word] = self._counts.get(word, -1) + 1
        return f"{word}_{self._counts[word]}"

    def _add(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)


def pointer(type: Type) -> str:
    """The type of a pointer to elements of this dtype, in the source."""
    return scalars.POINTERS[type.dtype.name]


def _size(type: Type) -> int:
    """The number of elements; -1 where it is not known."""
    size = type.size
    return size if isinstance(size, int) else -1
