"""Tensors for notebooks: type, statistics, a histogram, and the first elements.

Of large arrays a sample is read, in blocks that are spread evenly, so that the time is bounded and
pages of a mapped file are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from gptrs.byte_sizes import size_text
from gptrs.html_tables import Markup, code, facts, fragment, histogram
from gptrs.ir.types import Array, Type

_BLOCK = 4096  # adjacent elements
_BLOCKS = 256
_MOST = _BLOCK * _BLOCKS  # elements that are read
_BINS = 40


def tensor_html(type: Type, array: Array | None, state: str, name: str = "") -> Markup:
    """A tensor of ``type``; without an array ``state`` says why."""
    rows = [("name", name)] if name else []
    rows += [
        ("shape", " × ".join(map(str, type.shape)) or "scalar"),
        ("dtype", str(type.dtype)),
    ]
    if array is None:
        return fragment(facts([*rows, ("elements", state)]))
    rows.append(("memory", size_text(array.nbytes)))
    first = code(np.array2string(array, separator=", ", threshold=200, max_line_width=100))
    if array.size < 2:
        return fragment(facts(rows), first)
    sample = _sample(array)
    if sample.size < array.size:
        rows.append(("statistics", f"of a sample of {sample.size:,} of {array.size:,} elements"))
    numbers = _numbers(sample, type)
    finite = numbers[np.isfinite(numbers)]
    rows += _statistics(numbers, finite, type)
    drawn = _histogram(finite) if finite.size and not type.dtype.is_bool else Markup()
    return fragment(facts(rows), drawn, first)


def _sample(array: Array) -> Array:
    """All elements of an array, or blocks of a large one, flat."""
    # The iterator copies what is taken of it alone, which `ravel` does not for a strided array.
    flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
    if array.size <= _MOST:
        return cast("Array", flat[:])
    starts = np.linspace(0, array.size - _BLOCK, _BLOCKS).astype(np.int64).tolist()
    return np.concatenate([flat[start : start + _BLOCK] for start in starts])


def _numbers(sample: Array, type: Type) -> Any:
    """The sample as f64; of complex numbers their magnitudes."""
    with np.errstate(all="ignore"):
        if type.dtype.is_complex:
            return np.abs(sample).astype(np.float64)
        return sample.astype(np.float64)


def _statistics(numbers: Any, finite: Any, type: Type) -> Iterator[tuple[str, str]]:
    if type.dtype.is_bool:
        yield "true", f"{100 * numbers.mean():.4g} %"
        return
    of = "|x| " if type.dtype.is_complex else ""
    if finite.size:
        with np.errstate(all="ignore"):
            low, mean, high, std = finite.min(), finite.mean(), finite.max(), finite.std()
        yield f"{of}min, mean, max", f"{low:.5g}, {mean:.5g}, {high:.5g}"
        yield f"{of}std", f"{std:.5g}"
    if type.dtype.is_float or type.dtype.is_complex:
        yield "NaN", f"{np.isnan(numbers).sum():,}"
        yield "infinite", f"{np.isinf(numbers).sum():,}"


def _histogram(finite: Any) -> Markup:
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(all="ignore"):
        # The range of the largest numbers would be infinite.
        scaled = finite / 4
        counts, _ = np.histogram(scaled, _BINS, (low / 4, high / 4))
    return histogram(counts.tolist(), f"from {low:.5g} to {high:.5g}")
