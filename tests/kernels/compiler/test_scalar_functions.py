"""Functions of one number in loops: their accuracy, their ends, equal bits in vectors and alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs.kernels.compiler import isa
from gptrs.kernels.compiler.compile import Kernel, compile_source
from gptrs.kernels.scalar_functions import NAMES
from gptrs.kernels.trigonometry import LIMITS
from tests.support.kernels import HERE

WIDE = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant
needs_wide = pytest.mark.skipif(not WIDE, reason="long double is no wider than f64 here")

SOURCE = """
def {0}_of_scalars(arguments, first, last):
    block = words(arguments)
    x, out = {1}(block[0]), {1}(block[1])
    for i in range(first, last):
        out[i] = {0}(x[i])
"""

# By function: the bound in ulp, which its module in gptrs/kernels states.
BOUNDS = {
    "exp64": 1.2,
    "log64": 1.0,
    "tanh64": 2.5,
    "erf64": 1.5,
    "sin64": 1.0,
    "cos64": 1.0,
    "sin32": 1.5,
    "cos32": 1.5,
    "tan64": 2.5,
    "tan32": 3.2,
    **{f"expm1{bits}": 1.7 for bits in (32, 64)},
    **{f"exp2{bits}": 1.2 for bits in (32, 64)},
    **{f"sinh{bits}": 2.5 for bits in (32, 64)},
    **{f"cosh{bits}": 1.8 for bits in (32, 64)},
    **{f"log1p{bits}": 1.5 for bits in (32, 64)},
    **{f"{name}{bits}": 1.0 for name in ("log2", "log10", "asin", "acos") for bits in (32, 64)},
    **{f"{name}{bits}": 2.5 for name in ("asinh", "acosh", "atanh", "atan") for bits in (32, 64)},
    "cbrt32": 0.51,
    "cbrt64": 1.0,
}


def dtype_of(name: str) -> type[np.floating[Any]]:
    return np.float32 if name.endswith("32") else np.float64


def kernel_of(name: str) -> Kernel:
    pointer = "floats" if name.endswith("32") else "doubles"
    return compile_source(SOURCE.format(name, pointer), f"{name}_of_scalars")


def run(kernel: Kernel, x: NDArray[Any], first: int = 0, last: int | None = None) -> NDArray[Any]:
    y = np.full_like(x, -7.0)
    words = np.array([x.ctypes.data, y.ctypes.data], np.int64)
    kernel(words.ctypes.data, first, x.size if last is None else last)
    return y


def exact(name: str, x: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if name.endswith("32") else np.longdouble)
        return _erf(x) if name == "erf64" else _of_numpy(name)(wide)


def _of_numpy(name: str) -> Any:
    """NumPy's function: ``arcsin`` for ``asin32``."""
    name = name[:-2]
    return getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)


def _erf(x: NDArray[Any]) -> NDArray[Any]:
    """The C library's, of 1 ulp, as NumPy has none."""
    return np.array([math.erf(v) for v in x.tolist()], np.longdouble)


def samples(name: str, count: int = 60_000) -> NDArray[Any]:
    """Dense where functions bend, multiples of π/2 and their neighbours, then any bits."""
    rng, dtype = np.random.default_rng(5), dtype_of(name)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64)
    anything = (bits >> 32).astype(np.uint32).view(np.float32)
    limit = LIMITS["float" if dtype is np.float32 else "double"]
    quarters = (rng.integers(0, int(limit), count) * (np.pi / 2)).astype(dtype)
    parts = [
        bits.view(np.float64) if dtype is np.float64 else anything,
        *(np.linspace(-bound, bound, count) for bound in (1.0, 30.0, 760.0)),
        *(quarters, np.nextafter(quarters, dtype(0)), np.nextafter(quarters, dtype(np.inf))),
        rng.uniform(-2 * limit, 2 * limit, count),
        np.exp(rng.uniform(-60, 60, count)) * rng.choice([-1.0, 1.0], count),
        (1 + np.exp(rng.uniform(-30, 1, count)) * rng.choice([-1.0, 1.0], count)),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-308, 1.7e308, limit, -limit],
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([np.asarray(part).astype(dtype) for part in parts])


