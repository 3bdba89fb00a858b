"""Kernels of NPBench (Ziogas et al., ICS 2021) that `ptir` can express, at its sizes S and M.

Written anew from what each kernel computes; arrays are f64 as there, but for those of deep
learning. Left out at M: atax, bicg, mvt, mlp, whose arrays take a gigabyte for each side. Left out
altogether: kernels whose loops are triangular or data-dependent (cholesky, lu, ludcmp, durbin,
gramschmidt, trisolv, nussinov, seidel_2d, adi, crc16), histograms, and what has complex products.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.functions import npbench_loops, numba_loops
from benchmarks.functions.case import Arguments, Case, Make, draw, sized
from benchmarks.functions.loops import mandelbrot
from benchmarks.functions.stencils import heat_3d, jacobi_1d, jacobi_2d, stepped
from gptrs import ptir

FAMILY = "NPBench"


def cases() -> list[Case]:
    """Products, statistics, elementwise, then those with loops."""
    return [*_products(), *_statistics(), *_elementwise(), *_stencils(), *npbench_loops.cases()]


def _doubles(*, scale: float = 1.0) -> Make:
    """f64 arrays of the shapes that a size names."""

    def make(rng: np.random.Generator, shapes: Any) -> Arguments:
        return tuple(rng.random(shape) * scale for shape in shapes)

    return make


def _products() -> list[Case]:
    def gemm(x: Any, y: Any, z: Any) -> Any:
        return x @ y * 1.5 + z * 1.2

    def two(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b @ c * 1.5 + d * 1.2

    def three(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a @ b) @ (c @ d)

    def gemver(a: Any, u: Any, v: Any, w: Any, z: Any, x: Any, y: Any) -> Any:
        a = a + u[:, None] * v[None] + w[:, None] * z[None]
        x = x + (y @ a) * 1.2 + z
        return a, x, (a @ x) * 1.5

    def gesummv(a: Any, b: Any, x: Any) -> Any:
        return a @ x * 1.5 + b @ x * 1.2

    def atax(a: Any, x: Any) -> Any:
        return (a @ x) @ a

    def bicg(a: Any, p: Any, r: Any) -> Any:
        return r @ a, a @ p

    def mvt(a: Any, x1: Any, x2: Any, y1: Any, y2: Any) -> Any:
        return x1 + a @ y1, x2 + y2 @ a

    def doitgen(a: Any, c: Any) -> Any:
        return a @ c

    table: list[tuple[Any, list[Any]]] = [
        (gemm, [_chain(1000, 1200, 1100), _chain(2500, 3000, 2750)]),
        (two, [_chain(800, 900, 850, 950), _chain(2000, 2500, 2250, 2750)]),
        (three, [_links(800, 900, 850, 1000, 950), _links(2000, 2400, 2200, 2800, 2600)]),
        (gemver, [((n, n), *[(n,)] * 6) for n in (1000, 3000)]),
        (gesummv, [((n, n), (n, n), (n,)) for n in (2000, 4000)]),
        (atax, [((4000, 5000), (5000,))]),
        (bicg, [((5000, 4000), (4000,), (5000,))]),
        (mvt, [((5500, 5500), *[(5500,)] * 4)]),
        (doitgen, [((60, 60, 128), (128, 128)), ((110, 125, 256), (256, 256))]),
    ]
    found: list[Case] = []
    for function, sizes in table:
        found += sized(
            FAMILY,
            function.__name__,
            sizes,
            function,
            lambda xp, *arrays, function=function: function(*arrays),
            make=_doubles(scale=0.01),
        )
    return found


def _chain(*extents: int) -> tuple[tuple[int, int], ...]:
    """Matrices whose product is that of the extents, and one of the result's shape."""
    return (*_links(*extents), (extents[0], extents[-1]))


def _links(*extents: int) -> tuple[tuple[int, int], ...]:
    return tuple(pairwise(extents))


def _statistics() -> list[Case]:
    sizes = [((600, 500),), ((1800, 1400),)]

    def covariance(x: Any) -> Any:
        x = x - x.mean(0)
        return x.T @ x * (1 / (x.shape[0] - 1))

    def correlation(xp: Any, where: Any, x: Any) -> Any:
        x = x - x.mean(0)
        deviation = xp.sqrt((x * x).mean(0))
        deviation = where(deviation <= 0.1, 1.0, deviation)
        x = x * (1 / x.shape[0] ** 0.5) / deviation
        return x.T @ x

    def syrk(xp: Any, c: Any, a: Any, lower: Any) -> Any:
        return xp.where(lower, c * 1.2 + (a @ a.T) * 1.5, c)

    def triangle(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        n, m = size
        return rng.random((n, n)), rng.random((n, m)), np.tri(n, dtype=bool)

    return [
        *sized(
            FAMILY, "covariance", sizes, covariance, lambda xp, x: covariance(x), make=_doubles()
        ),
        *sized(
            FAMILY, "correlation", sizes,
            lambda x: correlation(ptir, ptir.select, x),
            lambda xp, x: correlation(xp, xp.where, x),
            make=_doubles(),
        ),
        *sized(
            FAMILY, "syrk", [(70, 50), (200, 150)],
            lambda c, a, lower: ptir.select(lower, c * 1.2 + (a @ a.T) * 1.5, c),
            syrk, make=triangle,
        ),
        *sized(
            FAMILY, "softmax", [(16, 16, 128, 128), (32, 8, 256, 256)],
            lambda x: ptir.softmax(x, axis=-1),
            lambda xp, x: _softmax(xp, x),
        ),
        *sized(
            FAMILY, "mlp", [(8, 3, 30000, 2000, 2000)],
            lambda x, *layers: ptir.softmax(_layers(ptir.relu, x, *layers)),
            lambda xp, x, *layers: _softmax(
                xp, _layers(lambda x: xp.maximum(x, xp.zeros((), dtype=x.dtype)), x, *layers)
            ),
            make=_mlp_arguments,
        ),
    ]  # fmt: skip


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.amax(x, -1)[..., None])
    return e / e.sum(-1)[..., None]


