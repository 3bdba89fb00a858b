"""Tile programs: a kernel's body as a function that Triton compiles, and what it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gptrs.backends.c_family.kernel import Kernel, KernelCall, Tiles
from gptrs.ir.program import Value

POINTERS = {"f32": "*fp32", "bf16": "*bf16", "f16": "*fp16", "si32": "*i32", "si64": "*i64"}
"""By dtype: Triton's word for a pointer. Tile programs have no other dtypes."""
ELEMENTS = {"f32": "tl.float32", "bf16": "tl.bfloat16", "f16": "tl.float16"}

_DECLARATION = re.compile(r"^const (?:isize|int) (.*);$")
_LONG = re.compile(r"\b(\d+)l\b")
_FUNCTION = re.compile(r"\w\(")


def has_tiles(values: Iterable[Value]) -> bool:
    """Whether tile programs have the dtypes of all ``values``."""
    return all(value.type.dtype.name in POINTERS for value in values)


def as_python(text: str) -> str:
    """An expression of whole numbers, as C has it, in Python: none of them is negative where it is
    divided."""
    return _LONG.sub(r"\1", text).replace(" / ", " // ")


def lines_of(lines: Iterable[str]) -> list[str]:
    """Declarations of whole numbers in C as lines of Python."""
    return [as_python(_DECLARATION.sub(r"\1", line)) for line in lines]


def is_plain(*texts: str) -> bool:
    """Whether expressions call no function of the vocabulary."""
    return not any(map(_FUNCTION.search, texts))


def tile_call(made: KernelCall, warps: int, stages: int) -> KernelCall:
    """A call of a kernel whose body is a tile program."""
    pointers = tuple(POINTERS[value.type.dtype.name] for value in made.values)
    kernel = replace(made.kernel, tiles=Tiles(pointers, warps, stages))
    return replace(made, kernel=kernel)


def tile_text(kernel: Kernel, name: str) -> str:
    """The function of a tile program."""
    given = [array.name for array in kernel.arrays]
    given += [*kernel.numbers, *(f"n_{symbol}" for symbol in kernel.symbols)]
    start = f"{kernel.index} = tl.program_id(0).to(tl.int64)"
    body = "\n".join(f"    {line}" for line in [start, *kernel.body])
    return f"def {name}({', '.join(given)}):\n{body}\n"
