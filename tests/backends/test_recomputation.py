"""Values that fused loops compute again rather than store and read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends import recomputation, region_time
from gptrs.backends.fusion import fuse
from gptrs.backends.operation_counts import operations
from gptrs.backends.region_time import RegionTime
from gptrs.backends.regions import Region


def limited(x: Any, c: Any) -> Any:
    """Horizontal diffusion: limited fluxes of the Laplacian, each between two elements."""
    around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    laplacian = x[1:-1, 1:-1] * 4.0 - around
    rows = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    columns = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    rows = ptir.select(rows * (x[2:-1, 2:-2] - x[1:-2, 2:-2]) > 0, 0.0, rows)
    columns = ptir.select(columns * (x[2:-2, 2:-1] - x[2:-2, 1:-2]) > 0, 0.0, columns)
    return x[2:-2, 2:-2] - c * (rows[1:] - rows[:-1] + columns[:, 1:] - columns[:, :-1])


def scaled(x: Any) -> Any:
    return x * 2.0 + 1.0


def arguments(*shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    i, j, *rest = shape
    return rng.random((i + 4, j + 4, *rest), np.float32), rng.random(shape, np.float32)


def regions_of(function: Any, *arrays: Any) -> tuple[Region, ...]:
    return fuse(ptir.jit(backend="faer")(function).lowered(*arrays)).regions


@pytest.mark.parametrize("shape", [(15, 16, 17), (64, 64, 60)])
def test_fluxes_of_a_stencil_are_computed_twice(shape: tuple[int, ...]) -> None:
    x, c = arguments(*shape)
    assert len(regions_of(limited, x, c)) == 2  # the Laplacian has five uses
    found = ptir.jit(backend="faer")(limited)(x, c).numpy()
    expected = ptir.jit(backend="reference")(limited)(x, c).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_operations_in_all_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    once = replace(recomputation.MACHINE, recomputation=1.0)
    monkeypatch.setattr(recomputation, "MACHINE", once)
    assert len(regions_of(limited, *arguments(30, 40, 8))) > 2


def test_stores_that_take_no_time_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = replace(
        region_time.MACHINE, l2_byte=0.0, l3_byte=0.0, memory_byte=0.0, vector_operation=1.0
    )
    monkeypatch.setattr(region_time, "MACHINE", fast)
    x, c = arguments(64, 64, 60)
    assert len(regions_of(limited, x, c)) > 2


def test_time_grows_where_arrays_leave_a_cache() -> None:
    def of(size: int) -> float:
        (region,) = regions_of(scaled, np.zeros(size, np.float32))
        return RegionTime(region, operations(region)).at(int) / size

    in_l2, in_l3, in_memory = of(1 << 16), of(1 << 20), of(1 << 24)
    assert in_l2 < in_l3 < in_memory
