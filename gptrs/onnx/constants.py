"""Nodes whose operands are known: what they compute while a graph is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from gptrs.ir.dispatch import interpreter
from gptrs.ir.types import Array
from gptrs.onnx.tensors import dtype_of, has_symbols, several
from gptrs.onnx.values import Value

MOST_FOLDED = 4096
"""Known results of a traced program that have more elements are computed in it."""
RANDOM = ("Random", "Bernoulli", "Multinomial")
"""How the names of operators begin that draw numbers in each call."""


def _gathered(x: Array, indices: Array, axis: int = 0) -> Any:
    return np.take(x, indices.astype(np.intp), axis)


def _product(x: Array, axes: Any = None, keepdims: int = 1) -> Any:
    return np.prod(x, keepdims=bool(keepdims))


def _sliced(x: Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    step = 1 if steps is None else int(steps[0])
    return x[int(starts[0]) : min(int(ends[0]), len(x)) : step]


def _joined(*parts: Array, axis: int) -> Any:
    return np.concatenate(parts, axis)


def _unsqueezed(x: Array, axes: Any) -> Any:
    return np.expand_dims(x, tuple(int(a) for a in axes))


def _same(x: Array) -> Array:
    return x


def _cast(x: Array, to: int, **attributes: Any) -> Array | None:
    """As integers; as something else in the program."""
    return x if dtype_of(to).is_integer else None


def _squeezed(x: Array, axes: Any = None) -> Any:
    return np.squeeze(x)


def _reshaped(x: Array, shape: Array, allowzero: int = 0) -> Any:
    return x.reshape(tuple(int(n) for n in shape))


_OF_SYMBOLS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Cast": _cast,
    "Concat": _joined,
    "Div": np.floor_divide,
    "Gather": _gathered,
    "Identity": _same,
    "Mul": np.multiply,
    "Neg": np.negative,
    "ReduceProd": _product,
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Sub": np.subtract,
    "Unsqueeze": _unsqueezed,
}
"""Operators on sizes among which there are symbols."""


def folded(
    node: NodeProto,
    operands: Sequence[Value | None],
    attributes: Mapping[str, Any],
    run: Callable[[], Any],
) -> Any:
    """The result of a node of known operands; None where it is computed in the program."""
    if node.op_type == "Constant":
        return run()
    if node.op_type.startswith(RANDOM):
        return None
    contents: list[Array] = []
    for value in operands:
        if value is not None:
            known = value.known
            if known is None:
                return None
            contents.append(known)
    if sum(c.size for c in contents) > MOST_FOLDED:
        return None
    if any(has_symbols(c) for c in contents):
        is_whole = all(c.dtype.kind in "Oi" for c in contents) and len(contents) == len(operands)
        function = _OF_SYMBOLS.get(node.op_type) if is_whole else None
        return None if function is None else function(*contents, **attributes)
    with interpreter(None):
        made = run()
    arrays: tuple[Array, ...] = tuple(np.asarray(r) for r in several(made))
    return arrays if all(a.size <= MOST_FOLDED for a in arrays) else None
