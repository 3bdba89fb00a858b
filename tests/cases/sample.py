"""What a row of the table is, and how its arrays are made and compared.

An operand that is an array is written as its type and its values: ``T[S,3] positive``. ``T`` is
the dtype that the row is run over, ``S`` an extent that is symbolic in the tests of symbolic
dimensions. Values are drawn by a seeded generator:

    (nothing)   a few units around 0
    any         NaN, infinities, both zeros, denormals, the largest; for integers the extremes
    special     NaN, infinities and both zeros among ordinary numbers
    positive, nonzero, unit (between -1 and 1)
    0..3        uniform, integers with both ends
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import ml_dtypes
import numpy as np

from gptrs.ir.dims import Dim, dim, size_at
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


def draw(type: Type, values: str, rng: np.random.Generator) -> Array:
    """An array of ``type`` (whose shape is known); see the head of this file for ``values``."""
    shape = [int(n) for n in type.shape]
    dtype = type.dtype
    if dtype.is_bool:
        return np.asarray(rng.random(shape) < 0.5)
    if found := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", values):
        low, high = int(found[1]), int(found[2])
        if dtype.is_integer:
            whole = rng.integers(low, high, shape, np.int64, endpoint=True)
            return np.asarray(whole).astype(dtype.numpy)
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype.numpy)
    if dtype.is_complex:
        wide = np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))
        return wide.astype(dtype.numpy)
    plain = _integers(dtype, values, shape, rng) if dtype.is_integer else None
    if plain is None:
        plain = _floats(dtype, values, shape, rng)
    with np.errstate(all="ignore"):
        return np.asarray(plain).astype(dtype.numpy)


def _integers(dtype: DType, values: str, shape: list[int], rng: np.random.Generator) -> Array:
    low, high = dtype.limits
    if values in ("any", "special"):
        drawn = rng.integers(low, high, shape, np.uint64 if low == 0 else np.int64, endpoint=True)
        extremes = np.array(
            [low, high, 0, 1, high - 1, low + 1, 1 if low == 0 else -1], drawn.dtype
        )
        return np.where(rng.random(shape) < 0.5, rng.choice(extremes, shape), drawn)
    ends = {"positive": (1, 5), "nonzero": (1, 5)}.get(values, (max(low, -5), 5))
    drawn = rng.integers(*ends, shape, endpoint=True)
    negative = (values == "nonzero") & (low < 0) & (rng.random(shape) < 0.5)
    return np.where(negative, -drawn, drawn)


def _floats(dtype: DType, values: str, shape: list[int], rng: np.random.Generator) -> Array:
    match values:
        case "positive":
            return rng.uniform(0.1, 4, shape)
        case "nonzero":
            return rng.uniform(0.1, 4, shape) * rng.choice([-1.0, 1.0], shape)
        case "unit":
            return rng.uniform(-1, 1, shape)
        case _:
            drawn = np.asarray(rng.normal(scale=2, size=shape))
    info = _finfo(dtype)
    tiny, largest = float(info.smallest_subnormal), float(info.max)
    extremes = {
        "any": (np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, largest, -largest, 0.5, 2.5, -1.5),
        "special": (np.nan, np.inf, -np.inf, 0.0, -0.0),
    }.get(values, ())
    if not extremes:
        return drawn
    return np.where(rng.random(shape) < 0.5, rng.choice(extremes, shape), drawn)


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


def differences(found: Array, expected: Array, ulps: int = 0, magnitude: float = 0.0) -> str:
    """What is wrong with ``found``; empty when it is close enough to ``expected``.

    With 0 ulps the two are equal (NaN to NaN). Otherwise see `Case`; results in a narrow dtype,
    to which slightly different numbers were rounded, may differ by one more unit of that.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"found {Type.of(found)}, expected {Type.of(expected)}"
    dtype = as_dtype(found.dtype)
    a, b = _comparable(found, dtype), _comparable(expected, dtype)
    with np.errstate(all="ignore"):
        good = (a == b) | ((a != a) & (b != b))
        if ulps and (dtype.is_float or dtype.is_complex):
            allowed = ulps * float(_finfo(dtype.compute).eps) * np.maximum(np.abs(b), magnitude)
            if dtype.compute is not dtype:
                info = _finfo(dtype)
                allowed += np.maximum(float(info.eps) * np.abs(b), float(info.smallest_subnormal))
            good |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
    if good.all():
        return ""
    at = tuple(map(int, np.argwhere(~good)[0]))
    return f"{(~good).sum()} of {good.size} elements, first {at}: found {a[at]}, expected {b[at]}"


def _comparable(array: Array, dtype: DType) -> Array:
    if dtype.bits == 4:
        return array.astype(np.int64)
    with np.errstate(all="ignore"):  # signalling NaNs
        return array.astype(np.float64) if dtype.is_float else array


def all_same_bits(a: Sequence[Array], b: Sequence[Array]) -> bool:
    """`same_bits` of all results of two calls."""
    return len(a) == len(b) and all(map(same_bits, a, b))


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays have equal bits, all NaNs taken for one."""
    if differences(a, b):
        return False
    if a.dtype.kind == "c":
        return same_bits(np.real(a), np.real(b)) and same_bits(np.imag(a), np.imag(b))
    return not as_dtype(a.dtype).is_float or bool(
        np.array_equal(np.signbit(a) & (a == a), np.signbit(b) & (b == b))
    )


def _finfo(dtype: DType) -> Any:
    """Limits of a float dtype, or of the parts of a complex one."""
    parts = {"cf32": np.dtype(np.float32), "cf64": np.dtype(np.float64)}
    return cast("Any", ml_dtypes.finfo(parts.get(dtype.name, dtype.numpy)))
