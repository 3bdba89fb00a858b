"""A softmax to override, and which implementation was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from gptrs import ptir

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((6, 300)).astype(np.float32) * 3
ENVIRONMENT = "GPTRS_OVERRIDES"


def softmax_function(**options: Any) -> Any:
    def f(x: Any) -> Any:
        return ptir.softmax(x)

    return ptir.jit(**options)(f)


def chosen(function: Any, *args: Any) -> tuple[str, ...]:
    return function.explain(*args).choices
