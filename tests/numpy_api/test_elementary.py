"""Elementary functions and complex numbers against NumPy, traced and eager, at the ends too."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import DTypeError
from gptrs.ir.types import Array
from tests.cases.sample import several

ptir: Any = namespace  # arrays in place of Tensors
inf, nan = np.inf, np.nan
ENDS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-45, 3e38, inf, -inf, nan], np.float32)
Z = np.array([1 + 2j, -0.5 + 0.1j, 0, 3 - 4j, -2, 1e-3j, 1e-4 - 1e-5j], np.complex64)
UNARY = (
    *("log1p", "log2", "log10", "expm1", "exp2", "tan", "arcsin", "arccos", "arctan", "sinh"),
    *("cosh", "arcsinh", "arccosh", "arctanh", "trunc", "signbit", "isnan", "isinf", "isfinite"),
    *("square", "abs", "absolute", "sign", "floor", "ceil", "round", "real", "imag", "conj"),
    *("angle", "conjugate", "cbrt"),
)
NOT_OF_COMPLEX = ("cbrt", "trunc", "signbit", "floor", "ceil")
PAIRS = ("arctan2", "hypot", "copysign", "nextafter", "logaddexp")


def check(name: str, *operands: Array) -> None:
    """The function gives what NumPy's does, in both modes."""
    with np.errstate(all="ignore"):
        # In cf32, NumPy's log1p loses half of the digits near 0.
        wide = [x.astype(np.complex128) if x.dtype.kind == "c" else x for x in operands]
        expected: Array = getattr(np, name)(*wide)
    function = getattr(ptir, name)
    for found in (function(*operands), ptir.jit(lambda *arrays: function(*arrays))(*operands)):
        assert found.dtype.kind == ptir.Type.of(expected).dtype.kind
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-38)
        if found.dtype.is_float:
            number = ~np.isnan(expected)
            signs = np.signbit(found.numpy())[number]
            np.testing.assert_array_equal(signs, np.signbit(expected)[number])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one(name: str, dtype: Any) -> None:
    check(name, ENDS.astype(dtype))


@pytest.mark.parametrize("name", [name for name in UNARY if name not in NOT_OF_COMPLEX])
def test_a_function_of_complex_numbers(name: str) -> None:
    check(name, Z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two(name: str, dtype: Any) -> None:
    x, y = np.meshgrid(ENDS.astype(dtype), ENDS.astype(dtype))
    check(name, x.copy(), y.copy())


@pytest.mark.parametrize("name", ["log1p", "arctan", "isnan", "angle", "square", "abs", "sign"])
def test_integers_of_a_floating_function_become_f32(name: str) -> None:
    check(name, np.arange(1, 5, dtype=np.int32))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "real", "conj", "abs"])
def test_integers_stay(name: str) -> None:
    x = np.arange(-3, 3, dtype=np.int8)
    found = getattr(ptir, name)(x)
    assert found.dtype is ptir.si8
    assert found.tolist() == (abs(x) if name == "abs" else x).tolist()


def test_neighbours_of_narrow_floats() -> None:
    x = ptir.tensor(np.array([1.0, 0.0, -1.0, 65504.0]), dtype="f16")
    for found in (ptir.nextafter(x, inf), ptir.jit(lambda x: ptir.nextafter(x, inf))(x)):
        with np.errstate(over="ignore"):
            expected = np.nextafter(x.numpy(), np.float16(inf))
        np.testing.assert_array_equal(found.numpy(), expected)
    one = ptir.tensor(np.array([1.0, -1.0]), dtype="bf16")
    for found in (ptir.nextafter(one, 0.0), ptir.jit(lambda x: ptir.nextafter(x, 0.0))(one)):
        np.testing.assert_array_equal(found.numpy().astype(float), [1 - 2**-8, 2**-8 - 1])


def test_rounding_to_decimals() -> None:
    x = np.array([1.25, -2.345, 1234.5], np.float32)
    np.testing.assert_allclose(ptir.round(x, 1).numpy(), np.round(x, 1))
    np.testing.assert_allclose(ptir.round(x, decimals=-2).numpy(), np.round(x, -2))


def test_complex_numbers_of_parts() -> None:
    made = ptir.complex(np.arange(3, dtype=np.float32), 2)
    assert made.dtype is ptir.cf32
    assert made.tolist() == [2j, 1 + 2j, 2 + 2j]
    assert ptir.complex(1, np.zeros(2)).dtype is ptir.cf64
    assert ptir.jit(lambda x: abs(x) + ptir.conj(x) * 1j)(Z).dtype is ptir.cf32


FLOATS = np.array([0.0, -0.0, 1.0, -1.5, 0.25, 3e5, inf, -inf, nan], np.float32)


@pytest.mark.parametrize("name", ["deg2rad", "rad2deg", "degrees", "radians", "nan_to_num"])
def test_a_function_of_ends(name: str) -> None:
    check(name, FLOATS)


@pytest.mark.parametrize("name", ["heaviside", "fmax", "fmin", "isclose"])
def test_a_function_of_pairs(name: str) -> None:
    each = np.delete(FLOATS, 1)  # of two zeros, NumPy takes either
    x, y = np.meshgrid(each, each)
    check(name, x.copy(), y.copy())


def test_sinc() -> None:
    check("sinc", np.linspace(-3.3, 3.3, 10, dtype=np.float32))
    assert ptir.sinc(np.zeros(2, np.float32)).tolist() == [1, 1]
    # An angle of 16 bits would be off by a fifth of the result here.
    x = ptir.full((1,), -3.96875, dtype=ptir.bf16)
    with ptir.eager():
        assert ptir.sinc(x).astype(ptir.f32).item() == pytest.approx(-0.0078565, rel=4e-3)


