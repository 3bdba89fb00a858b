"""Reading and writing at indices, one-hot rows; sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions.case import Arguments, Case, Make, draw, sized
from gptrs import ptir

SIZES = [(1000, 16, 200), (50_000, 64, 4096), (50_000, 64, 100_000)]
"""Rows of a table, their width, and how many indices there are."""


def cases() -> list[Case]:
    """take, gather, dynamic slices, scatter, segments, one-hot; sort, argsort, top_k."""
    return [*_reads(), *_writes(), *_sorts()]


def _indices(*, source: bool = False) -> Make:
    def make(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
        rows, width, count = size
        table, where = draw(rng, (rows, width)), rng.integers(0, rows, count)
        return (table, where, draw(rng, (count, width))) if source else (table, where)

    return make


def _along(axis: int) -> Make:
    def make(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        return draw(rng, size), rng.integers(0, size[axis], size)

    return make


def _block(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
    return draw(rng, size), np.array(7)


def _half(x: Any, i: Any) -> tuple[slice, slice]:
    """A block of half of the rows and half of the columns, from position ``i`` of both."""
    first = min(int(i), x.shape[0] - x.shape[0] // 2, x.shape[1] - x.shape[1] // 2)
    return slice(first, first + x.shape[0] // 2), slice(first, first + x.shape[1] // 2)


def _reads() -> list[Case]:
    def classes(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        return rng.integers(0, size[1], size[0]), np.arange(size[1])

    return [
        *sized(
            "gather",
            "take rows",
            SIZES,
            lambda x, i: ptir.take(x, i, axis=0),
            lambda xp, x, i: xp.take(x, i, 0),
            make=_indices(),
            torch=lambda torch, x, i: torch.index_select(x, 0, i),
        ),
        *sized(
            "gather",
            "along rows",
            [(32, 32), (1000, 1000), (3000, 2000)],
            lambda x, i: ptir.gather(x, i, axis=1),
            lambda xp, x, i: xp.take_along_axis(x, i, 1),
            make=_along(1),
            torch=lambda torch, x, i: torch.gather(x, 1, i),
        ),
        *sized(
            "gather",
            "along columns",
            [(32, 32), (1000, 1000), (10, 100_000)],
            lambda x, i: ptir.gather(x, i, axis=0),
            lambda xp, x, i: xp.take_along_axis(x, i, 0),
            make=_along(0),
            torch=lambda torch, x, i: torch.gather(x, 0, i),
        ),
        *sized(
            "gather",
            "dynamic slice",
            [(64, 64), (1000, 1000), (4000, 2000)],
            lambda x, i: ptir.dynamic_slice(x, (i, i), sizes=(x.shape[0] // 2, x.shape[1] // 2)),
            lambda xp, x, i: x[_half(x, i)].copy(),
            make=_block,
            torch=lambda torch, x, i: x[_half(x, i)].clone(),
            jax=lambda jax, x, i: jax.lax.dynamic_slice(
                x, (i, i), (x.shape[0] // 2, x.shape[1] // 2)
            ),
        ),
        *sized(
            "gather",
            "one-hot",
            [(32, 10), (1000, 100), (4096, 1000)],
            lambda i, n: (i[:, None] == n[None]).astype("f32"),
            lambda xp, i, n: (i[:, None] == n[None]).astype("float32"),
            make=classes,
            torch=lambda torch, i, n: (i[:, None] == n[None]).float(),
        ),
    ]


def _writes() -> list[Case]:
    def counts(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        bins, count = size
        return np.zeros(bins, np.float32), rng.integers(0, bins, count), draw(rng, (count,))

    def add(xp: Any, x: Any, i: Any, source: Any) -> Any:
        found = x.copy()
        np.add.at(found, i, source)
        return found

    def greatest(xp: Any, x: Any, i: Any, source: Any) -> Any:
        found = x.copy()
        np.maximum.at(found, i, source)
        return found

    def put(xp: Any, x: Any, i: Any, source: Any) -> Any:
        found = x.copy()
        found[i] = source
        return found

    def distinct(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
        bins, count = size
        return draw(rng, (bins,)), rng.permutation(bins)[:count], draw(rng, (count,))

    bins = [(100, 1000), (1000, 100_000), (1_000_000, 1_000_000)]
    return [
        *sized(
            "scatter",
            "add to bins",
            bins,
            lambda x, i, s: ptir.scatter_add(x, i, s, axis=0),
            add,
            make=counts,
            torch=lambda torch, x, i, s: x.index_add(0, i, s),
            jax=lambda jax, x, i, s: x.at[i].add(s),
        ),
        *sized(
            "scatter",
            "set",
            [(1000, 100), (100_000, 10_000), (1_000_000, 500_000)],
            lambda x, i, s: ptir.scatter_reduce(x, i, s, axis=0, reduce="replace"),
            put,
            make=distinct,
            torch=lambda torch, x, i, s: x.index_copy(0, i, s),
            jax=lambda jax, x, i, s: x.at[i].set(s),
        ),
        *sized(
            "scatter",
            "max into bins",
            bins,
            lambda x, i, s: ptir.scatter_reduce(x, i, s, axis=0, reduce="max"),
            greatest,
            make=counts,
            torch=lambda torch, x, i, s: torch.scatter_reduce(x, 0, i, s, "amax"),
            jax=lambda jax, x, i, s: x.at[i].max(s),
        ),
        *sized(
            "scatter",
            "add along rows",
            [(32, 32), (1000, 1000), (100_000, 10)],
            lambda x, i: ptir.scatter_add(x, i, x, axis=1),
            lambda xp, x, i: add(xp, x, (np.arange(len(x))[:, None], i), x),
            make=_along(1),
            torch=lambda torch, x, i: torch.scatter_add(x, 1, i, x),
            jax=lambda jax, x, i: x.at[jax.numpy.arange(len(x))[:, None], i].add(x),
        ),
        *sized(
            "scatter",
            "sums of segments",
            SIZES,
            lambda x, i, s: ptir.segment_reduce(s, i, count=1000),
            lambda xp, x, i, s: add(xp, np.zeros((1000, s.shape[1]), s.dtype), i, s),
            make=_segments,
            torch=lambda torch, x, i, s: torch.zeros(1000, s.shape[1]).index_add(0, i, s),
            jax=lambda jax, x, i, s: jax.ops.segment_sum(s, i, 1000),
        ),
    ]


def _segments(rng: np.random.Generator, size: tuple[int, int, int]) -> Arguments:
    _, width, count = size
    return draw(rng, (1,)), rng.integers(0, 1000, count), draw(rng, (count, width))


def _sorts() -> list[Case]:
    lengths = [(1_000,), (1_000_000,), (1000, 1000)]
    vocabulary = [(1000,), (50_257,), (100, 10_000)]

    def largest(xp: Any, x: Any) -> Any:
        return -np.sort(np.partition(-x, 9, -1)[..., :10], -1)

    return [
        *sized(
            "sort",
            "sort",
            lengths,
            lambda x: ptir.ops.sort(x)[0],
            lambda xp, x: xp.sort(x, -1),
            torch=lambda torch, x: torch.sort(x, -1)[0],
        ),
        *sized(
            "sort",
            "argsort",
            lengths,
            lambda x: ptir.ops.sort(x)[1],
            lambda xp, x: xp.argsort(x, -1, kind="stable"),
            torch=lambda torch, x: torch.sort(x, dim=-1, stable=True)[1],
            jax=lambda jax, x: jax.numpy.argsort(x, -1),
        ),
        *(
            case
            for dtype in ("si32", "f64")
            for case in sized(
                "sort",
                f"argsort {dtype}",
                lengths,
                lambda x: ptir.ops.sort(x)[1],
                lambda xp, x: xp.argsort(x, -1, kind="stable"),
                dtype=dtype,
                torch=lambda torch, x: torch.sort(x, dim=-1, stable=True)[1],
                jax=lambda jax, x: jax.numpy.argsort(x, -1),
            )
        ),
        *sized(
            "sort",
            "sort si32",
            lengths[:2],
            lambda x: ptir.ops.sort(x)[0],
            lambda xp, x: xp.sort(x, -1),
            dtype="si32",
            torch=lambda torch, x: torch.sort(x, -1)[0],
        ),
        *sized(
            "top_k",
            "ten largest",
            vocabulary,
            lambda x: ptir.top_k(x, k=10)[0],
            largest,
            torch=lambda torch, x: torch.topk(x, 10)[0],
            jax=lambda jax, x: jax.lax.top_k(x, 10)[0],
        ),
    ]
