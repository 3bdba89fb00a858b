"""The kernel of a branch or a loop in Numba source: what `control_writer` and `interchange_writer`
write and `schedule` binds."""

from __future__ import annotations

from gptrs.ir.dims import DimLike
from gptrs.ir.program import Instruction, Value
from gptrs.lazy_dataclass import dataclass


@dataclass(frozen=True)
class ControlSource:
    """The source of a native loop, and what its argument block holds."""

    name: str
    source: str
    inputs: tuple[Value, ...]
    words: tuple[DimLike | float, ...]
    """After the addresses of all arrays, and before that of the status."""
    instructions: int
    """Instructions inside of the regions that it runs."""
    extent: DimLike = 1
    """The parallel extent."""
    operations: DimLike = 0
    """Scalar operations of all of it, as far as they are known: a reason to wake threads."""
    checks: tuple[Instruction, ...] = ()
    """Those in its regions, in the order of their codes."""
    scratch: tuple[int, ...] = ()
    """The bytes of arrays that the kernel computes with, whose addresses follow the results'."""
