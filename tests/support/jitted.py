"""Arrays, containers and a function for tests of jitted functions."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gptrs.ir.tensor import Tensor

F32 = NDArray[np.float32]


def array(*shape: int, start: float = 0.0) -> F32:
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + start).astype(np.float32)


def equal(found: Any, expected: Any) -> None:
    assert isinstance(found, Tensor)
    np.testing.assert_array_equal(found.numpy(), np.asarray(expected, np.float32))


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Box:
    left: Any
    right: Any
    factor: float = 2.0
    name: str = "box"


X = array(3)


def plus(x: Any, y: Any, *, times: Any = 1.0) -> Any:
    return (x + y) * times


class Mode(Enum):
    ADD = "add"
    SUB = "sub"
