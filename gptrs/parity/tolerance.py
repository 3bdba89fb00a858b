"""Accepted differences of a model's results from torch's, by task."""

from __future__ import annotations

from gptrs import settings
from gptrs.ir.types import DType, bf16, f16

_LANGUAGE, _IMAGES, _WINOGRAD = 1e-4, 1e-4, 1e-3
_ROUNDING = {f16: 2.0**-11, bf16: 2.0**-8}
"""The relative distance of neighbours, twice the largest error of one rounding."""
_ROUNDINGS, _LARGE = 8, 10.0


def tolerance(task: str) -> float:
    """The accepted difference of f32 results of order 10 with different orders of summation, for a
    model of the ``task``. Weights of f16 and bf16 are widened, so that the same holds for them.

    Winograd's convolutions round more (Lavin and Gray, arXiv:1509.09308).
    """
    if task == "causal_lm":
        return _LANGUAGE
    return _WINOGRAD if settings.winograd() else _IMAGES


def cache_tolerance(dtype: DType) -> float:
    """The accepted difference of a language model's logits of order 10, where keys and values of
    this dtype were rounded when they were stored: some roundings of such a number."""
    return max(_LANGUAGE, _ROUNDINGS * _LARGE * _ROUNDING.get(dtype, 0.0))
