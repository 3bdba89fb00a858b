"""Constants, ranges and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptrs.ir.dims import Dim
from gptrs.ir.tensor import Tensor
from gptrs.onnx.table import UnsupportedOperatorError, onnx, ptir
from gptrs.onnx.tensors import dtype_of, sizes_in


@onnx("Constant")
def constant(
    value: Any = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> Any:
    if value is not None:
        return value
    for given, dtype in (
        (value_float, np.float32),
        (value_floats, np.float32),
        (value_int, np.int64),
        (value_ints, np.int64),
    ):
        if given is not None:
            return np.array(given, dtype)
    raise UnsupportedOperatorError("a constant of strings or of a sparse tensor")


@onnx("ConstantOfShape", known=("shape",))
def constant_of_shape(shape: Any, value: Any = None) -> Tensor:
    fill = np.zeros(1, np.float32) if value is None else value
    return ptir.full(tuple(sizes_in(shape)), fill.reshape(-1)[0], dtype=fill.dtype)


@onnx("Range", known=("start", "limit", "delta"))
def range_(start: Any, limit: Any, delta: Any) -> Any:
    """From ``start`` in steps of ``delta`` to before ``limit``."""
    (first,), (stop,), (step,) = (sizes_in(v) for v in (start, limit, delta))
    if any(isinstance(n, Dim) for n in (first, stop, step)):
        return ptir.arange(first, stop, step, dtype=ptir.si64)
    count = max(int(np.ceil((stop - first) / step)), 0)
    return (np.arange(count) * step + first).astype(start.dtype)


@onnx("EyeLike")
def eye_like(x: Tensor, dtype: int | None = None, k: int = 0) -> Tensor:
    made = ptir.eye(x.shape[0], x.shape[1], k)
    return ptir.astype(made, x.dtype if dtype is None else dtype_of(dtype))


def _shaped(shape: Any, dtype: int, like: Tensor | None = None) -> Any:
    if like is not None:
        return tuple(like.shape), like.dtype if not dtype else dtype_of(dtype)
    return tuple(shape), dtype_of(dtype or 1)


@onnx("RandomUniform")
def random_uniform(
    shape: Any, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float = 0
) -> Tensor:
    sizes, wanted = _shaped(shape, dtype)
    return _uniform(sizes, wanted, low, high, seed)


@onnx("RandomUniformLike")
def random_uniform_like(
    x: Tensor, dtype: int = 0, high: float = 1.0, low: float = 0.0, seed: float = 0
) -> Tensor:
    sizes, wanted = _shaped(None, dtype, x)
    return _uniform(sizes, wanted, low, high, seed)


def _uniform(shape: Any, dtype: Any, low: float, high: float, seed: float) -> Tensor:
    key = ptir.asarray(np.uint32(int(seed)))
    made = ptir.rng_uniform(key, shape=shape, low=low, high=high)
    return ptir.astype(made, dtype)


@onnx("RandomNormal")
def random_normal(
    shape: Any, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float = 0
) -> Tensor:
    sizes, wanted = _shaped(shape, dtype)
    return _normal(sizes, wanted, mean, scale, seed)


@onnx("RandomNormalLike")
def random_normal_like(
    x: Tensor, dtype: int = 0, mean: float = 0.0, scale: float = 1.0, seed: float = 0
) -> Tensor:
    sizes, wanted = _shaped(None, dtype, x)
    return _normal(sizes, wanted, mean, scale, seed)


def _normal(shape: Any, dtype: Any, mean: float, scale: float, seed: float) -> Tensor:
    key = ptir.asarray(np.uint32(int(seed)))
    return ptir.astype(ptir.rng_normal(key, shape=shape) * scale + mean, dtype)


@onnx("Bernoulli")
def bernoulli(x: Tensor, dtype: int = 0, seed: float = 0) -> Tensor:
    """1 with the probability ``x``, else 0."""
    drawn = _uniform(x.shape, ptir.f32, 0.0, 1.0, seed)
    return ptir.astype(drawn < ptir.astype(x, ptir.f32), dtype_of(dtype) if dtype else x.dtype)
