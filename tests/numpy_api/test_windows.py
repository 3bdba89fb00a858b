"""Windows against SciPy's and torch's."""

# torch's and SciPy's functions are only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import ArgumentError

ptir: Any = namespace
torch: Any = pytest.importorskip("torch")
theirs: Any = pytest.importorskip("scipy.signal.windows")
SHAPES: dict[str, tuple[Any, ...]] = {
    "kaiser": (8.6,),
    "gaussian": (3.0,),
    "general_gaussian": (1.5, 2.0),
    "general_cosine": ((0.5, 0.3, 0.2),),
    "general_hamming": (0.6,),
}
NAMES = [name for name in ptir.signal.windows.__all__ if name != "get_window"]
SPECS = ("hann", ("tukey", 0.3), ("tukey", 1.7), ("tukey", 0.0), 4.0, ("exponential", None, 2.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_window_of_scipy(name: str) -> None:
    window, given = getattr(ptir.signal.windows, name), SHAPES.get(name, ())
    for m in (0, 1, 2, 3, 8, 9):
        for sym in (True, False):
            expected = getattr(theirs, name)(m, *given, sym=sym)
            found = window(m, *given, sym=sym, dtype="f64").numpy()
            np.testing.assert_allclose(found, expected, atol=1e-12)
    assert window(9, *given).dtype is ptir.f32


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(torch.signal.windows, n)])
def test_a_window_of_torch(name: str) -> None:
    function = getattr(torch.signal.windows, name)
    given = {"a": (0.5, 0.3, 0.2)} if name == "general_cosine" else {}
    assert "sym" in inspect.signature(function).parameters
    for sym in (True, False):
        expected = function(9, sym=sym, dtype=torch.float64, **given)
        found = getattr(ptir.signal.windows, name)(M=9, sym=sym, dtype="f64", **given)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_window_by_its_name(spec: Any) -> None:
    found = ptir.signal.windows.get_window(spec, 9, dtype="f64").numpy()
    np.testing.assert_allclose(found, theirs.get_window(spec, 9), atol=1e-12)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_a_window_of_the_first_level_of_torch(name: str) -> None:
    for periodic in (True, False):
        expected = getattr(torch, f"{name}_window")(10, periodic, dtype=torch.float64)
        found = getattr(ptir, f"{name}_window")(10, periodic, dtype="f64")
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)


def test_a_window_is_a_constant_of_a_program() -> None:
    x = np.ones((3, 8), np.float32)
    windowed = ptir.jit(lambda x: x * ptir.hann_window(8))
    expected = np.hanning(9)[:8] * x
    np.testing.assert_allclose(windowed(x).numpy(), expected, atol=1e-6)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="expected an integer of at least 0"):
        ptir.signal.windows.hann(-1)
    with pytest.raises(ArgumentError, match="no center of its own"):
        ptir.signal.windows.exponential(5, center=1.0)
    with pytest.raises(AttributeError, match=r"has no attribute 'han'.*\n.*windows\.hann"):
        ptir.signal.windows.han(5)
    with pytest.raises(AttributeError, match="scipy"):
        ptir.signal.windows.get_window("chebwin", 5)
