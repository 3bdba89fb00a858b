"""``ptir`` with every function and operator compiled: what the suite tests with ``--jit``.

A call is traced with the tensors among its arguments as inputs, and runs on the default backend.
Functions whose results are no tensors, or have shapes that depend on values, stay as they are.
"""

# Any function of the namespace is wrapped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from gptrs import ptir
from gptrs.tree import flatten, unflatten

AS_THEY_ARE = frozenset(
    {
        *("__array_namespace_info__", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype"),
        *("nonzero", "result_type", "unique_all", "unique_counts", "unique_inverse"),
        *("unique_values",),
    }
)
OPERATORS = (
    *("abs", "add", "and", "eq", "floordiv", "ge", "getitem", "gt", "invert", "le", "lshift"),
    *("lt", "matmul", "mod", "mul", "ne", "neg", "or", "pos", "pow", "radd", "rand"),
    *("rfloordiv", "rlshift", "rmatmul", "rmod", "rmul", "ror", "rpow", "rrshift", "rshift"),
    *("rsub", "rtruediv", "rxor", "sub", "truediv", "xor"),
)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, traced for each call with its tensors as inputs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        found = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, ptir.Tensor)}
        tensors = list(found.values())
        if any(tensor.is_traced for tensor in tensors):
            return function(*args, **kwargs)

        def body(*inputs: Any) -> Any:
            given = dict(zip(found, inputs, strict=True))
            parts = [given.get(i, leaf) for i, leaf in enumerate(leaves)]
            args, kwargs = cast("tuple[Any, Any]", unflatten(structure, parts))
            return function(*args, **kwargs)

        return ptir.jit(body)(*tensors)

    return call


def _is_mask(key: Any) -> bool:
    parts = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    return any(isinstance(part, ptir.Tensor) and part.dtype.is_bool for part in parts)


def _getitem(x: Any, key: Any) -> Any:
    """A part of ``x``; the shape of ``x[mask]`` depends on values, so that it runs eagerly."""
    return (_item if _is_mask(key) else _compiled_item)(x, key)


@functools.wraps(ptir.repeat)
def _repeat(x: Any, repeats: Any, **kwargs: Any) -> Any:
    """``ptir.repeat``; with counts as a tensor the extent depends on values: that runs eagerly."""
    counts = isinstance(repeats, ptir.Tensor)
    return (ptir.repeat if counts else compiled(ptir.repeat))(x, repeats, **kwargs)


def _compile_operators() -> None:
    for name in OPERATORS:
        method = f"__{name}__"
        wanted = _getitem if name == "getitem" else compiled(getattr(ptir.Tensor, method))
        setattr(ptir.Tensor, method, wanted)


def _compile_extension(extension: Any) -> Any:
    class Extension:
        def __getattr__(self, name: str) -> Any:
            return compiled(getattr(extension, name))

    return Extension()


_item: Any = ptir.Tensor.__getitem__
_compiled_item = compiled(_item)
_compile_operators()
_found: dict[str, Any] = {"repeat": _repeat}


def __getattr__(name: str) -> Any:
    """The function ``name`` compiled; what is no function as ``ptir`` has it."""
    if name not in _found:
        value = getattr(ptir, name)
        if name in ("fft", "linalg"):
            _found[name] = _compile_extension(value)
        elif name in AS_THEY_ARE or isinstance(value, type) or not callable(value):
            _found[name] = value
        else:
            _found[name] = compiled(value)
    return _found[name]
