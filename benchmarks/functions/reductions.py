"""Reductions over any axis; softmax, log-sum-exp and norms; masked means; pairwise distances."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.functions import numba_loops
from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir

MATRICES = [(32, 32), (1000, 1000), (3000, 4000)]
EXTREME = [(10, 100_000), (100_000, 10)]
CUBES = [(8, 16, 32), (64, 128, 256), (16, 1000, 512)]


def cases() -> list[Case]:
    """Sums and extremes, softmax and norms, means under masks, distances."""
    return [*_sums(), *_normalized(), *_short_rows(), *_masked(), *_distances()]


def _sums() -> list[Case]:
    family = "reduction"
    return [
        *sized(family, "row sums", MATRICES + EXTREME, lambda x: x.sum(1), lambda xp, x: x.sum(1)),
        *sized(
            family, "column sums", MATRICES + EXTREME, lambda x: x.sum(0), lambda xp, x: x.sum(0)
        ),
        *sized(family, "middle sums", CUBES, lambda x: x.sum(1), lambda xp, x: x.sum(1)),
        *sized(
            family,
            "sum of squares",
            [(1_000,), (100_000,), (4_000_000,)],
            lambda x: (x * x).sum(),
            lambda xp, x: (x * x).sum(),
        ),
        *sized(
            family,
            "column maxima",
            MATRICES,
            lambda x: x.max(axis=0),
            lambda xp, x: x.max(axis=0),
            torch=lambda torch, x: torch.amax(x, 0),
        ),
        *sized(
            family,
            "row argmax",
            MATRICES,
            lambda x: ptir.argmax(x, axis=1),
            lambda xp, x: xp.argmax(x, axis=1),
            torch=lambda torch, x: torch.argmax(x, 1),
        ),
        *sized(
            family,
            "column argmax",
            MATRICES,
            lambda x: ptir.argmax(x, axis=0),
            lambda xp, x: xp.argmax(x, axis=0),
            torch=lambda torch, x: torch.argmax(x, 0),
        ),
        *sized(
            family,
            "column variance",
            MATRICES,
            lambda x: ptir.var(x, axes=0),
            lambda xp, x: x.var(axis=0),
            torch=lambda torch, x: torch.var(x, 0, correction=0),
        ),
        *sized(
            family,
            "centred by the mean",
            MATRICES,
            lambda x: x - x.mean(),
            lambda xp, x: x - x.mean(),
        ),
    ]


def _softmax(xp: Any, x: Any, axis: int) -> Any:
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _logsumexp(xp: Any, x: Any) -> Any:
    top = x.max(axis=1, keepdims=True)
    return xp.log(xp.exp(x - top).sum(axis=1)) + top[:, 0]


def _our_logsumexp(x: Any) -> Any:
    top = x.max(axis=1, keepdims=True)
    return ptir.log(ptir.exp(x - top).sum(axis=1)) + top[:, 0]


def _layer_norm(xp: Any, x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * w + b


def _normalized() -> list[Case]:
    family = "softmax, norms"
    rows = [((rows, n), (n,), (n,)) for rows, n in [(16, 64), (512, 768), (4096, 1024)]]
    return [
        *sized(
            family,
            "softmax of rows",
            MATRICES,
            lambda x: ptir.softmax(x, axis=1),
            lambda xp, x: _softmax(xp, x, 1),
            torch=lambda torch, x: torch.softmax(x, 1),
        ),
        *sized(
            family,
            "softmax of columns",
            MATRICES,
            lambda x: ptir.softmax(x, axis=0),
            lambda xp, x: _softmax(xp, x, 0),
            torch=lambda torch, x: torch.softmax(x, 0),
        ),
        *sized(
            family,
            "softmax of a middle axis",
            CUBES,
            lambda x: ptir.softmax(x, axis=1),
            lambda xp, x: _softmax(xp, x, 1),
            torch=lambda torch, x: torch.softmax(x, 1),
        ),
        *sized(
            family,
            "logsumexp",
            MATRICES,
            _our_logsumexp,
            _logsumexp,
            torch=lambda torch, x: torch.logsumexp(x, 1),
        ),
        *sized(
            family,
            "layer norm",
            rows,
            lambda x, w, b: ptir.layer_norm(x, w, b),
            _layer_norm,
            torch=lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
        ),
        *sized(
            family,
            "rows by their L2 norm",
            MATRICES,
            lambda x: x * ptir.rsqrt((x * x).sum(1, keepdims=True) + 1e-12),
            lambda xp, x: x / xp.sqrt((x * x).sum(1, keepdims=True) + 1e-12),
        ),
    ]


def _short_rows() -> list[Case]:
    found: list[Case] = []
    for dtype, shape in {"f32": (100_000, 10), "f64": (50_000, 16)}.items():
        for name, function, torch in (
            ("maxima", lambda xp, x: x.max(axis=1), lambda torch, x: torch.amax(x, 1)),
            ("argmax", lambda xp, x: xp.argmax(x, axis=1), lambda torch, x: torch.argmax(x, 1)),
            ("centred", lambda xp, x: x - x.mean(axis=1, keepdims=True), None),
            (
                "by their norm",
                lambda xp, x: x / xp.sqrt((x * x).sum(axis=1, keepdims=True)),
                None,
            ),
            ("each by its own number", lambda xp, x: x * x[:, :1], None),
            ("softmax", lambda xp, x: _softmax(xp, x, 1), lambda torch, x: torch.softmax(x, 1)),
        ):
            ours = partial(function, ptir)
            found += sized(
                "short rows", f"{name} {dtype}", [shape], ours, function, dtype=dtype, torch=torch
            )
    return found


def _masked() -> list[Case]:
    def make(rng: np.random.Generator, size: tuple[int, ...]) -> Arguments:
        return draw(rng, size), rng.random(size) < 0.5

    def ours(x: Any, mask: Any) -> Any:
        kept = ptir.select(mask, x, 0.0).sum(1)
        return kept / ptir.maximum(mask.astype("f32").sum(1), 1)

    def xp_mean(xp: Any, x: Any, mask: Any) -> Any:
        kept = xp.where(mask, x, 0).sum(1)
        return kept / xp.maximum(mask.sum(1), 1).astype("float32")

    def torch_mean(torch: Any, x: Any, mask: Any) -> Any:
        return torch.where(mask, x, 0).sum(1) / mask.sum(1).clamp(min=1)

    return sized("masked mean", "rows", MATRICES, ours, xp_mean, make=make, torch=torch_mean)


def _distances() -> list[Case]:
    def by_product(xp: Any, x: Any, y: Any) -> Any:
        return (x * x).sum(1)[:, None] - 2 * (x @ y.T) + (y * y).sum(1)[None]

    def our_product(x: Any, y: Any) -> Any:
        return (x * x).sum(1)[:, None] - (x @ y.T) * 2 + (y * y).sum(1)[None]

    sizes = [((32, 3), (32, 3)), ((500, 3), (500, 3)), ((500, 64), (500, 64))]
    large = [((1000, 64), (1000, 64)), ((2000, 16), (2000, 16))]
    return [
        *sized(
            "distances",
            "of differences",
            sizes,
            lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1),
            lambda xp, x, y: ((x[:, None] - y[None]) ** 2).sum(-1),
            numba=lambda jit, x, y: jit(numba_loops.distances)(x, y),
        ),
        *sized("distances", "of a product", [sizes[0], *large], our_product, by_product),
    ]
