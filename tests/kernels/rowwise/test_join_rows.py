"""Concats of few columns are written row by row."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ElementError

RNG = np.random.default_rng(5)
DTYPES = ("bool", "int8", "float16", "float32", "float64", "complex128")


def drawn(*shape: int, dtype: str = "float32") -> Any:
    return (RNG.standard_normal(shape) * 5).astype(dtype)


def kernels(made: Any, *arguments: Any) -> str:
    return " ".join(made.explain(*arguments).kernels)


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "widths", [(1, 1), (3, 5), (1, 1, 1), (4, 8), (2, 7, 7), (9, 8), (0, 0), (2, 0, 1)]
)
def test_columns_of_arrays(
    widths: tuple[int, ...], dtype: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    for rows in (1, 63, 64, 1003):
        parts = [drawn(rows, width, dtype=dtype) for width in widths]
        joined: Any = lambda *parts: ptir.concat(parts, axis=-1)
        made: Any = ptir.jit(joined)
        np.testing.assert_array_equal(made(*parts).numpy(), np.concatenate(parts, -1))


def test_points_of_coordinates() -> None:
    x, y, z = drawn(3, 70, 30)
    made: Any = ptir.jit(lambda x, y, z: ptir.stack((x, y + 1, z), axis=-1))
    np.testing.assert_array_equal(made(x, y, z).numpy(), np.stack((x, y + 1, z), -1))


@pytest.mark.parametrize(
    "columns",
    [
        lambda x, y: (x[:, 2:5], y[:, :3]),  # rows apart
        lambda x, y: (x[::2, :4], y[1::2, 3:4]),
        lambda x, y: (x[:1, :4], y[:1, :2]) if len(x) < 2 else (x[:, :4], y[:1, :2] + x[:, :2]),
        lambda x, y: (x[:, ::2], y[:, :3]),  # elements apart
        lambda x, y: (x[:, :3], x[:, :3], y[:, 1:2]),
        lambda x, y: (x.reshape(-1, 2, 3), y.reshape(-1, 2, 3)),
        lambda x, y: (x[:, :, None], y[:, :, None]),
    ],
)
def test_columns_of_views(columns: Any) -> None:
    x, y = drawn(130, 6), drawn(130, 6)
    made: Any = ptir.jit(lambda x, y: ptir.concat(columns(x, y), axis=-1))
    np.testing.assert_array_equal(made(x, y).numpy(), np.concatenate(columns(x, y), -1))


def test_rows_may_be_symbolic() -> None:
    made: Any = ptir.jit(dynamic={"x": {0: "N"}, "y": {0: "N"}})(
        lambda x, y: ptir.concat((x, y), axis=1)
    )
    for rows in (2, 70, 500):
        x, y = drawn(rows, 2), drawn(rows, 1)
        np.testing.assert_array_equal(made(x, y).numpy(), np.concatenate((x, y), 1))


def test_long_rows_are_copied_part_by_part() -> None:
    x, y = drawn(100, 9), drawn(100, 8)
    made: Any = ptir.jit(lambda x, y: ptir.concat((x, y), axis=1))
    assert "join_rows" not in kernels(made, x, y)
    assert "join_rows" in kernels(made, x[:, :8].copy(), y)


@pytest.mark.parametrize(
    "places", [[2, 0, 1], [1], [0, 0, 3, 2, 2], [-1, -2], [[0, 1], [3, 2]], []]
)
def test_columns_at_known_places(places: list[Any]) -> None:
    x, y = drawn(500, 4), drawn(20, 30, 4)
    made: Any = ptir.jit(lambda x: x[..., np.array(places, np.int64)])
    for one in (x, y):
        np.testing.assert_array_equal(made(one).numpy(), one[..., np.array(places, np.int64)])
    assert "gather" not in kernels(made, x)


def test_a_place_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ElementError, match="index 4 is out of range"):
        ptir.jit(lambda x: x[:, [0, 4]])(drawn(500, 4))
