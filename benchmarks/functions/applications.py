"""Whole functions: n bodies, k-means, an MLP, attention spelled out, Black-Scholes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions import numba_loops
from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir


def cases() -> list[Case]:
    """One family each."""
    return [*_nbody(), *_kmeans(), *_mlp(), *_attention(), *_black_scholes()]


def _nbody() -> list[Case]:
    def bodies(rng: np.random.Generator, count: int) -> Arguments:
        return draw(rng, (count, 3)), np.abs(draw(rng, (count,)))

    def accelerations(positions: Any, masses: Any) -> Any:
        d = positions[None] - positions[:, None]
        squared = (d * d).sum(-1) + 0.01
        factor = masses[None] / (squared * squared**0.5)
        return (d * factor[:, :, None]).sum(1)

    return sized(
        "nbody", "accelerations", [32, 200, 1000], accelerations,
        lambda xp, positions, masses: accelerations(positions, masses), make=bodies,
        numba=lambda jit, positions, masses: jit(numba_loops.nbody)(positions, masses),
    )  # fmt: skip


def _kmeans() -> list[Case]:
    """One step: the nearest centre of each point, then the mean of the points of each centre."""

    def ours(x: Any, centres: Any) -> Any:
        nearest = ptir.argmin(((x[:, None] - centres[None]) ** 2).sum(-1), axis=1)
        return ptir.segment_reduce(x, nearest, count=centres.shape[0], reduce="mean")

    def assign(xp: Any, x: Any, centres: Any) -> Any:
        return xp.argmin(((x[:, None] - centres[None]) ** 2).sum(-1), 1)

    def means(xp: Any, x: Any, centres: Any) -> Any:
        nearest = assign(xp, x, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, x)
        return sums / np.bincount(nearest, minlength=len(centres))[:, None].astype(x.dtype)

    def torch_means(torch: Any, x: Any, centres: Any) -> Any:
        nearest = assign(torch, x, centres)
        sums = torch.zeros_like(centres).index_add(0, nearest, x)
        return sums / torch.bincount(nearest, minlength=len(centres))[:, None]

    def jax_means(jax: Any, x: Any, centres: Any) -> Any:
        nearest = assign(jax.numpy, x, centres)
        sums = jax.ops.segment_sum(x, nearest, len(centres))
        counts = jax.numpy.bincount(nearest, length=len(centres))
        return sums / counts[:, None].astype(x.dtype)

    sizes = [((200, 4), (4, 4)), ((5_000, 8), (16, 8)), ((100_000, 8), (16, 8))]
    return sized(
        "k-means", "step", sizes, ours, means, torch=torch_means, jax=jax_means,
        numba=lambda jit, x, centres: jit(numba_loops.kmeans)(x, centres),
    )  # fmt: skip


def _mlp() -> list[Case]:
    def ours(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return ptir.softmax(ptir.relu(x @ w1 + b1) @ w2 + b2)

    def theirs(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        y = xp.maximum(x @ w1 + b1, xp.zeros((), dtype=x.dtype)) @ w2 + b2
        e = xp.exp(y - xp.amax(y, -1)[:, None])
        return e / e.sum(-1)[:, None]

    def layers(rng: np.random.Generator, size: tuple[int, int, int, int]) -> Arguments:
        rows, width, hidden, out = size
        first = draw(rng, (width, hidden)) / np.float32(width**0.5)
        second = draw(rng, (hidden, out)) / np.float32(hidden**0.5)
        return draw(rng, (rows, width)), first, draw(rng, (hidden,)), second, draw(rng, (out,))

    sizes = [(1, 64, 64, 10), (64, 784, 256, 10), (512, 784, 1024, 100)]
    return sized("MLP", "two layers", sizes, ours, theirs, make=layers)


def _attention() -> list[Case]:
    def ours(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-2, -1) * (1 / q.shape[-1] ** 0.5)
        return ptir.softmax(scores) @ v

    def theirs(xp: Any, q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-2, -1) * (1 / q.shape[-1] ** 0.5)
        e = xp.exp(scores - xp.amax(scores, -1)[..., None])
        return e / e.sum(-1)[..., None] @ v

    def torch_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.mT * (1 / q.shape[-1] ** 0.5), -1) @ v

    sizes = [((1, 2, 16, 32),) * 3, ((1, 12, 128, 64),) * 3, ((1, 12, 512, 64),) * 3]
    return sized("attention", "spelled out", sizes, ours, theirs, torch=torch_attention)


def _black_scholes() -> list[Case]:
    def prices(erf: Any, xp: Any, s: Any, k: Any, t: Any) -> Any:
        root = xp.sqrt(t) * 0.3
        d1 = (xp.log(s / k) + t * 0.065) / root
        first, second = (1 + erf(d * 0.70710678) for d in (d1, d1 - root))
        return (s * first - k * xp.exp(t * -0.02) * second) * 0.5

    def numpy_erf(x: Any) -> Any:
        """Abramowitz and Stegun 7.1.26: NumPy has none, and 1.5e-7 is enough."""
        t = 1 / (1 + 0.3275911 * np.abs(x))
        sums = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t
        return np.sign(x) * (1 - (sums + 0.254829592) * t * np.exp(-x * x))

    def options(rng: np.random.Generator, count: int) -> Arguments:
        drawn = rng.uniform([[50], [50], [0.1]], [[150], [150], [2]], (3, count))
        return tuple(row.astype(np.float32) for row in drawn)

    return sized(
        "Black-Scholes", "calls", [1_000, 100_000, 2_000_000],
        lambda s, k, t: prices(ptir.erf, ptir, s, k, t),
        lambda xp, s, k, t: prices(numpy_erf, xp, s, k, t),
        make=options,
        torch=lambda torch, *given: prices(torch.erf, torch, *given),
        jax=lambda jax, *given: prices(jax.lax.erf, jax.numpy, *given),
        numba=lambda jit, *given: jit(numba_loops.black_scholes)(*given),
    )  # fmt: skip
