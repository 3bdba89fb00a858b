"""Rendering of a region: its kernel source, and the same loops as a standalone Numba function.

A region's argument block holds the addresses of its inputs and of its result, then sizes, offsets,
strides other than 0 and 1 of the innermost loops, and numbers of the program, in the order of their
first use. So the text is free of names, sizes and most numbers, and equal loops share a kernel.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from gptrs.backends.faer import scalars
from gptrs.backends.faer.loop_writer import LoopWriter
from gptrs.backends.regions import Region
from gptrs.ir.dims import DimLike
from gptrs.ir.program import Value


@dataclass(frozen=True)
class Rendered:
    """The kernel source of a region, and the contents of its argument block."""

    name: str
    source: str
    """A kernel for `gptrs.kernels.compiler.compile.compile_source`."""
    standalone: str
    """The same loops as a Numba function of flat arrays and sizes, parallel by itself."""
    inputs: tuple[Value, ...]
    result: Value
    words: tuple[DimLike | float, ...]
    extent: DimLike


def as_word(value: DimLike | float) -> DimLike:
    """The word in the argument block for one of `Rendered.words`: of a float, its bits as f64."""
    return struct.unpack("q", struct.pack("d", value))[0] if isinstance(value, float) else value


def render(region: Region, *, precise: bool = False, shared: bool = False) -> Rendered:
    """The source of the kernel that computes ``region``. A ``precise`` kernel rounds narrow floats
    after each op; a ``shared`` one has no numbers of the program in its text."""
    writer = LoopWriter(region, precise=precise, shared=shared)
    writer.write()
    body = "\n".join([*writer.head, "{loop}", *writer.rows, *writer.lines])
    pointers = [*writer.inputs, region.result]
    kinds = [scalars.POINTERS[v.type.dtype.name] for v in pointers]
    names = [f"x{i}" for i in range(len(pointers) - 1)] + ["out"]
    functions = [writer.functions[name] for name in sorted(writer.functions)]
    text = "\n".join([*kinds, *writer.notes, *functions, body])
    digest = hashlib.sha256(text.encode()).hexdigest()
    name = f"{'_'.join(writer.title)}_{digest[:12]}"
    block = [
        f"    {each} = {kind}(block[{i}])  # {note}"
        for i, (each, kind, note) in enumerate(zip(names, kinds, writer.notes, strict=True))
    ]
    words = writer.words.values
    if any(isinstance(value, float) for value in words.values()):
        block.append("    numbers = doubles(arguments)")
    block += [
        f"    {word} = {'numbers' if isinstance(value, float) else 'block'}[{i}]"
        for i, (word, value) in enumerate(words.items(), len(names))
    ]
    counter = "j" if region.is_flat else "row"
    kernel = [
        *functions,
        f"def {name}(arguments, first, last):",
        "    block = words(arguments)",
        *block,
        body.format(loop=f"    for {counter} in range(first, last):"),
    ]
    notes = [f"    # {n}: {note}" for n, note in zip(names, writer.notes, strict=True)]
    used = [name for name in _FROM_KERNELS if f"{name}(" in "\n".join([*functions, body])]
    alone = [
        *_IMPORTS,
        *([f"from gptrs.kernels.compiler.numba_lowering import {', '.join(used)}"] if used else []),
        "",
        "",
        *(f"@njit(error_model='numpy')\n{function}\n" for function in functions),
        "@njit(parallel=True, error_model='numpy')",
        f"def {name}({', '.join([*names, *writer.words.sizes, 'extent'])}):",
        *notes,
        *(f"    {word} = {words[word]}" for word in words if word not in writer.words.sizes),
        body.format(loop=f"    for {counter} in prange(extent):"),
    ]
    return Rendered(
        name,
        "\n".join(kernel) + "\n",
        "\n".join(alone) + "\n",
        tuple(writer.inputs),
        region.result,
        tuple(words.values()),
        region.extent,
    )


_IMPORTS = (
    "import math",
    "from numba import njit, prange",
    "from numpy import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64",
)
# What a loop may use that is neither Python's nor NumPy's.
_FROM_KERNELS = (
    *("bits_float", "float_bits", "float_half", "half_float"),
    *("erf32", "exp32", "log32", "tanh32", "maximum", "minimum"),
    *("maximum_of", "minimum_of", "product_of", "sum_of", "scratch_doubles", "scratch_floats"),
)
