"""pad: constants, or the elements inside, around the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import shape_text
from gptrs.numpy_api.function import as_tensor
from gptrs.numpy_api.nn.operands import fixed, nn_function
from gptrs.numpy_api.padding import PadMode, most_outside, outside

__all__ = ["pad"]


@nn_function
def pad(
    input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """x with ``pad`` elements more around its last axes: (before, after) of the last axis, then of
    the one before it, ... A negative number takes elements away.

    ``mode`` is "constant" (``value``, 0 unless given), "reflect" (around the first and the last
    element), "replicate" (these) or "circular" (from the other end); the three are for the last one
    to three axes of [N, C, ...] or [C, ...]. Raises `ShapeError` for more than there are.
    """
    x = as_tensor(input)
    counts = [int(n) for n in pad]
    if len(counts) % 2 or len(counts) > 2 * x.ndim:
        raise ShapeError(
            f"pad is {tuple(counts)}, expected pairs for at most {x.ndim} axes of x"
            f" {shape_text(x.shape)}"
        )
    pairs = list(zip(counts[::2], counts[1::2], strict=True))
    widths = [*[(0, 0)] * (x.ndim - len(pairs)), *reversed(pairs)]
    if mode == "constant":
        return _constant(x, widths, 0 if value is None else value)
    if mode not in _MODES:
        raise ArgumentError(f"mode is {mode!r}, expected constant, {', '.join(_MODES)}")
    if value is not None:
        raise ArgumentError(f"value is {value}, but mode {mode!r} takes none")
    if not pairs or len(pairs) > 3 or x.ndim - len(pairs) not in (1, 2):
        raise ShapeError(
            f"mode {mode!r} pads the last one to three axes of [N, C, ...] or [C, ...], found"
            f" {len(pairs)} pairs for x {shape_text(x.shape)}"
        )
    if mode == "circular":  # what is taken away does not come back from the other end
        x, widths = _cut(x, widths), [(max(a, 0), max(b, 0)) for a, b in widths]
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _along(x, axis, before, after, mode)
    return x


def _cut(x: Tensor, widths: Sequence[tuple[int, int]]) -> Tensor:
    """Without the elements that negative numbers take away."""
    if all(n >= 0 for pair in widths for n in pair):
        return x
    for axis, (before, after) in enumerate(widths):
        if isinstance(extent := x.shape[axis], int) and extent + min(before, 0) + min(after, 0) < 0:
            raise ShapeError(f"axis {axis} of extent {extent} is padded by ({before}, {after})")
    return x[tuple(slice(max(-a, 0), b if b < 0 else None) for a, b in widths)]


def _constant(x: Tensor, widths: Sequence[tuple[int, int]], value: float) -> Tensor:
    x = _cut(x, widths)
    low, high = (tuple(max(pair[i], 0) for pair in widths) for i in (0, 1))
    return OPS["pad"](x, low=low, high=high, value=value) if any((*low, *high)) else x


def _along(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """One axis padded: parts of x before it and after it."""
    (extent,) = fixed(x.shape[axis : axis + 1], "input")
    inner = _MODES[mode]
    most = most_outside(extent, inner)
    if max(before, after) > most:
        raise ShapeError(
            f"axis {axis} of extent {extent} is padded by ({before}, {after}), expected at most"
            f" {most} for mode {mode!r}"
        )
    if extent + before + after < 1 or (extent < 1 and mode != "circular"):
        raise ShapeError(f"axis {axis} of extent {extent} is padded by ({before}, {after})")
    low, high = outside(x, axis, max(before, 0), max(after, 0), inner)
    keys = (slice(None),) * axis
    middle = x[(*keys, slice(max(-before, 0), extent - max(-after, 0)))]
    if not low and not high:
        return middle
    return OPS["concat"]((*low, middle, *high), axis=axis)


_MODES: dict[str, PadMode] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""torch's names, and NumPy's for the same."""
