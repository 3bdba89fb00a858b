"""Operands of the functions of ``ptir.random``: keys, dtypes, parameters and the result's shape."""

from __future__ import annotations

from typing import Any

from gptrs.errors import ArgumentError, DTypeError, ShapeError
from gptrs.ir.dims import Shape, same
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DType, as_dtype, broadcast_shapes, f64, shape_text, ui64
from gptrs.numpy_api.creation import Extents, shape_of
from gptrs.numpy_api.function import as_tensor, public

random_function = public(namespace="random")
"""The decorator of the functions of ``ptir.random``."""


def as_key(key: Any) -> Tensor:
    """``key`` as a Tensor. Raises `DTypeError` and `ShapeError` unless it is a ui64 of rank 0."""
    if isinstance(key, int):
        raise DTypeError(f"key is {key}, expected a key", fix=f"ptir.random.key({key})")
    found = as_tensor(key)
    if found.dtype is not ui64:
        raise DTypeError(f"key has type {found.type}, expected ui64[]", fix="ptir.random.key(seed)")
    if found.ndim:
        raise ShapeError(
            f"key has type {found.type}, expected one of rank 0",
            fix="ptir.vmap of the function, for keys of ptir.random.split",
        )
    return found


def float_dtype(dtype: object) -> DType:
    """``dtype``, which has to be a float."""
    found = as_dtype(dtype)
    if not found.is_float:
        raise DTypeError(f"dtype is {found}, expected a float", fix="dtype='f32'")
    return found


def integer_dtype(dtype: object) -> DType:
    """``dtype``, which has to be an integer."""
    found = as_dtype(dtype)
    if not found.is_integer:
        raise DTypeError(f"dtype is {found}, expected an integer", fix="dtype='si64'")
    return found


def real(name: str, value: Any) -> Tensor:
    """A parameter in f64, the dtype of the arithmetic. Raises `DTypeError` for complex ones."""
    found = as_tensor(value)
    if found.dtype.is_complex:
        raise DTypeError(f"{name} has type {found.type}, expected real numbers")
    return found.astype(f64)


def common_shape(shape: Extents | None, **parameters: Tensor) -> Shape:
    """The shape of the result: ``shape``, or without it what the parameters broadcast to."""
    if shape is None:
        return broadcast_shapes(*(x.shape for x in parameters.values()))
    given = shape_of(shape)
    for name, x in parameters.items():
        if x.ndim and not (x.ndim <= len(given) and _broadcasts(x.shape, given)):
            raise ShapeError(
                f"{name} has shape {shape_text(x.shape)}, which does not broadcast to"
                f" {shape_text(given)}",
                fix=f"give no shape, or one that ends in {shape_text(x.shape)}",
            )
    return given


def _broadcasts(shape: Shape, target: Shape) -> bool:
    ends = target[len(target) - len(shape) :]
    return all(same(n, 1) or same(n, m) for n, m in zip(shape, ends, strict=True))


def check_positive(**numbers: Any) -> None:
    """Raise `ArgumentError` for a Python number that is not above 0."""
    for name, number in numbers.items():
        if isinstance(number, int | float) and not number > 0:
            raise ArgumentError(f"{name} is {number}, expected a positive number")


def uniform64(key: Tensor, shape: Shape) -> Tensor:
    """Numbers of [0, 1) in f64."""
    return OPS["rng_uniform"](key, shape=shape, dtype=f64)


def open64(key: Tensor, shape: Shape) -> Tensor:
    """Numbers of (0, 1) in f64: at least 2⁻⁵⁴."""
    return OPS["rng_uniform"](key, shape=shape, dtype=f64, low=2.0**-54)


def normal64(key: Tensor, shape: Shape) -> Tensor:
    """Numbers of the normal distribution in f64."""
    return OPS["rng_normal"](key, shape=shape, dtype=f64)
