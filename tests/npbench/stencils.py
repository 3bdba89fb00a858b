"""Stencils and flows: neighbours on a grid, step after step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.npbench.kernel import Arguments, Kernel, of_shapes

STEPS = 3


def jacobi_1d(xp: Any, a: Any, b: Any) -> Any:
    for _ in range(STEPS):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


def _five(x: Any) -> Any:
    return 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])


def jacobi_2d(xp: Any, a: Any, b: Any) -> Any:
    for _ in range(STEPS):
        b[1:-1, 1:-1] = _five(a)
        a[1:-1, 1:-1] = _five(b)
    return a, b


def _diffused(x: Any) -> Any:
    middle = x[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * middle + x[:-2, 1:-1, 1:-1])
        + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * middle + x[1:-1, :-2, 1:-1])
        + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * middle + x[1:-1, 1:-1, :-2])
        + middle
    )


def heat_3d(xp: Any, a: Any, b: Any) -> Any:
    for _ in range(STEPS):
        b[1:-1, 1:-1, 1:-1] = _diffused(a)
        a[1:-1, 1:-1, 1:-1] = _diffused(b)
    return a, b


def fdtd_2d(xp: Any, ex: Any, ey: Any, hz: Any, source: Any) -> Any:
    for t in range(STEPS):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def seidel_2d(xp: Any, a: Any) -> Any:
    n = a.shape[0]
    for _ in range(2):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2]
                + a[i - 1, 1:-1]
                + a[i - 1, 2:]
                + a[i, 2:]
                + a[i + 1, :-2]
                + a[i + 1, 1:-1]
                + a[i + 1, 2:]
            )
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return a


def adi(xp: Any, u: Any) -> Any:
    n = u.shape[0]
    steps = 2
    ratio = (1.0 / steps) / (1.0 / n) ** 2
    mul1, mul2 = 2.0 * ratio, 1.0 * ratio
    a = c = -mul1 / 2.0
    b = 1.0 + mul1
    d = f = -mul2 / 2.0
    e = 1.0 + mul2
    v, p, q = xp.zeros(u.shape, u.dtype), xp.zeros(u.shape, u.dtype), xp.zeros(u.shape, u.dtype)
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (
                -d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - f * u[j, 2:] - a * q[1:-1, j - 1]
            ) / (a * p[1:-1, j - 1] + b)
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -f / (d * p[1:-1, j - 1] + e)
            q[1:-1, j] = (
                -a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - c * v[2:, j] - d * q[1:-1, j - 1]
            ) / (d * p[1:-1, j - 1] + e)
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]
    return u, v


def hdiff(xp: Any, field: Any, weight: Any) -> Any:
    rows, columns, levels = field.shape[0] - 4, field.shape[1] - 4, field.shape[2]
    laplace = 4.0 * field[1 : rows + 3, 1 : columns + 3, :] - (
        field[2 : rows + 4, 1 : columns + 3, :]
        + field[0 : rows + 2, 1 : columns + 3, :]
        + field[1 : rows + 3, 2 : columns + 4, :]
        + field[1 : rows + 3, 0 : columns + 2, :]
    )
    along = laplace[1:, 1 : columns + 1, :] - laplace[:-1, 1 : columns + 1, :]
    limited = along * (
        field[2 : rows + 3, 2 : columns + 2, :] - field[1 : rows + 2, 2 : columns + 2, :]
    )
    flux_i = xp.where(limited > 0, 0, along)
    across = laplace[1 : rows + 1, 1:, :] - laplace[1 : rows + 1, :-1, :]
    limited = across * (
        field[2 : rows + 2, 2 : columns + 3, :] - field[2 : rows + 2, 1 : columns + 2, :]
    )
    flux_j = xp.where(limited > 0, 0, across)
    out = xp.empty((rows, columns, levels), dtype=field.dtype)
    out[:, :, :] = field[2 : rows + 2, 2 : columns + 2, :] - weight * (
        flux_i[1:, :, :] - flux_i[:-1, :, :] + flux_j[:, 1:, :] - flux_j[:, :-1, :]
    )
    return out


def vadv(xp: Any, stage: Any, position: Any, tendency: Any, before: Any, wind: Any) -> Any:
    """Vertical advection, implicit in time: Thomas' algorithm over the levels of each column."""
    levels = stage.shape[2]
    rate = 3.0 / 20.0
    half, other = 0.25, 0.25
    c, d = xp.empty(stage.shape, stage.dtype), xp.empty(stage.shape, stage.dtype)
    data = xp.empty(stage.shape[:2], stage.dtype)
    for k in range(levels):
        right = rate * position[:, :, k] + before[:, :, k] + tendency[:, :, k]
        above = xp.zeros(stage.shape[:2], stage.dtype)
        below = xp.zeros(stage.shape[:2], stage.dtype)
        correction = xp.zeros(stage.shape[:2], stage.dtype)
        if k > 0:
            carried = -half * (wind[1:, :, k] + wind[:-1, :, k])
            above = carried * other
            correction -= carried * (stage[:, :, k - 1] - stage[:, :, k])
        if k < levels - 1:
            carried = half * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
            below = carried * other
            correction -= carried * (stage[:, :, k + 1] - stage[:, :, k])
        diagonal = rate - above - below
        if k == 0:
            c[:, :, 0] = below / diagonal
            d[:, :, 0] = (right + correction) / diagonal
        else:
            divided = 1.0 / (diagonal - c[:, :, k - 1] * above)
            c[:, :, k] = below * divided
            d[:, :, k] = (right + correction - d[:, :, k - 1] * above) * divided
    result = xp.empty(stage.shape, stage.dtype)
    data[:] = d[:, :, levels - 1]
    for k in range(levels - 1, -1, -1):
        if k < levels - 1:
            data[:] = d[:, :, k] - c[:, :, k] * data
        result[:, :, k] = rate * (data - position[:, :, k])
    return result