def _layers(relu: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    return relu(relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def _mlp_arguments(rng: np.random.Generator, size: tuple[int, ...]) -> Arguments:
    rows, *widths = size
    found: list[Any] = [draw(rng, (rows, widths[0]))]
    for n, m in pairwise(widths):
        found += [draw(rng, (n, m)) / np.float32(n**0.5), draw(rng, (m,))]
    return tuple(found)


def _elementwise() -> list[Case]:
    def clipping(xp: Any, x: Any, y: Any) -> Any:
        return (xp.clip(x, 2, 10) if xp is not ptir else ptir.clamp(x, 2, 10)) * 4 + y * 3 + 9

    def integers(rng: np.random.Generator, shape: tuple[int, int]) -> Arguments:
        return rng.integers(0, 1000, shape), rng.integers(0, 1000, shape)

    def go_fast(xp: Any, a: Any) -> Any:
        return a + xp.tanh(xp.diagonal(a)).sum()

    def our_go_fast(a: Any) -> Any:
        n = a.shape[0]
        places = ptir.iota(shape=(n,), axis=0) * (n + 1)
        return a + ptir.tanh(ptir.take(a.reshape(-1), places)).sum()

    def arc_distance(xp: Any, theta: Any, phi: Any, theta2: Any, phi2: Any) -> Any:
        """The haversine of the angle, under a root: `ptir` has no arc tangent."""
        x, y = xp.sin((theta2 - theta) * 0.5), xp.sin((phi2 - phi) * 0.5)
        return xp.sqrt(x * x + xp.cos(theta) * xp.cos(theta2) * y * y)

    return [
        *sized(
            FAMILY, "clipping", [(2000, 2000), (5000, 5000)],
            lambda x, y: clipping(ptir, x, y), clipping, make=integers,
        ),
        *sized(
            FAMILY, "go_fast", [((2000, 2000),), ((6000, 6000),)], our_go_fast, go_fast,
            make=_doubles(),
        ),
        *sized(
            FAMILY, "arc_distance (haversine)", [((100_000,),) * 4, ((1_000_000,),) * 4],
            lambda *arrays: arc_distance(ptir, *arrays), arc_distance, make=_doubles(),
        ),
        *_hdiff(),
    ]  # fmt: skip


def _hdiff() -> list[Case]:
    """Horizontal diffusion: a limited flux of the Laplacian."""

    def flux(where: Any, d: Any, gradient: Any) -> Any:
        return where(d * gradient > 0, 0.0, d)

    def diffused(where: Any, x: Any, coefficients: Any) -> Any:
        around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
        laplacian = x[1:-1, 1:-1] * 4.0 - around
        rows = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
        columns = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
        rows = flux(where, rows, x[2:-1, 2:-2] - x[1:-2, 2:-2])
        columns = flux(where, columns, x[2:-2, 2:-1] - x[2:-2, 1:-2])
        divergence = rows[1:] - rows[:-1] + columns[:, 1:] - columns[:, :-1]
        return x[2:-2, 2:-2] - coefficients * divergence

    def fields(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
        i, j, k = size
        return rng.random((i + 4, j + 4, k)), rng.random(size)

    return sized(
        FAMILY, "hdiff", [(64, 64, 60), (128, 128, 160)],
        lambda x, c: diffused(ptir.select, x, c),
        lambda xp, x, c: diffused(xp.where, x, c),
        make=fields,
    )  # fmt: skip


def _stencils() -> list[Case]:
    kernels = [
        ("jacobi_1d", 1, [(3200, 800), (12000, 3000)], jacobi_1d, numba_loops.jacobi_1d),
        ("jacobi_2d", 2, [(150, 50), (350, 80)], jacobi_2d, numba_loops.jacobi_2d),
        ("heat_3d", 3, [(25, 25), (40, 50)], heat_3d, numba_loops.heat_3d),
    ]
    return [
        stepped(FAMILY, name, rank, extent, 2 * (steps - 1), inner, loops, "f64")
        for name, rank, sizes, inner, loops in kernels
        for extent, steps in sizes
    ] + [
        case
        for extent, limit in ((125, 60), (250, 150))
        for case in mandelbrot(FAMILY, f"mandelbrot1 f32, {limit} steps", [(extent, extent)], limit)
    ]
