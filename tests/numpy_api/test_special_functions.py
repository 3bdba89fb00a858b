"""Error, normal and gamma functions against torch in f64, at the ends too.

They are formulas of ops, each of which is tested in kernels; few are compiled here, which takes
seconds each.
"""

# torch's functions are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace

ptir: Any = namespace  # arrays in place of Tensors
torch: Any = pytest.importorskip("torch")
inf, nan = np.inf, np.nan
RANDOM = np.random.default_rng(4)
SPANS: dict[str, tuple[tuple[float, float], ...]] = {
    "erfc": ((-6, 26),),
    "erfcx": ((-26, 1), (0, 1e3)),
    "erfinv": ((-1, 1), (-1e-6, 1e-6), (0.9999, 1)),
    "ndtr": ((-37, 9),),
    "ndtri": ((0, 1), (0, 1e-8)),
    "log_ndtr": ((-60, 8),),
    "gammaln": ((0, 3), (2, 12), (5, 1e6), (-2, 0)),
    "i0": ((-12, 12), (-80, 80)),
    "i0e": ((-12, 12), (7, 1e6)),
    "i1e": ((-12, 12), (-1e-3, 1e-3)),
    "digamma": ((0, 3), (2, 12), (5, 1e6), (-6, 0)),
}
ENDS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, -3.5, 1e-30, -1e-30, 40.0, -40.0, 1e30, inf, -inf, nan)


def _run(name: str, *operands: Any) -> Any:
    return getattr(ptir, name)(*operands).numpy()


def _expected(name: str, *operands: Any) -> Any:
    wide = [torch.from_numpy(np.asarray(x, np.float64)) for x in operands]
    if name == "ndtr":  # torch's is 0 where erf is 1
        return torch.special.erfc(wide[0] * -np.sqrt(0.5)).numpy() / 2
    return getattr(torch.special, name)(*wide).numpy()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SPANS)
def test_a_function_is_near_torch(name: str, dtype: str) -> None:
    for low, high in SPANS[name]:
        x = RANDOM.uniform(low, high, 200).astype(dtype)
        expected = _expected(name, x)
        # f32 is f64 rounded once; torch's f64 loses digits beside zeros and far in the tails.
        relative, absolute = (1.2e-7, 1e-45) if dtype == "f4" else (2e-13, 2e-15)
        absolute += 1e-14 * (name in ("gammaln", "digamma"))
        found = _run(name, x)
        assert found.dtype == x.dtype
        with np.errstate(over="ignore"):
            expected = expected.astype(dtype)
        np.testing.assert_allclose(found, expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("name", ["erfc", "lgamma"])
def test_kernels_agree(name: str) -> None:
    x = np.concatenate([RANDOM.uniform(-6, 20, 200), np.array(ENDS)])
    traced = ptir.jit(getattr(ptir, name))
    np.testing.assert_allclose(traced(x).numpy(), _run(name, x), rtol=1e-14, atol=1e-15)
    assert {step.kind for step in traced.explain(x).report.steps} <= {"region", "loop"}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", [name for name in (*SPANS, "entr") if name != "i0"])
def test_ends(name: str, dtype: str) -> None:
    x = np.array(ENDS, dtype)
    with np.errstate(over="ignore"):
        expected = _expected(name, x).astype(dtype)
    found = _run(name, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "f4" else 1e-13)


def test_known_values() -> None:
    """To 17 digits. Source: NIST Digital Library of Mathematical Functions, and its definitions."""
    for name, x, value in (
        ("erfc", 3.0, 2.2090496998585441e-05),
        ("erfc", 10.0, 2.0884875837625447e-45),
        ("erfcx", 10.0, 0.056140992743822586),
        ("erfinv", 0.5, 0.47693627620446987),
        ("ndtri", 0.975, 1.959963984540054),
        ("ndtri", 5e-324, -38.467405617144344),
        ("lgamma", -2.2250738585072014e-308, 708.3964185322641),
        ("lgamma", -1.7976931348623157e308, inf),
        ("lgamma", 0.5, 0.57236494292470008),
        ("lgamma", 10.0, 12.801827480081469),
        ("digamma", 1.0, -0.57721566490153286),
        ("digamma", 0.5, -1.9635100260214235),
        ("i0", 1.0, 1.2660658777520084),
        ("i0", inf, inf),
        ("modified_bessel_i1", 1.0, 0.56515910399248503),
        ("modified_bessel_i1", -inf, -inf),
        ("modified_bessel_i1", 730, inf),
    ):
        np.testing.assert_allclose(_run(name, np.float64(x)), value, rtol=1e-15, err_msg=name)


def test_gamma() -> None:
    mpmath: Any = pytest.importorskip("mpmath")  # which torch brings
    x = np.concatenate([RANDOM.uniform(*span, 60) for span in ((0, 8), (8, 171), (-160, 0))])
    expected = np.array([float(mpmath.gamma(each)) for each in x])
    np.testing.assert_allclose(_run("gamma", x), expected, rtol=2e-15)
    narrow = x[np.abs(x) < 30].astype(np.float32)
    expected = np.array([float(mpmath.gamma(float(each))) for each in narrow], np.float32)
    np.testing.assert_array_equal(_run("gamma", narrow), expected)
    ends = np.array([0.0, -0.0, -1.0, -0.5, -1.5, 172.0, inf, -inf, nan, -1e-300])
    values = [inf, -inf, nan, -3.5449077018110322, 2.363271801207355, inf, inf, nan, nan, -1e300]
    np.testing.assert_allclose(_run("gamma", ends), values, rtol=1e-15)
    signs = [1, -1, nan, -1, 1, 1, 1, nan, nan, -1]
    np.testing.assert_array_equal(_run("gammasgn", ends), signs)
    counts = np.array([0, 1, 5, 10, -1])
    np.testing.assert_array_equal(_run("factorial", counts), [1, 1, 120, 3628800, 0])


def test_beta() -> None:
    mpmath: Any = pytest.importorskip("mpmath")
    x, y = RANDOM.uniform(0.1, 80, (2, 100))
    for more_x, more_y, error in ((0, 0, 2e-13), (0, -60, 1e-12), (300, 0, 1e-12)):
        a, b = x + more_x, y + more_y
        expected = np.array([float(mpmath.beta(*pair)) for pair in zip(a, b, strict=True)])
        np.testing.assert_allclose(_run("beta", a, b), expected, rtol=error)


def test_narrow_floats_and_integers() -> None:
    x = np.arange(1, 5)
    assert ptir.lgamma(x).dtype is ptir.f32
    for name in ("erfc", "digamma", "psi", "gammaln"):
        found = getattr(ptir, name)(x.astype(np.float16))
        assert found.dtype is ptir.f16
        expected = _expected(name, x).astype(np.float16)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_functions_of_two() -> None:
    x, y = np.meshgrid(*[np.array([0.0, 0.5, 3, 1e-20, inf, nan])] * 2)
    np.testing.assert_allclose(_run("xlog1py", x, y), _expected("xlog1py", x, y), rtol=1e-15)
    a, b = np.array([0.5, 2, 30]), np.array([1.5, 3, 0.25])
    expected = _expected("gammaln", a) + _expected("gammaln", b) - _expected("gammaln", a + b)
    np.testing.assert_allclose(_run("betaln", a, b), expected, rtol=1e-13)
