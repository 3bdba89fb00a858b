"""Stencils over grids, stepped by `scan`: jacobi, heat in three dimensions, advection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.functions import numba_loops
from benchmarks.functions.case import Case, Function, draw, sized
from gptrs import ptir

Inner = Callable[[Any], Any]
"""The new elements that lie one away from each edge; those at the edges stay."""


def cases() -> list[Case]:
    """So many steps each, at sizes (extent, steps)."""
    grids = [
        ("jacobi 2d", 2, [(32, 20), (256, 20), (1000, 10)], jacobi_2d, numba_loops.jacobi_2d),
        ("heat 3d", 3, [(16, 20), (40, 20), (100, 10)], heat_3d, numba_loops.heat_3d),
        ("advection", 1, [(1000, 100), (100_000, 20)], advection, numba_loops.advection),
    ]
    return [
        stepped("stencil", name, rank, *size, inner, loops)
        for name, rank, sizes, inner, loops in grids
        for size in sizes
    ]


def stepped(
    family: str,
    name: str,
    rank: int,
    extent: int,
    steps: int,
    inner: Inner,
    loops: Function,
    dtype: str = "f32",
) -> Case:
    """A stencil of ``rank`` axes of the same extent, ``steps`` times."""
    edge, within = (1,) * rank, (slice(1, -1),) * rank

    def ours(x: Any) -> Any:
        def body(x: Any, _: Any) -> Any:
            return ptir.dynamic_update_slice(x, inner(x), edge), None

        return ptir.scan(body, x, length=steps)[0]

    def overwriting(xp: Any, x: Any) -> Any:
        x = x.clone() if xp.__name__ == "torch" else x.copy()
        for _ in range(steps):
            x[within] = inner(x)
        return x

    def jax_steps(jax: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda _, x: x.at[within].set(inner(x)), x)

    (case,) = sized(
        family,
        f"{name}, {steps} steps",
        [(extent,) * rank],
        ours,
        overwriting,
        make=lambda rng, shape: (draw(rng, shape, dtype),),
        jax=jax_steps,
        numba=lambda jit, x: jit(loops)(x, steps),
    )
    return case


def jacobi_1d(x: Any) -> Any:
    return (x[:-2] + x[1:-1] + x[2:]) * (1 / 3)


def advection(x: Any) -> Any:
    return x[1:-1] - (x[1:-1] - x[:-2]) * 0.3


def jacobi_2d(x: Any) -> Any:
    around = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]
    return (x[1:-1, 1:-1] + around) * 0.2


def heat_3d(x: Any) -> Any:
    around = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    around = around + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
    return x[1:-1, 1:-1, 1:-1] * 0.25 + around * 0.125
