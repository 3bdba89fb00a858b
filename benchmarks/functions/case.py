"""A case of the benchmark: one function at one size, as each side writes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

Function = Callable[..., Any]
Shape = tuple[int, ...]
Arguments = tuple[Any, ...]
Make = Callable[..., Arguments]
"""Arguments, given a generator of random numbers and a size."""

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": bfloat16,
    "si8": np.int8,
    "si32": np.int32,
    "si64": np.int64,
}


@dataclass(frozen=True)
class Case:
    """A function at one size.

    ``ours`` is written with `ptir` and jitted. ``xp`` takes a namespace first, NumPy's, torch's or
    jax.numpy's; ``torch`` and ``jax`` (which take their modules first) stand in its place where
    their words are others; None where a side cannot write it. ``numba`` takes what compiles a
    function of loops first (`njit` with ``parallel`` and ``fastmath``).
    """

    family: str
    name: str
    size: Any
    make: Make
    ours: Function
    xp: Function
    torch: Function | None
    jax: Function | None
    numba: Function | None

    def arguments(self) -> Arguments:
        """The same ones each time."""
        return self.make(np.random.default_rng(0), self.size)

    def __str__(self) -> str:
        return f"{self.name} {size_text(self.size)}"


def sized(
    family: str,
    name: str,
    sizes: Sequence[Any],
    ours: Function,
    xp: Function,
    *,
    make: Make | None = None,
    dtype: str = "f32",
    torch: Function | str | None = "xp",
    jax: Function | str | None = "xp",
    numba: Function | None = None,
) -> list[Case]:
    """One case a size. A size is a shape, or a tuple of shapes, of normally distributed arguments,
    or whatever ``make`` takes."""
    make = make or normal(dtype)
    return [
        Case(
            family,
            name,
            size,
            make,
            ours,
            xp,
            xp if torch == "xp" else torch,  # pyright: ignore[reportArgumentType]
            _with_jax_numpy(xp) if jax == "xp" else jax,  # pyright: ignore[reportArgumentType]
            numba,
        )
        for size in sizes
    ]


def normal(dtype: str = "f32") -> Make:
    """Makes arrays of normally distributed numbers, integers from −20 to 20."""

    def make(rng: np.random.Generator, size: Any) -> Arguments:
        shapes = size if isinstance(size[0], tuple) else (size,)
        return tuple(draw(rng, shape, dtype) for shape in shapes)

    return make


def draw(rng: np.random.Generator, shape: Shape, dtype: str = "f32") -> Any:
    """An array of random numbers."""
    if dtype.startswith("si"):
        return rng.integers(-20, 21, shape, DTYPES[dtype])
    return rng.standard_normal(shape).astype(DTYPES[dtype])


def size_text(size: Any) -> str:
    """``1000×1000``, ``64×32, 32×16``, ``1e6``."""
    if isinstance(size, int):
        return f"{size:.0e}".replace("e+0", "e") if size >= 10_000 and size % 10 == 0 else str(size)
    if size and isinstance(size[0], tuple):
        return ", ".join(dict.fromkeys(size_text(shape) for shape in size))
    return "×".join(map(size_text, size)) or "1"


def _with_jax_numpy(function: Function) -> Function:
    return lambda jax, *arguments: function(jax.numpy, *arguments)
