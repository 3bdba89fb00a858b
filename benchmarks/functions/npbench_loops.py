"""Kernels of NPBench whose loops carry several arrays: shortest paths, waves, bodies, filters,
sparse products."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions import numba_loops
from benchmarks.functions.case import Arguments, Case, sized
from gptrs import ptir

FAMILY = "NPBench"


def cases() -> list[Case]:
    """One function each."""
    return [*_floyd_warshall(), *_fdtd_2d(), *_nbody(), *_spmv(), *_cavity_pressure()]


def _floyd_warshall() -> list[Case]:
    def path(rng: np.random.Generator, n: int) -> Arguments:
        return (rng.integers(1, 1000, (n, n)).astype(np.int32),)

    def ours(d: Any) -> Any:
        n = d.shape[0]

        def body(state: Any, _: Any) -> Any:
            k, d = state
            column = ptir.dynamic_slice(d, (0, k), sizes=(n, 1))
            row = ptir.dynamic_slice(d, (k, 0), sizes=(1, n))
            return (k + 1, ptir.minimum(d, column + row)), None

        start = ptir.full(shape=(), value=0, dtype=ptir.si32), d
        return ptir.scan(body, start, length=n)[0][1]

    def xp_loop(xp: Any, d: Any) -> Any:
        for k in range(d.shape[0]):
            d = xp.minimum(d, d[:, k, None] + d[None, k])
        return d

    def jax_loop(jax: Any, d: Any) -> Any:
        step = lambda k, d: jax.numpy.minimum(d, d[:, k, None] + d[None, k])
        return jax.lax.fori_loop(0, d.shape[0], step, d)

    return sized(
        FAMILY, "floyd_warshall si32", [200, 400], ours, xp_loop, make=path, jax=jax_loop,
        numba=lambda jit, d: jit(numba_loops.floyd_warshall)(d),
    )  # fmt: skip


def _fdtd_2d() -> list[Case]:
    """Electric and magnetic fields in turn; the first row of ey is given for each step."""

    def fields(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
        steps, x, y = size
        return rng.random((x, y)), rng.random((x, y)), rng.random((x, y)), np.arange(float(steps))

    def after(concat: Any, ex: Any, ey: Any, hz: Any, first: Any) -> Any:
        ey = concat((first, ey[1:] - (hz[1:] - hz[:-1]) * 0.5), 0)
        ex = concat((ex[:, :1], ex[:, 1:] - (hz[:, 1:] - hz[:, :-1]) * 0.5), 1)
        change = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        inner = concat((hz[:-1, :-1] - change * 0.7, hz[:-1, -1:]), 1)
        return ex, ey, concat((inner, hz[-1:]), 0)

    def ours(ex: Any, ey: Any, hz: Any, given: Any) -> Any:
        def body(state: Any, value: Any) -> Any:
            first = ptir.broadcast_to(value, shape=(1, ex.shape[1]))
            return after(lambda xs, axis: ptir.concat(xs, axis=axis), *state, first), None

        return ptir.scan(body, (ex, ey, hz), given)[0]

    def xp_loop(xp: Any, ex: Any, ey: Any, hz: Any, given: Any) -> Any:
        ex, ey, hz = (x.clone() if xp.__name__ == "torch" else x.copy() for x in (ex, ey, hz))
        for value in given:
            ey[0] = value
            ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
            ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
            change = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            hz[:-1, :-1] -= 0.7 * change
        return ex, ey, hz

    def jax_loop(jax: Any, ex: Any, ey: Any, hz: Any, given: Any) -> Any:
        def body(state: Any, value: Any) -> Any:
            first = jax.numpy.broadcast_to(value, (1, ex.shape[1]))
            return after(jax.numpy.concatenate, *state, first), None

        return jax.lax.scan(body, (ex, ey, hz), given)[0]

    sizes = [(20, 200, 220), (60, 400, 450)]
    return sized(FAMILY, "fdtd_2d", sizes, ours, xp_loop, make=fields, jax=jax_loop)


def _nbody() -> list[Case]:
    """Leapfrog steps of bodies that attract each other; without the energies.

    M has 60 of its 250 steps: orbits are chaotic, rounding is as large as they are in the end.
    """

    def bodies(rng: np.random.Generator, n: int) -> Arguments:
        return rng.random((n, 3)), rng.random((n, 3)), np.full((n, 1), 20 / n)

    def accelerations(x: Any, masses: Any) -> Any:
        d = x[None] - x[:, None]
        squared = (d * d).sum(-1) + 0.01
        return (d * (masses[None, :, 0] / (squared * squared**0.5))[:, :, None]).sum(1)

    def step(x: Any, v: Any, a: Any, masses: Any, dt: float) -> Any:
        v = v + a * (dt / 2)
        x = x + v * dt
        a = accelerations(x, masses)
        return x, v + a * (dt / 2), a

    def leapfrog(n: int, steps: int, dt: float) -> list[Case]:
        def ours(x: Any, v: Any, m: Any) -> Any:
            body = lambda state, _: (step(*state, m, dt), None)
            return ptir.scan(body, (x, v, accelerations(x, m)), length=steps)[0][:2]

        def xp_loop(xp: Any, x: Any, v: Any, m: Any) -> Any:
            state = x, v, accelerations(x, m)
            for _ in range(steps):
                state = step(*state, m, dt)
            return state[:2]

        def jax_loop(jax: Any, x: Any, v: Any, m: Any) -> Any:
            start = x, v, accelerations(x, m)
            body = lambda _, state: step(*state, m, dt)
            return jax.lax.fori_loop(0, steps, body, start)[:2]

        return sized(FAMILY, f"nbody, {steps} steps", [n], ours, xp_loop, make=bodies, jax=jax_loop)

    return [*leapfrog(25, 40, 0.05), *leapfrog(50, 60, 0.02)]


def _spmv() -> list[Case]:
    """A sparse matrix by a vector: rows, columns and values of its elements."""

    def matrix(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        n, elements = size
        rows, columns = np.sort(rng.integers(0, n, elements)), rng.integers(0, n, elements)
        return rows, columns, rng.random(elements), rng.random(n)

    return sized(
        FAMILY, "spmv", [(4096, 8192), (32768, 65536)],
        lambda rows, columns, values, x: ptir.segment_reduce(
            values * ptir.take(x, columns), rows, count=x.shape[0]
        ),
        lambda xp, rows, columns, values, x: np.bincount(rows, values * x[columns], len(x)),
        make=matrix,
        torch=lambda torch, rows, columns, values, x: torch.zeros_like(x).index_add(
            0, rows, values * x[columns]
        ),
        jax=lambda jax, rows, columns, values, x: jax.ops.segment_sum(
            values * x[columns], rows, len(x)
        ),
    )  # fmt: skip


def _cavity_pressure() -> list[Case]:
    """The Poisson equation of cavity_flow, as often as it is stepped there."""

    def inner(p: Any, b: Any) -> Any:
        around = p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]
        return around * 0.25 - b[1:-1, 1:-1] * 0.25

    def step(concat: Any, p: Any, b: Any) -> Any:
        p = inner(p, b)
        p = concat((p[:, :1], p, p[:, -1:]), 1)
        return concat((p[:1], p, p[-1:] * 0.0), 0)

    def fields(rng: np.random.Generator, n: int) -> Arguments:
        return rng.random((n, n)), rng.random((n, n))

    def relaxed(n: int, steps: int) -> list[Case]:
        def ours(p: Any, b: Any) -> Any:
            join = lambda xs, axis: ptir.concat(xs, axis=axis)
            return ptir.scan(lambda p, _: (step(join, p, b), None), p, length=steps)[0]

        def xp_loop(xp: Any, p: Any, b: Any) -> Any:
            for _ in range(steps):
                p = step(xp.concatenate, p, b)
            return p

        def jax_loop(jax: Any, p: Any, b: Any) -> Any:
            one = lambda _, p: step(jax.numpy.concatenate, p, b)
            return jax.lax.fori_loop(0, steps, one, p)

        return sized(
            FAMILY, f"cavity_flow's pressure, {steps} steps", [n], ours, xp_loop,
            make=fields, jax=jax_loop,
        )  # fmt: skip

    return [*relaxed(61, 125), *relaxed(121, 500)]