RHO, NU, DT = 1.0, 0.1, 0.001


def _source(b: Any, u: Any, v: Any, dx: float, dy: float) -> Any:
    du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    cross = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    b[1:-1, 1:-1] = RHO * (1 / DT * (du + dv) - du**2 - 2 * cross - dv**2)
    return b


def _advanced(u: Any, v: Any, p: Any, dx: float, dy: float) -> Any:
    un, vn = u.copy(), v.copy()

    def moved(w: Any, pressure: Any) -> Any:
        middle = w[1:-1, 1:-1]
        return (
            middle
            - un[1:-1, 1:-1] * DT / dx * (middle - w[1:-1, :-2])
            - vn[1:-1, 1:-1] * DT / dy * (middle - w[:-2, 1:-1])
            - DT / (2 * RHO) * pressure
            + NU
            * (
                DT / dx**2 * (w[1:-1, 2:] - 2 * middle + w[1:-1, :-2])
                + DT / dy**2 * (w[2:, 1:-1] - 2 * middle + w[:-2, 1:-1])
            )
        )

    u[1:-1, 1:-1] = moved(un, (p[1:-1, 2:] - p[1:-1, :-2]) / dx)
    v[1:-1, 1:-1] = moved(vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / dy)
    return u, v


def _relaxed(p: Any, b: Any, dx: float, dy: float) -> Any:
    pn = p.copy()
    p[1:-1, 1:-1] = (
        (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
    ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
    return p


def cavity_flow(xp: Any, u: Any, v: Any, p: Any) -> Any:
    dx, dy = 2 / (u.shape[1] - 1), 2 / (u.shape[0] - 1)
    b = xp.zeros(u.shape, u.dtype)
    for _ in range(2):
        b = _source(b, u, v, dx, dy)
        for _ in range(3):
            p = _relaxed(p, b, dx, dy)
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u, v = _advanced(u, v, p, dx, dy)
        for wall in (u, v):
            wall[0, :] = wall[:, 0] = wall[:, -1] = 0
        u[-1, :] = 1
        v[-1, :] = 0
    return u, v, p


def channel_flow(xp: Any, u: Any, v: Any, p: Any) -> Any:
    """A channel whose ends are joined: columns are rolled, then cut at the walls."""
    dx, dy = 2 / (u.shape[1] - 1), 2 / (u.shape[0] - 1)
    force, difference = 1.0, 1.0
    for _ in range(2):
        un = u.copy()
        wide_u, wide_v = (
            xp.pad(u, ((0, 0), (1, 1)), mode="wrap"),
            xp.pad(v, ((0, 0), (1, 1)), mode="wrap"),
        )
        b = xp.zeros(wide_u.shape, u.dtype)
        b = _source(b, wide_u, wide_v, dx, dy)
        for _ in range(3):
            wide_p = _relaxed(xp.pad(p, ((0, 0), (1, 1)), mode="wrap"), b, dx, dy)
            p = wide_p[:, 1:-1]
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        wide_p = xp.pad(p, ((0, 0), (1, 1)), mode="wrap")
        wide_u, wide_v = _advanced(wide_u, wide_v, wide_p, dx, dy)
        u, v = wide_u[:, 1:-1] + force * DT, wide_v[:, 1:-1]
        for wall in (u, v):
            wall[0, :] = 0
            wall[-1, :] = 0
        difference = (xp.sum(u) - xp.sum(un)) / xp.sum(u)
    return u, v, p, difference


def _columns(rng: np.random.Generator) -> Arguments:
    inner = (4, 3, 5)
    return (*(rng.random(inner) for _ in range(4)), rng.random((5, 3, 5)))


KERNELS: list[Kernel] = [
    of_shapes(jacobi_1d, (12,), (12,)),
    of_shapes(jacobi_2d, (7, 8), (7, 8)),
    of_shapes(heat_3d, (5, 6, 7), (5, 6, 7)),
    of_shapes(fdtd_2d, (6, 7), (6, 7), (6, 7), (STEPS,)),
    of_shapes(seidel_2d, (6, 6)),
    of_shapes(adi, (6, 6)),
    of_shapes(hdiff, (8, 9, 3), (4, 5, 3)),
    Kernel(vadv, _columns),
    of_shapes(cavity_flow, (7, 7), (7, 7), (7, 7)),
    of_shapes(channel_flow, (7, 7), (7, 7), (7, 7)),
]
