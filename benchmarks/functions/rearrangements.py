"""Rearranged elements: flips, rolls, reflected borders, pixel shuffle, columns at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.functions.case import Arguments, Case, draw, sized
from gptrs import ptir

_BORDER = ((0, 0), (3, 3), (3, 3))


def cases() -> list[Case]:
    """Those beside slices and transposes in family "concat, slices", columns in "gather"."""
    family, matrices = "concat, slices", [(32, 32), (1000, 1000), (4000, 3000)]
    images = [(3, 16, 16), (64, 56, 56)]
    columns = [(32, 32), (1000, 1000), (3000, 2000)]
    return [
        *sized(
            family,
            "flip of the last axis",
            matrices,
            _flip,
            _flip_peers,
            torch=_flip_torch,
            jax=_flip_jax,
        ),
        *sized(family, "roll of the last axis", matrices, _roll, _roll_peers),
        *sized(family, "reflected border", images, _border, _border_peers, torch=_border_torch),
        *sized(
            family,
            "pixel shuffle",
            [(1, 64, 56, 56)],
            _shuffle,
            _shuffle_peers,
            torch=_shuffle_torch,
        ),
        *sized(
            "gather", "take columns", columns, _take, _take_peers, make=_make, torch=_take_torch
        ),
    ]


def _flip(x: Any) -> Any:
    return ptir.flip(x, 1)


def _flip_peers(xp: Any, x: Any) -> Any:
    return xp.flip(x, 1).copy()


def _flip_torch(torch: Any, x: Any) -> Any:
    return torch.flip(x, (1,))


def _flip_jax(jax: Any, x: Any) -> Any:
    return jax.numpy.flip(x, 1)


def _roll(x: Any) -> Any:
    return ptir.roll(x, 7, 1)


def _roll_peers(xp: Any, x: Any) -> Any:
    return xp.roll(x, 7, 1)


def _border(x: Any) -> Any:
    pad: Any = ptir.pad
    return pad(x, _BORDER, mode="reflect")


def _border_peers(xp: Any, x: Any) -> Any:
    return xp.pad(x, _BORDER, mode="reflect")


def _border_torch(torch: Any, x: Any) -> Any:
    return torch.nn.functional.pad(x, (3, 3, 3, 3), mode="reflect")


def _shuffle(x: Any) -> Any:
    return ptir.pixel_shuffle(x, 2)


def _shuffle_peers(xp: Any, x: Any) -> Any:
    n, c, h, w = x.shape
    blocks = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // 4, 2 * h, 2 * w)


def _shuffle_torch(torch: Any, x: Any) -> Any:
    return torch.pixel_shuffle(x, 2)


def _take(x: Any, i: Any) -> Any:
    return ptir.take(x, i, axis=1)


def _take_peers(xp: Any, x: Any, i: Any) -> Any:
    return xp.take(x, i, 1)


def _take_torch(torch: Any, x: Any, i: Any) -> Any:
    return torch.index_select(x, 1, i)


def _make(rng: np.random.Generator, size: tuple[int, int]) -> Arguments:
    return draw(rng, size), rng.integers(0, size[1], size[1])
