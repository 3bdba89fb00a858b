"""Accepted differences of a model's results from torch's, by task."""

from __future__ import annotations

from gptrs import settings

_LANGUAGE, _IMAGES, _WINOGRAD = 1e-4, 1e-4, 1e-3


def tolerance(task: str) -> float:
    """The accepted difference of f32 results of order 10 with different orders of summation, for a
    model of the ``task``. Weights of f16 and bf16 are widened, so that the same holds for them.

    Winograd's convolutions round more (Lavin and Gray, arXiv:1509.09308).
    """
    if task == "causal_lm":
        return _LANGUAGE
    return _WINOGRAD if settings.winograd() else _IMAGES
