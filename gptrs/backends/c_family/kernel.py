"""Kernels of the C family: a loop over a parallel extent, as text that each dialect completes.

    for each `index` from 0 to `extent`, in any order:
        body

``head`` comes before the loop, and is the same for each work item. A `KernelCall` is a kernel with
the values that its arrays are, and the numbers that it is called with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from gptrs.backends.c_family.element_types import IN_MEMORY
from gptrs.backends.c_family.index_text import dim_text, symbols_in
from gptrs.ir.dims import DimLike, size_at
from gptrs.ir.program import Instruction, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class KernelArray:
    """An array that a kernel reads or writes."""

    name: str
    kind: str
    """The type of its elements in memory."""
    written: bool = False


@dataclass(frozen=True)
class Tiles:
    """What makes a kernel a tile program (`gptrs.backends.triton`), whose lines are Python."""

    pointers: tuple[str, ...]
    """Triton's words for the types of its arrays."""
    warps: int
    """Of a block."""
    stages: int
    """How many steps of a loop are under way at a time."""


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel; equal kernels are compiled once."""

    title: str = field(compare=False)
    """What it computes, in a few words that are part of its name."""
    arrays: tuple[KernelArray, ...]
    numbers: tuple[str, ...]
    """Names of its 64-bit integers."""
    symbols: tuple[str, ...]
    index: str
    extent: str
    work: str
    """About how many scalar operations a work item takes."""
    head: tuple[str, ...]
    body: tuple[str, ...]
    fails: bool = False
    """Whether it sets ``*failed`` where an element has no result."""
    group: int = 0
    """Work items that share memory and wait for each other (``BARRIER()``), of which ``lane`` is
    the number; then ``index`` counts groups. 0 where work items are independent."""
    shared: tuple[tuple[str, str, int], ...] = ()
    """The arrays that a group shares: type, name, elements."""
    tiles: Tiles | None = None
    """Whether it is a tile program; an item of the extent is a block then."""


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A launch of a kernel."""

    kernel: Kernel
    values: tuple[Value, ...]
    """By array of the kernel."""
    numbers: tuple[DimLike, ...]
    extent: DimLike
    work: DimLike
    members: frozenset[Instruction]
    """The instructions that it computes."""
    when: tuple[DimLike, int, int] | None = None
    """A size, and the least and the greatest that it is for: other calls are for other sizes."""

    def is_for(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is the call to take at these sizes."""
        return self.when is None or self.when[1] <= size_at(self.when[0], sizes) <= self.when[2]

    @property
    def written(self) -> tuple[Value, ...]:
        pairs = zip(self.kernel.arrays, self.values, strict=True)
        return tuple(value for array, value in pairs if array.written)

    @property
    def read(self) -> tuple[Value, ...]:
        pairs = zip(self.kernel.arrays, self.values, strict=True)
        return tuple(value for array, value in pairs if not array.written)


class KernelBuilder:
    """Collects the arrays and numbers of a kernel while its text is written."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[Value, bool], KernelArray] = {}
        self._numbers: dict[str, DimLike] = {}
        self._dims: list[DimLike] = []
        self.fails = False

    def read(self, value: Value) -> str:
        """The name of an array that is read."""
        return self._array(value, written=False)

    def write(self, value: Value) -> str:
        """The name of an array that is written."""
        return self._array(value, written=True)

    def _array(self, value: Value, *, written: bool) -> str:
        found = self._arrays.get((value, written))
        if found is None:
            count = sum(array.written == written for array in self._arrays.values())
            name = f"out{count or ''}" if written else f"x{count}"
            found = KernelArray(name, IN_MEMORY[value.type.dtype.name], written)
            self._arrays[value, written] = found
        return found.name

    def dim(self, value: DimLike) -> str:
        """A dimension as text; its symbols become arguments."""
        self._dims.append(value)
        return dim_text(value)

    def uses(self, values: Iterable[DimLike]) -> None:
        """Note that the text has these dimensions."""
        self._dims.extend(values)

    def number(self, value: DimLike, word: str = "offset") -> str:
        """The name of an argument whose value is ``value``: what differs between equal kernels."""
        known = (n for n, v in self._numbers.items() if n.startswith(word) and v is value)
        if (name := next(known, None)) is None:
            name = f"{word}{len(self._numbers)}"
            self._numbers[name] = value
        return name

    def fail(self, condition: str) -> str:
        """The line that reports a failure."""
        self.fails = True
        return f"if ({condition}) *failed = 1;"

    def call(
        self,
        title: str,
        index: str,
        extent: DimLike,
        body: Iterable[str],
        members: Iterable[Instruction],
        *,
        head: Iterable[str] = (),
        work: DimLike = 1,
        group: int = 0,
        shared: Iterable[tuple[str, str, int]] = (),
    ) -> KernelCall:
        """The kernel, with what it was built for."""
        kernel = Kernel(
            title=title,
            arrays=tuple(self._arrays.values()),
            numbers=tuple(self._numbers),
            symbols=symbols_in([*self._dims, extent, work]),
            index=index,
            extent=dim_text(extent),
            work=dim_text(work),
            head=tuple(head),
            body=tuple(body),
            fails=self.fails,
            group=group,
            shared=tuple(shared),
        )
        values = tuple(value for value, _ in self._arrays)
        numbers = tuple(self._numbers.values())
        return KernelCall(kernel, values, numbers, extent, work, frozenset(members))
