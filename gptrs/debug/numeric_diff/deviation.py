"""`Deviation`: the first instruction or pass by which a backend's results are not the program's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gptrs.debug.numeric_diff.difference import Difference
from gptrs.errors import Location
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Deviation:
    """The first instruction whose result on a backend is not that of the reference backend, or the
    first pass that changed what the program computes."""

    kind: Literal["instruction", "pass"]
    name: str
    """The op (the target of a `custom_call`), or the pass."""
    text: str
    """The printed instruction, or the diff of the pass."""
    where: Location | None
    """The user's line of the instruction."""
    difference: Difference

    def lines(self, backend: str) -> Iterator[str]:
        """The same in words."""
        apart = f"max abs {self.difference.max_abs:.3g}"
        if self.kind == "pass":
            yield f"the pass {self.name} changes what it computes ({apart}):"
        else:
            yield f"the first instruction that {backend} computes otherwise than the reference"
            yield f"backend ({apart}):"
        yield from (f"    {line}" for line in self.text.splitlines())
        if self.where is not None:
            yield f"    at {self.where}"
