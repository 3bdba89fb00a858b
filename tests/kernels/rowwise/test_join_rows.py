"""Arrays side by side are written row by row, short rows by a kernel of their own."""

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
    "widths",
    [(1, 1), (3, 5), (1, 1, 1), (4, 8), (2, 7, 7), (9, 8), (0, 0), (2, 0, 1), (40, 0, 101)],
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
        lambda x, y: (x.T, y.T, x[:60].T),
        lambda x, y: (
            (np.broadcast_to(x[:, :1], (130, 20)), y)
            if isinstance(x, np.ndarray)
            else (ptir.broadcast_to(x[:, :1], shape=(130, 20)), y)
        ),
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
    for width in (2, 40):
        for rows in (2, 70, 500):
            x, y = drawn(rows, width), drawn(rows, 1)
            np.testing.assert_array_equal(made(x, y).numpy(), np.concatenate((x, y), 1))


def test_short_rows_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", "1")
    x, y = drawn(100, 9), drawn(100, 100)
    made: Any = ptir.jit(lambda x, y: ptir.concat((x, y), axis=1))
    assert "copy_planes_4" in kernels(made, x, y)
    assert "copy_planes_4" not in kernels(made, x, y[:, :8].copy())
    assert "join_rows" in kernels(made, x[:, :7].copy(), x)


@pytest.mark.parametrize("axis", [1, 2])
def test_planes_side_by_side(axis: int) -> None:
    x, y = drawn(100, 3, 7), drawn(100, 5, 7)
    if axis == 2:
        x, y = x.transpose(0, 2, 1), y.transpose(0, 2, 1).copy()
    made: Any = ptir.jit(lambda x, y: ptir.concat((x, y), axis=axis))
    np.testing.assert_array_equal(made(x, y).numpy(), np.concatenate((x, y), axis))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_runs_that_no_cache_holds(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", threads)
    x, y = drawn(1200, 2501), drawn(1200, 2817)
    columns: Any = ptir.jit(lambda x, y: ptir.concat((x, y), axis=1) * 2)
    rows: Any = ptir.jit(lambda x, y: ptir.concat((x, y), axis=0))
    moved: Any = ptir.jit(lambda x: ptir.roll(x, 5, axis=1))
    np.testing.assert_array_equal(columns(x, y).numpy(), np.concatenate((x, y), 1) * 2)
    np.testing.assert_array_equal(rows(y, y).numpy(), np.concatenate((y, y), 0))
    np.testing.assert_array_equal(moved(y).numpy(), np.roll(y, 5, 1))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_runs_to_complex_numbers_at_half_their_size(dtype: str) -> None:
    """As NumPy allows: vectors there are never aligned."""
    count, size = 24_000_000 // np.dtype(dtype).itemsize, np.dtype(dtype).itemsize
    memory = np.zeros(count * size + 64, np.uint8)
    begin = -memory.ctypes.data % 64 + size // 2
    x = memory[begin : begin + count * size].view(dtype)
    made: Any = ptir.jit(donate=("x",))(lambda x, part: ptir.dynamic_update_slice(x, part, (5,)))
    part = np.full(count - 9, 2j, dtype)
    found = made(ptir.tensor(x), part).numpy()
    assert found[5:-4].tobytes() == part.tobytes()
    assert not found[:5].any()
    assert not found[-4:].any()


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
