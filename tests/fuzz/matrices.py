"""Strategies for operands and attributes of linear algebra and Fourier transforms.

Backends call one library on the same elements, so that the bits are equal; of operands that are not
exact nothing is known.
"""

from __future__ import annotations

from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.ops import linalg
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Type
from tests.fuzz.builder import Builder
from tests.fuzz.elementary import Draw

_FLAGS = {
    "cholesky": "upper",
    "eigh": "lower",
    "eigvalsh": "lower",
    "qr": "complete",
    "svd": "full_matrices",
}
_RECTANGULAR = ("qr", "svd", "svdvals")
_NUMBERS = ("f64", "cf64")  # kernels compute f32 in f32, NumPy in f64


def _of_matrices(name: str) -> Draw:
    def draw(b: Builder) -> Any:
        rows = b.extent()
        columns = b.extent() if name in _RECTANGULAR else rows
        x = b.of(Type((*b.shape(0, 1), rows, columns), DTYPES[b.pick(_NUMBERS)]))
        attrs = {_FLAGS[name]: b.chance(2)} if name in _FLAGS else {}
        return OPS[name](x, **attrs)

    return draw


def _solve(b: Builder) -> Tensor:
    a = b.of(Type((*b.shape(0, 1), *[b.extent()] * 2), DTYPES[b.pick(_NUMBERS)]))
    return OPS["solve"](a, b.of(a.type.with_shape((*a.shape[:-1], b.extent()))))


def _transform(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        dtype = _NUMBERS[name != "fft_r2c"]
        x = b.of(Type(b.shape(1, 3), DTYPES[dtype]))
        axis = b.integer(-x.ndim, x.ndim - 1)
        n = x.shape[axis] if b.chance(2) else b.integer(1, 12)
        inverse = {"inverse": b.chance(2)} if name == "fft_c2c" else {}
        norm = b.pick(("backward", "ortho", "forward"))
        return OPS[name](x, n=n, axis=axis, norm=norm, **inverse)

    return draw


MATRICES: dict[str, Draw] = {
    **{name: _of_matrices(name) for name in linalg.__all__ if name != "solve"},
    **{name: _transform(name) for name in ("fft_c2c", "fft_r2c", "fft_c2r")},
    "solve": _solve,
}
