"""Data movement: transposes, permutations, concatenation, slices; cumulative sums."""

from __future__ import annotations

from typing import Any

from benchmarks.functions.case import Case, sized
from gptrs import ptir

MATRICES = [(32, 32), (1000, 1000), (3000, 4000)]


def cases() -> list[Case]:
    """Transposes, concatenation and slices, cumulative sums."""
    return [*_transposes(), *_pieces(), *_cumulative()]


def _contiguous(xp: Any, x: Any) -> Any:
    return x.contiguous() if xp.__name__ == "torch" else xp.ascontiguousarray(x)


def _transposes() -> list[Case]:
    family = "transpose"
    permuted = [(4, 16, 8, 32), (8, 128, 12, 64), (16, 256, 16, 64)]
    reversed_ = [(20, 30, 40, 17), (64, 96, 128)]
    images = [(1, 16, 16, 3), (8, 56, 56, 64), (8, 224, 224, 3)]
    return [
        *sized(
            family,
            "matrix",
            MATRICES,
            lambda x: x.T,
            lambda xp, x: _contiguous(xp, x.T),
            jax=lambda jax, x: x.T,
        ),
        *sized(
            family,
            "matrix and its transpose added",
            [(32, 32), (1000, 1000), (3000, 3000)],
            lambda x: x + x.T,
            lambda xp, x: x + x.T,
        ),
        *sized(
            family,
            "heads to the front",
            permuted,
            lambda x: x.permute(0, 2, 1, 3),
            lambda xp, x: _contiguous(xp, x.swapaxes(1, 2)),
            jax=lambda jax, x: x.swapaxes(1, 2),
        ),
        *sized(
            family,
            "axes in reverse",
            reversed_,
            lambda x: ptir.transpose(x, perm=tuple(range(x.ndim))[::-1]),
            lambda xp, x: _contiguous(xp, x.transpose()),
            torch=lambda torch, x: x.permute(tuple(range(x.ndim))[::-1]).contiguous(),
            jax=lambda jax, x: x.transpose(),
        ),
        *sized(
            family,
            "channels to the front",
            images,
            lambda x: x.permute(0, 3, 1, 2),
            lambda xp, x: xp.ascontiguousarray(x.transpose(0, 3, 1, 2)),
            torch=lambda torch, x: x.permute(0, 3, 1, 2).contiguous(),
            jax=lambda jax, x: x.transpose(0, 3, 1, 2),
        ),
    ]


def _pieces() -> list[Case]:
    family = "concat, slices"
    return [
        *sized(
            family,
            "concat of rows",
            [((32, 32),) * 2, ((1000, 1000),) * 2],
            lambda x, y: ptir.concat((x, y), axis=0),
            lambda xp, x, y: xp.concatenate((x, y), 0),
            torch=lambda torch, x, y: torch.cat((x, y), 0),
        ),
        *sized(
            family,
            "concat of odd widths",
            [((100, 3), (100, 5)), ((100_000, 3), (100_000, 5)), ((1000, 333), (1000, 777))],
            lambda x, y: ptir.concat((x, y), axis=1),
            lambda xp, x, y: xp.concatenate((x, y), 1),
            torch=lambda torch, x, y: torch.cat((x, y), 1),
        ),
        *sized(
            family,
            "points of coordinates",
            [((1000,),) * 3, ((100_000,),) * 3],
            lambda x, y, z: ptir.stack((x, y, z), axis=-1),
            lambda xp, x, y, z: xp.stack((x, y, z), -1),
            torch=lambda torch, x, y, z: torch.stack((x, y, z), -1),
        ),
        *sized(
            family,
            "columns in another order",
            [(1000, 3), (100_000, 3)],
            lambda x: x[:, [2, 0, 1]],
            lambda xp, x: x[:, xp.asarray([2, 0, 1])],
        ),
        *sized(
            family,
            "differences of neighbours",
            [(1_000,), (100_000,), (4_000_000,)],
            lambda x: x[1:] - x[:-1],
            lambda xp, x: x[1:] - x[:-1],
        ),
        *sized(
            family,
            "every second row and column",
            [(64, 64), (1000, 1000), (4000, 3000)],
            lambda x: x[::2, ::2],
            lambda xp, x: x[::2, ::2].copy(),
            torch=lambda torch, x: x[::2, ::2].contiguous(),
        ),
    ]


def _cumulative() -> list[Case]:
    return [
        *sized(
            "cumsum",
            "last axis",
            [(1_000,), (1_000_000,), (1000, 1000)],
            lambda x: ptir.cumsum(x, axis=-1),
            lambda xp, x: xp.cumsum(x, -1),
        ),
        *sized(
            "cumsum",
            "first axis",
            MATRICES,
            lambda x: ptir.cumsum(x, axis=0),
            lambda xp, x: xp.cumsum(x, 0),
        ),
        *sized(
            "cumsum",
            "last axis si32",
            [(1_000_000,)],
            lambda x: ptir.cumsum(x, axis=-1, dtype=ptir.si32),
            lambda xp, x: xp.cumsum(x, -1, dtype=xp.int32),
            dtype="si32",
        ),
        *sized(
            "cumsum",
            "products, last axis",
            [(1_000,), (1000, 1000)],
            lambda x: ptir.cumprod(x, axis=-1),
            lambda xp, x: xp.cumprod(x, -1),
        ),
        *sized(
            "cumsum",
            "maxima, first axis",
            MATRICES,
            lambda x: ptir.cummax(x, axis=0),
            lambda xp, x: xp.maximum.accumulate(x, 0),
            torch=lambda torch, x: torch.cummax(x, 0)[0],
            jax=lambda jax, x: jax.lax.cummax(x, 0),
        ),
    ]
