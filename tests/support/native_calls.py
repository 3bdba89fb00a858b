"""What tests of native calls share."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs.ir.tensor import Tensor
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.threads import recent_cores

NEEDS_NATIVE_CALLS = pytest.mark.skipif(
    sys.implementation.name != "cpython"
    or any(sysconfig.get_config_var(name) for name in ("Py_DEBUG", "Py_GIL_DISABLED"))
    or current_driver().native() is None,
    reason="no native calls: another interpreter or driver",
)

X = np.arange(6, dtype=np.float32)
Y = np.ones((2, 3), np.float32)


@dataclass
class Pair:
    a: Any
    b: Any


class Named(NamedTuple):
    a: Any
    b: Any


def warm(function: Any, *args: Any, **kwargs: Any) -> None:
    """Call until a record is made, if there is one."""
    for _ in range(2):
        function(*args, **kwargs)


def is_native(function: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether a native call answers this call."""
    calls = function._calls
    recent_cores()  # else it may have been looked up too long ago
    return calls.native(calls.records, args, kwargs) is not NotImplemented


def as_lists(value: Any) -> Any:
    """A result with lists in place of Tensors, to be compared."""
    if isinstance(value, Tensor):
        return value.dtype.name, value.weak, value.numpy().tolist()
    if isinstance(value, dict):
        return {key: as_lists(child) for key, child in value.items()}
    if isinstance(value, Pair):
        return "Pair", as_lists(value.a), as_lists(value.b)
    if isinstance(value, list | tuple):
        return type(value), [*map(as_lists, value)]
    return value


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or its error."""
    try:
        return as_lists(function(*args, **kwargs))
    except Exception as error:
        return type(error), str(error).partition("\n")[0]
