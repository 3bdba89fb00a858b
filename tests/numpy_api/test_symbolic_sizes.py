"""Functions of NumPy over axes of symbolic extent: one program for all lengths."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import ElementError, ShapeError

ptir: Any = namespace  # of which the checker knows the ops alone
TAPS = np.array([1.0, 2, -1])

ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "percentile": lambda m, x: m.percentile(x, [10, 50, 75]),
    "median": lambda m, x: m.median(x),
    "nanquantile": lambda m, x: m.nanquantile(x, 0.3),
    "convolve": lambda m, x: m.convolve(x, TAPS),
    "convolve with a longer row": lambda m, x: m.convolve(TAPS, x, mode="same"),
    "correlate": lambda m, x: m.correlate(x, TAPS, mode="valid"),
    "correlate with a longer row": lambda m, x: m.correlate(TAPS, x, mode="full"),
    "split": lambda m, x: m.split(x, [1, 3]),
    "array_split": lambda m, x: m.array_split(x, 3),
    "insert": lambda m, x: m.insert(x, 2, [5.0, 6.0]),
    "insert before the last": lambda m, x: m.insert(x, -1, 7.0),
    "delete": lambda m, x: m.delete(x, 1),
    "delete the last": lambda m, x: m.delete(x, -1),
    "linspace": lambda m, x: x * m.linspace(-1.0, 1.0, x.shape[0], dtype=np.float64),
    "linspace without its end": lambda m, x: m.linspace(0, 8 * x.shape[0], x.shape[0], False),
    "cov": lambda m, x: m.cov(x[:, None] * TAPS[None], rowvar=False),
    "an element": lambda m, x: x[3] * x[-4],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    function = ROWS[name]
    call = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: function(ptir, x))
    for length in (9, 4, 7):
        x = np.random.default_rng(length).standard_normal(length)
        found, expected = call(x), function(np, x)
        if not isinstance(expected, list):
            found, expected = [found], [expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[3],
        lambda x: x[-4],
        lambda x: x.at[3].set(1.0),
        lambda x: x.at[-4].add(1.0),
        lambda x: x.at[1:4].set(0.0),
        lambda x: ptir.convolve(x, np.ones(4), mode="valid"),
    ],
)
def test_what_does_not_fit_is_an_error_at_its_size(change: Callable[[Any], Any]) -> None:
    call = ptir.jit(dynamic={"x": {0: "N"}})(change)
    for length in (3, 5, 2):
        x = np.ones(length)
        if length < 4:
            with pytest.raises(ElementError, match=r"fit|fewer"):
                call(x)
        else:
            call(x)


def test_two_symbolic_rows_have_no_convolution() -> None:
    with pytest.raises(ShapeError, match="one has to be known"):
        ptir.jit(dynamic={"x": {0: "N"}})(lambda x: ptir.convolve(x, x))(np.ones(3))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_quantiles_of_nothing_are_nan(shape: tuple[int, ...]) -> None:
    for axis in (None, 0):
        if axis == 0 and shape[0]:
            continue
        assert np.isnan(ptir.median(np.zeros(shape), axis=axis).numpy()).all()
        assert np.isnan(ptir.nanquantile(np.zeros(shape), 0.2, axis=axis).numpy()).all()
