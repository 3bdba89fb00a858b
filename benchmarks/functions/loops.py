"""Loops that carry a state: recurrences, RNN and LSTM by `scan`; Mandelbrot and Newton by
`while_loop`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions import numba_loops, stencils
from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir


def cases() -> list[Case]:
    """Stencils, scans, while loops."""
    return [*stencils.cases(), *_scans(), *_networks(), *_whiles()]


def _scans() -> list[Case]:
    def recurrence(x: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = state * 0.9 + x
            return state, state

        return ptir.scan(body, ptir.full(shape=(), value=0, dtype=ptir.f32), x)[1]

    def in_turn(xp: Any, x: Any) -> Any:
        found, state = np.empty_like(x), np.float32(0)
        for i, element in enumerate(x):
            found[i] = state = state * np.float32(0.9) + element
        return found

    def jax_recurrence(jax: Any, x: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = state * np.float32(0.9) + x
            return state, state

        return jax.lax.scan(body, np.float32(0), x)[1]

    return sized(
        "scan",
        "recurrence",
        [(1_000,), (100_000,)],
        recurrence,
        in_turn,
        torch=None,
        jax=jax_recurrence,
        numba=lambda jit, x: jit(numba_loops.recurrence)(x),
    )


def _rnn_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
    steps, batch, width = size
    small = 1 / np.sqrt(np.float32(width))
    weights = [draw(rng, (width, width)) * small for _ in range(2)]
    return draw(rng, (steps, batch, width)), *weights, draw(rng, (width,))


def _lstm_arguments(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
    steps, batch, width = size
    small = 1 / np.sqrt(np.float32(width))
    weights = [draw(rng, (width, 4 * width)) * small for _ in range(2)]
    return draw(rng, (steps, batch, width)), *weights, draw(rng, (4 * width,))


def _networks() -> list[Case]:
    def rnn(x: Any, w: Any, u: Any, b: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            return ptir.tanh(x @ w + state @ u + b), None

        start = ptir.full(shape=x.shape[1:], value=0, dtype=x.dtype)
        return ptir.scan(body, start, x)[0]

    def xp_rnn(xp: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
        state = xp.zeros(x.shape[1:], dtype=x.dtype)
        for row in x:
            state = xp.tanh(row @ w + state @ u + b)
        return state

    def jax_rnn(jax: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            return jax.numpy.tanh(x @ w + state @ u + b), None

        return jax.lax.scan(body, jax.numpy.zeros(x.shape[1:], x.dtype), x)[0]

    def lstm_step(xp: Any, sigmoid: Any, state: Any, gates: Any) -> Any:
        (_, c), n = state, gates.shape[-1] // 4
        i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
        return sigmoid(o) * xp.tanh(c), c

    def lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            return lstm_step(ptir, ptir.sigmoid, state, x @ w + state[0] @ u + b), None

        zero = ptir.full(shape=x.shape[1:], value=0, dtype=x.dtype)
        return ptir.scan(body, (zero, zero), x)[0][0]

    def xp_lstm(xp: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
        sigmoid = xp.sigmoid if xp.__name__ == "torch" else lambda x: 1 / (1 + xp.exp(-x))
        state = (xp.zeros(x.shape[1:], dtype=x.dtype),) * 2
        for row in x:
            state = lstm_step(xp, sigmoid, state, row @ w + state[0] @ u + b)
        return state[0]

    def jax_lstm(jax: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            gates = x @ w + state[0] @ u + b
            return lstm_step(jax.numpy, jax.nn.sigmoid, state, gates), None

        zero = jax.numpy.zeros(x.shape[1:], x.dtype)
        return jax.lax.scan(body, (zero, zero), x)[0][0]

    sizes = [(100, 1, 32), (100, 1, 128), (50, 16, 512)]
    return [
        *sized(
            "scan", "RNN", sizes, rnn, xp_rnn, make=_rnn_arguments, jax=jax_rnn,
            numba=lambda jit, *arrays: jit(numba_loops.rnn)(*arrays),
        ),
        *sized("scan", "LSTM", sizes, lstm, xp_lstm, make=_lstm_arguments, jax=jax_lstm),
    ]  # fmt: skip


def mandelbrot_arguments(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
    """Real and imaginary parts of points, f32 [size, size]; the limit lies in the case."""
    x, y = np.linspace(-2, 0.5, size[0]), np.linspace(-1.25, 1.25, size[1])
    real, imaginary = np.meshgrid(x.astype(np.float32), y.astype(np.float32))
    return np.ascontiguousarray(real), np.ascontiguousarray(imaginary)


def mandelbrot(family: str, name: str, sizes: list[tuple[int, int]], limit: int) -> list[Case]:
    """Steps that points take to leave the circle of radius 2, at most ``limit``."""

    def step(where: Any, state: Any, cr: Any, ci: Any) -> Any:
        n, x, y, count = state
        inside = x * x + y * y <= 4
        following = x * x - y * y + cr, x * y * 2 + ci
        x, y = (where(inside, new, old) for new, old in zip(following, (x, y), strict=True))
        return n + 1, x, y, where(inside, count + 1, count)

    def ours(cr: Any, ci: Any) -> Any:
        zero = ptir.full(shape=cr.shape, value=0, dtype=ptir.f32)
        count = ptir.full(shape=cr.shape, value=0, dtype=ptir.si32)
        start = ptir.full(shape=(), value=0, dtype=ptir.si32), zero, zero, count
        body = lambda state: step(ptir.select, state, cr, ci)
        return ptir.while_loop(lambda state: state[0] < limit, body, start)[3]

    def xp_loop(xp: Any, cr: Any, ci: Any) -> Any:
        state = 0, xp.zeros_like(cr), xp.zeros_like(cr), xp.zeros_like(cr, dtype=xp.int32)
        while state[0] < limit:
            state = step(xp.where, state, cr, ci)
        return state[3]

    def jax_loop(jax: Any, cr: Any, ci: Any) -> Any:
        zero, np = jax.numpy.zeros_like(cr), jax.numpy
        start = 0, zero, zero, np.zeros_like(cr, dtype=np.int32)
        body = lambda state: step(np.where, state, cr, ci)
        return jax.lax.while_loop(lambda state: state[0] < limit, body, start)[3]

    return sized(
        family, name, sizes, ours, xp_loop, make=mandelbrot_arguments, jax=jax_loop,
        numba=lambda jit, cr, ci: jit(numba_loops.mandelbrot)(cr, ci, limit),
    )  # fmt: skip


def _whiles() -> list[Case]:
    def step(y: Any, x: Any) -> Any:
        return y - (y * y * y - x) / (y * y * 3)

    def ours(x: Any) -> Any:
        start = ptir.full(shape=(), value=0, dtype=ptir.si32), x
        body = lambda state: (state[0] + 1, step(state[1], x))
        return ptir.while_loop(lambda state: state[0] < 40, body, start)[1]

    def xp_loop(xp: Any, x: Any) -> Any:
        y = x
        for _ in range(40):
            y = step(y, x)
        return y

    def jax_loop(jax: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, 40, lambda _, y: step(y, x), x)

    def positive(rng: np.random.Generator, size: tuple[int, ...]) -> Arguments:
        return (np.abs(draw(rng, size)) + np.float32(0.5),)

    return [
        *mandelbrot("while", "mandelbrot, 50 steps", [(32, 32), (200, 200), (1000, 1000)], 50),
        *sized(
            "while", "newton, 40 steps", [(1,), (1_000,), (100_000,)], ours, xp_loop,
            make=positive, jax=jax_loop, numba=lambda jit, x: jit(numba_loops.newton)(x),
        ),
    ]  # fmt: skip