def ulps(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """The error in units of the last place of the exact result, rounded to the dtype found."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(found.dtype)
        error = np.abs(found - expected) / np.spacing(np.abs(rounded)).astype(expected.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)


@needs_wide
@pytest.mark.parametrize("function", BOUNDS)
@pytest.mark.parametrize("name", HERE)
def test_ulps(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_ISA", name)
    x = samples(function)
    found = run(kernel_of(function), x)
    expected = exact(function, x)
    assert ulps(found, expected).max() <= BOUNDS[function]
    number = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("function", BOUNDS)
@pytest.mark.parametrize("name", HERE)
def test_bits_are_equal_alone_and_in_vectors(
    name: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_ISA", name)
    kernel, x = kernel_of(function), samples(function, 40)
    np.random.default_rng(1).shuffle(x)  # large numbers beside small ones
    whole = run(kernel, x)
    alone = np.concatenate([run(kernel, x, i, i + 1)[i : i + 1] for i in range(x.size)])
    np.testing.assert_array_equal(alone, whole)
    np.testing.assert_array_equal(np.signbit(alone[alone == 0]), np.signbit(whole[alone == 0]))


@pytest.mark.parametrize("function", BOUNDS)
@pytest.mark.parametrize("name", HERE)
def test_loops_have_vectors(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isa.host()[0].startswith("x86_64"):
        pytest.skip("reads x86 assembly")
    monkeypatch.setenv("GPTRS_ISA", name)
    lines = kernel_of(function).assembly().split("\n")
    suffix = "ps" if function.endswith("32") and function != "cbrt32" else "pd"  # it is of f64
    vector = {"avx512": "%zmm", "avx2": "%ymm", "generic": "%xmm"}[name]
    assert any(f"mul{suffix}" in line or f"add{suffix}" in line for line in lines if vector in line)
    assert not any("vector." in line for line in lines)


def test_ends_of_the_range() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 709.79, -745.2])
    nan, inf = np.nan, np.inf
    expected = {
        "exp64": [1.0, 1.0, inf, 0.0, nan, inf, 0.0],
        "log64": [-inf, -inf, inf, nan, nan, np.log(x[5]), nan],
        "tanh64": [0.0, -0.0, 1.0, -1.0, nan, 1.0, -1.0],
        "erf64": [0.0, -0.0, 1.0, -1.0, nan, 1.0, -1.0],
        "sin64": [0.0, -0.0, nan, nan, nan, np.sin(x[5]), np.sin(x[6])],
        "cos64": [1.0, 1.0, nan, nan, nan, np.cos(x[5]), np.cos(x[6])],
    }
    for function, row in expected.items():
        found, wanted = run(kernel_of(function), x), np.array(row)
        np.testing.assert_allclose(found, wanted, rtol=1e-15, err_msg=function)
        np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(wanted[:2]))


OF_PAIRS = """
def function_of_pairs(arguments, first, last):
    block = words(arguments)
    x, y, out = {1}(block[0]), {1}(block[1]), {1}(block[2])
    for i in range(first, last):
        out[i] = {0}(x[i], y[i])
"""


BOUNDS_OF_PAIRS = {
    "pow32": 0.51,
    "pow64": 1.5,
    "atan232": 2.5,
    "atan264": 2.5,
    "hypot32": 0.51,
    "hypot64": 1.2,
}
OF_NUMPY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}


@needs_wide
@pytest.mark.parametrize("function", BOUNDS_OF_PAIRS)
@pytest.mark.parametrize("name", HERE)
def test_pairs(name: str, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any bits, whole powers of negative numbers, and all pairs of what IEEE 754 treats apart."""
    monkeypatch.setenv("GPTRS_ISA", name)
    rng, count = np.random.default_rng(0), 50_000
    ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0]
    ends += [2.0**24, 2.0**24 - 1, 2.0**25, 1e-45, -1e-45, 1e30, -1e30]
    dtype = dtype_of(function)
    if dtype is np.float64:
        ends += [2.0**53 - 1, 2.0**53, 2.0**52 + 1, 5e-324, -5e-324, 1e300, -1e300, 1 + 2.0**-52]
    whole = f"u{np.dtype(dtype).itemsize}"
    pairs: list[Any] = [
        rng.integers(0, np.iinfo(whole).max, (2, count), whole, endpoint=True).view(dtype),
        [rng.normal(size=count) * 3, rng.integers(-9, 9, count)],
        [rng.random(count) * 4, rng.normal(size=count) * 30],
        [1 + rng.normal(size=count) * 1e-4, rng.normal(size=count) * 1e6],
        [axis.ravel() for axis in np.meshgrid(ends, ends)],
    ]
    drawn = np.concatenate([np.asarray(pair, dtype) for pair in pairs], axis=1)
    x, y = (np.ascontiguousarray(row) for row in drawn)
    found = np.empty_like(x)
    block = np.array([x.ctypes.data, y.ctypes.data, found.ctypes.data], np.int64)
    pointer = "floats" if dtype is np.float32 else "doubles"
    source = OF_PAIRS.format(function, pointer)
    compile_source(source, "function_of_pairs")(block.ctypes.data, 0, x.size)
    with np.errstate(all="ignore"):
        expected = OF_NUMPY[function[:-2]](x.astype(np.longdouble), y.astype(np.longdouble))
    assert ulps(found, expected).max() <= BOUNDS_OF_PAIRS[function]
    number = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_every_function_has_a_bound() -> None:
    """The others are in test_vector_math, or have the bits of NumPy in test_float_division."""
    elsewhere = {"exp32", "log32", "tanh32", "erf32"}
    elsewhere |= {f"{name}{bits}" for name in ("floor_divide", "remainder") for bits in (32, 64)}
    assert {*BOUNDS, *BOUNDS_OF_PAIRS} == set(NAMES) - elsewhere
