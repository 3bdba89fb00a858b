"""What the calls of ``ptir.nn`` take, and how a call is written."""

# NumPy's arrays of any dtype have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X = normal(2, 4, 6)
L = normal(2, 4, 9)
IMAGES = normal(2, 4, 7, 9)
VOLUMES = normal(1, 2, 5, 6, 7)
P = RANDOM.random((2, 4, 6), np.float32)
CLASSES = RANDOM.integers(0, 4, (2, 6))
SOME = np.where(CLASSES == 1, -100, CLASSES)
SHARES = np.abs(normal(2, 4, 6))
C = np.abs(normal(4)) + 0.5
Q, K, V = normal(2, 4, 6, 8), normal(2, 4, 7, 8), normal(2, 4, 7, 5)
SEEN = RANDOM.random((6, 7)) < 0.5
SEEN[2] = False
GRID, GRID3 = normal(2, 5, 6, 2), normal(1, 3, 4, 2, 3)
SIGNS = np.where(RANDOM.random((2, 4, 6)) < 0.5, np.float32(-1), np.float32(1))
LABELS = (P < 0.5).astype(np.float32)
MANY_LABELS = np.array(
    [[3, 0, -1, 1, 2, 4], [-1, 0, 1, 2, 3, 4], [5, 4, 3, 2, 1, 0], [1, -1, 1, 1, 1, 1]]
)
LOG_P = np.log(RANDOM.dirichlet(np.ones(5), (9, 2))).astype(np.float32)
TARGETS, STEPS, ENDS_OF = np.array([[1, 1, 3, 2], [2, 4, 4, 1]]), np.array([9, 7]), np.array([4, 3])
PADDED = RANDOM.random((2, 7)) < 0.3
OFFSETS, ENDS = np.array([0, 2, 2, 5]), np.array([0, 2, 2, 6])


class Call(NamedTuple):
    """A call of one function: arrays are traced."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        shown: list[Any] = [list(a.shape) if isinstance(a, np.ndarray) else a for a in self.args]
        named: list[Any] = [
            name if isinstance(a, np.ndarray) else f"{name}={a}" for name, a in self.kwargs.items()
        ]
        return f"{self.name}({', '.join(map(str, [*shown, *named]))})"


def calls(names: str, *args: Any, **kwargs: Any) -> list[Call]:
    return [Call(name, args, kwargs) for name in names.split()]


def call_with(function: Any, call: Call, change: Any) -> Any:
    def changed(value: Any) -> Any:
        return change(value) if isinstance(value, np.ndarray) else value

    return function(
        *map(changed, call.args), **{name: changed(value) for name, value in call.kwargs.items()}
    )
