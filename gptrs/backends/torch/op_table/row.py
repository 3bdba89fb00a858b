"""`Row`: the form of an op in torch, an expression with places for operands and attributes.

    Row("torch.exp({0})")                        operand 0
    Row("torch.softmax({0}, {axis})")            an attribute
    Row("pt.take(run, {0}, {1})")                a function of `gptrs.backends.torch.functions`

Besides, an expression may name ``{out}`` and ``{acc}``, the torch dtypes of the result and of its
arithmetic, ``{source}`` and ``{target}``, the names of the dtypes of the first operand and of the
result, and ``{bits}``, the width of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gptrs.backends.torch.carriers import FP8, is_narrow
from gptrs.ir.program import Instruction, Value
from gptrs.ir.types import DType, Kind, ui64
from gptrs.lazy_dataclass import dataclass

EVERY: tuple[Kind, ...] = ("bool", "int", "uint", "float", "complex")
FLOAT: tuple[Kind, ...] = ("float",)
FLOATING: tuple[Kind, ...] = ("float", "complex")
REAL: tuple[Kind, ...] = ("bool", "int", "uint", "float")


@dataclass(frozen=True)
class Row:
    """How torch computes an op, and for what."""

    text: str
    kinds: tuple[Kind, ...] = EVERY
    """Of the dtypes that it is for; of others the op may have another row."""
    moves: bool = False
    """Elements are moved as they are carried: there is no arithmetic on them."""
    narrow: bool = False
    """torch widens f16 and bf16 to f32 and rounds once by itself, as elementwise kernels do. Else
    operands are widened and the result is narrowed around it."""
    narrow_numbers: bool = False
    """The same on devices beside numbers, which are not rounded to the dtype first."""
    narrow_devices: bool = False
    """The same on devices, where products are summed in f32. On the CPU they need not be."""
    ui64: bool = False
    """Its bits are right where si64 carries ui64."""
    shares: bool = False
    """The result may be in the memory of an operand, or is not in row-major order."""
    when: Callable[[Instruction], bool] | None = None
    """Further conditions."""
    but: str = ""
    """What these conditions leave to the host, for the table of the documentation."""
    computes: Callable[[Instruction], DType] | None = None
    """The dtype of the expression, where it is not that of the arithmetic of the result."""
    extras: Callable[[Instruction], Mapping[str, Any]] | None = None
    """Further values that the expression names."""

    def accepts(self, instruction: Instruction) -> bool:
        """Whether the row is for the dtypes and attributes of ``instruction``."""
        dtypes = [v.type.dtype for v in (*instruction.values(), *instruction.results)]
        if any(dtype.kind not in self.kinds for dtype in dtypes):
            return False
        if ui64 in dtypes and not (self.ui64 or self.moves):
            return False
        return self.when is None or self.when(instruction)

    def is_direct(self, instruction: Instruction, *, on_cpu: bool) -> bool:
        """Whether narrow floats go into the expression as they are."""
        if self.moves:
            return True
        if any(v.type.dtype in FP8 for v in (*instruction.values(), *instruction.results)):
            return False
        if self.narrow_devices and not on_cpu:
            return True
        plain = all(isinstance(o, Value) or o is None for o in instruction.operands)
        return self.narrow and (plain or (self.narrow_numbers and not on_cpu))

    def computed(self, instruction: Instruction, *, direct: bool) -> DType:
        """The dtype of the expression."""
        if self.computes is not None:
            return self.computes(instruction)
        result = instruction.results[0].type.dtype
        return result if direct or not is_narrow(result) else result.compute


Rows: TypeAlias = tuple[Row, ...]
"""The rows of an op; the first that accepts an instruction is its form."""