def test_functions_that_numpy_has_not() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(FLOATS)
    for name, given in {"xlogy": (x, x.flip(0)), "logit": (x,), "frac": (x[:6],)}.items():
        expected = getattr(torch, name)(*given).numpy()
        arrays = [operand.numpy() for operand in given]
        function = getattr(ptir, name)
        found = function(*arrays), ptir.jit(lambda *arrays: function(*arrays))(*arrays)  # noqa: B023
        for each in found:
            np.testing.assert_allclose(each.numpy(), expected, rtol=1e-6, err_msg=name)


def test_divmod() -> None:
    x, y = np.array([7, -7, 8]), np.array([2, 2, -3])
    for found, expected in zip(ptir.divmod(x, y), np.divmod(x, y), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


def _same(name: str, *operands: Array) -> None:
    """The function has NumPy's results, eager and traced, and their dtypes."""
    with np.errstate(all="ignore"):
        expected: Any = getattr(np, name)(*operands)
    function = getattr(ptir, name)
    for found in (function(*operands), ptir.jit(lambda *arrays: function(*arrays))(*operands)):
        for one, wanted in zip(several(found), several(expected), strict=True):
            assert one.dtype.numpy == wanted.dtype
            np.testing.assert_array_equal(one.numpy(), wanted, err_msg=name)
            numbers = ~np.isnan(wanted)
            signs = np.signbit(one.numpy().astype("f8")[numbers])
            np.testing.assert_array_equal(signs, np.signbit(wanted.astype("f8")[numbers]))


@pytest.mark.parametrize(("dtype", "power"), [("f2", 4), ("f4", 37), ("f8", 300)])
def test_parts_of_numbers(dtype: str, power: int) -> None:
    random, kind = np.random.default_rng(0), np.finfo(dtype)
    size = 10.0 ** random.uniform(-power, power, 200)
    x = (random.choice([-1, 1], 200) * size).astype(dtype)
    beside = [
        np.nextafter(2.0 ** np.arange(-9, 9, dtype=dtype), np.array(y, dtype)) for y in (0, 9)
    ]
    ends = np.array([0.0, -0.0, -1, 3, inf, -inf, nan, kind.max, -kind.smallest_subnormal], dtype)
    x = np.concatenate([x, *beside, ends])
    for name in ("frexp", "modf", "isposinf", "isneginf", "isreal", "iscomplex"):
        _same(name, x)
    _same("spacing", np.abs(x) if dtype == "f2" else x)  # NumPy turns to +∞ in f16
    _same("ldexp", x, random.integers(-7 * power, 7 * power, x.size))
    _same("ldexp", x, random.integers(-128, 128, x.size, dtype=np.int8))
    _same("fmod", x, random.permutation(x))
    _same("iscomplex", Z)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u8"])
def test_functions_of_integers(dtype: str) -> None:
    random, kind = np.random.default_rng(0), np.iinfo(dtype)
    ends = np.array([kind.min, kind.max, 0, 1, 2], dtype)
    x = np.concatenate([random.integers(kind.min, kind.max, 100, dtype), ends])
    y = random.permutation(x)
    _same("bitwise_count", x)
    _same("gcd", x, y)
    _same("lcm", x, y)
    _same("fmod", x, np.where(y == 0, 3, y).astype(dtype))


def test_powers_and_sums_of_powers() -> None:
    x, y = np.meshgrid(FLOATS, FLOATS)
    check("logaddexp2", x.copy(), y.copy())
    assert ptir.float_power(2, -1).item() == 0.5
    assert ptir.float_power(np.arange(3), 2).dtype is ptir.f32
    with pytest.raises(DTypeError, match="expected integers"):
        ptir.ldexp(1.0, 2.0)
    with pytest.raises(DTypeError, match="expected integers"):
        ptir.bitwise_count(1.0)


def test_names_of_torch() -> None:
    x = np.array([1.0, 2], np.float32)
    assert ptir.lerp(x, 3, 0.5).tolist() == [2, 2.5]
    assert ptir.polar(2.0, np.zeros(1)).tolist() == [2]
    np.testing.assert_allclose(ptir.polar(x, x).numpy(), x * np.exp(1j * x), rtol=1e-6)
    assert ptir.lt(x, 2).tolist() == [True, False]
    assert ptir.clamp_min(x, 1.5).tolist() == [1.5, 2]


def test_equality_of_arrays() -> None:
    one = np.array([1, nan], np.float32)
    assert not ptir.array_equal(one, one).item()
    assert ptir.array_equal(one, one, equal_nan=True).item()
    assert not ptir.array_equal(one, one[:1]).item()
    assert not ptir.allclose(one, one).item()
    assert ptir.allclose(one, one * (1 + 1e-6), equal_nan=True).item()
    assert ptir.nan_to_num(Z * nan, nan=2.0).tolist() == [2 + 2j] * Z.size
    assert ptir.fmax(np.array([1, 2], np.int32), 2).dtype is ptir.si32


def test_statistics_of_complex_numbers() -> None:
    for name in ("mean", "sum", "prod", "var", "std"):
        expected = getattr(np, name)(Z)
        found = getattr(ptir, name)(Z), ptir.jit(lambda z: getattr(ptir, name)(z))(Z)  # noqa: B023
        for each in found:
            np.testing.assert_allclose(each.numpy(), expected, rtol=1e-5, err_msg=name)
