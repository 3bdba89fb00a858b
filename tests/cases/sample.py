"""The row of the op table: how its arrays are drawn and its results compared.

An operand that is an array is written as its type and its values: ``T[S,3] positive``. ``T`` is
the dtype that the row is run over, ``S`` an extent that is symbolic in the tests of symbolic
dimensions. Values are drawn as
`gptrs.ir.sample_arrays` says.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gptrs.ir.dims import Dim, dim, size_at
from gptrs.ir.sample_arrays import differences, draw, same_bits
from gptrs.ir.types import Array, DType, Type, as_dtype

FLOATS = ("f32", "f64", "f16", "bf16", "fp8_e4m3", "fp8_e5m2")
SIGNED = ("si8", "si16", "si32", "si64")
NIBBLES = ("si4", "ui4")
INTEGERS = (*SIGNED, "ui8", "ui16", "ui32", *NIBBLES)
COMPLEX = ("cf32", "cf64")
REAL = (*FLOATS, *INTEGERS)
NUMERIC = (*REAL, *COMPLEX)

S = dim("S")
SIZES = {"S": 3}  # where nothing is symbolic

LIBM = "the C library, NumPy and torch round these functions differently in the last places"
ORDER = "the sum is taken in another order"


@dataclass(frozen=True)
class Sample:
    """One call: operands (array texts, numbers, None, tuples of these) and attributes."""

    operands: tuple[Any, ...]
    attrs: Mapping[str, Any]


def sample(*operands: Any, **attrs: Any) -> Sample:
    return Sample(operands, attrs)


@dataclass(frozen=True)
class Case:
    """A row. ``torch`` takes the operands as torch tensors, narrow dtypes widened, and returns a
    tuple when the op has several results.

    ``ulps`` bounds the difference in units in the last place of the dtype that is computed in, for
    results below ``magnitude`` in those of ``magnitude``; ``why`` says where it comes from.
    ``fixed`` says why no sample has a symbolic extent.
    """

    op: str
    samples: tuple[Sample, ...]
    torch: Callable[..., Any]
    dtypes: tuple[str, ...] = ("f32",)
    ulps: int = 0
    magnitude: float = 0.0
    why: str = ""
    fixed: str = ""

    def differences(self, found: Array, expected: Array) -> str:
        """What is wrong with ``found``; empty when it is close enough to ``expected``."""
        return differences(found, expected, self.ulps, self.magnitude)


@dataclass(frozen=True)
class Inputs:
    """A sample at one dtype and size: the arrays in it, their types, and the places they take."""

    sample: Sample
    arrays: tuple[Array, ...]
    types: tuple[Type, ...]

    def operands(self, replace: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands with the n-th array replaced by ``replace[n]``."""
        rest = iter(replace)

        def place(operand: Any) -> Any:
            if isinstance(operand, tuple):
                return tuple(map(place, cast("tuple[Any, ...]", operand)))
            return next(rest) if isinstance(operand, str) else operand

        return tuple(map(place, self.sample.operands))


def inputs(
    sample: Sample, dtype: str, sizes: Mapping[str, int] = SIZES, *, symbolic: bool = False
) -> Inputs:
    """The arrays of ``sample``; types and attributes keep their symbols when ``symbolic``."""
    arrays: list[Array] = []
    types: list[Type] = []

    def visit(operand: Any) -> None:
        if isinstance(operand, tuple):
            for part in cast("tuple[Any, ...]", operand):
                visit(part)
        elif isinstance(operand, str):
            text, _, values = operand.partition(" ")
            type = _type(text, dtype)
            shape = tuple(size_at(n, sizes) for n in type.shape)
            seed = zlib.crc32(f"{operand} {dtype} {sizes} {len(arrays)}".encode())
            types.append(type if symbolic else type.with_shape(shape))
            arrays.append(draw(type.with_shape(shape), values, np.random.default_rng(seed)))

    for operand in sample.operands:
        visit(operand)

    def fill(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(fill, cast("tuple[Any, ...]", value)))
        if isinstance(value, Dim) and not symbolic:
            return size_at(value, sizes)
        return dtype if isinstance(value, str) and value == "T" else value

    attrs = {name: fill(value) for name, value in sample.attrs.items()}
    return Inputs(replace(sample, attrs=attrs), tuple(arrays), tuple(types))


def _type(text: str, dtype: str) -> Type:
    return Type.parse(re.sub(r"\bS\b", "?S", text.replace("T[", f"{dtype}[")))


def several(results: Any) -> tuple[Any, ...]:
    """What a call gave, one result or a tuple of them, as a tuple."""
    return cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)


def is_symbolic(sample: Sample) -> bool:
    """Whether an operand of ``sample`` has the extent S."""
    return bool(re.search(r"\bS\b", str(sample.operands)))


def wide(array: Array) -> Array:
    """An array as torch computes on it: narrow floats as f32, integers as 64-bit ones."""
    dtype = as_dtype(array.dtype)
    if dtype.is_integer:
        return array.astype(np.int64)
    return array.astype(dtype.compute.numpy)


def narrowed(array: Array, dtype: DType) -> Array:
    """A wide result in ``dtype``: floats rounded once, integers wrapped."""
    with np.errstate(all="ignore"):
        if dtype.is_integer and array.dtype.kind in "iu":
            unsigned = array.astype(np.int64) & ((1 << dtype.bits) - 1 if dtype.bits < 64 else -1)
            negative = (unsigned > dtype.limits[1]) & (dtype.bits < 64)
            return np.where(negative, unsigned - (1 << dtype.bits % 64), unsigned).astype(
                dtype.numpy
            )
        return array.astype(dtype.numpy)


def all_same_bits(a: Sequence[Array], b: Sequence[Array]) -> bool:
    """`same_bits` of all results of two calls."""
    return len(a) == len(b) and all(map(same_bits, a, b))
