"""Rows of the reductions and scans along axes."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gptrs.ir.types import DTYPES
from tests.cases.sample import COMPLEX, FLOATS, INTEGERS, ORDER, REAL, Case, Sample, sample
from tests.support.lazy_torch import torch, torch_op


def _axes(x: torch.Tensor, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple(a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes))


def _over_each(fn: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A reduction over several axes from torch's over one."""

    def call(x: torch.Tensor, *, axes: Any = None, keepdims: bool = False) -> torch.Tensor:
        normal = sorted(_axes(x, axes), reverse=True)
        for axis in normal:
            x = fn(x, dim=axis, keepdim=True)
        return x if keepdims else x.squeeze(tuple(normal))

    return call


def _sum(x: torch.Tensor, *, axes: Any = None, keepdims: bool = False, **_: Any) -> torch.Tensor:
    return x.sum(_axes(x, axes), keepdim=keepdims) if _axes(x, axes) else x


def _extreme(name: str, neutral: float) -> Callable[..., torch.Tensor]:
    def one(x: torch.Tensor, dim: int, keepdim: bool) -> torch.Tensor:
        if not x.shape[dim]:  # torch has no greatest of nothing
            return torch.full([*x.shape[:dim], 1, *x.shape[dim + 1 :]], neutral, dtype=x.dtype)
        return getattr(torch, name)(x, dim=dim, keepdim=keepdim)

    return _over_each(one)


def _reductions(values: str, dtype: str = "T", *, empty: bool = True) -> tuple[Sample, ...]:
    made = (
        sample(f"{dtype}[S,7] {values}"),
        sample(f"{dtype}[S,7] {values}", axes=-1),
        sample(f"{dtype}[S,7] {values}", axes=0, keepdims=True),
        sample(f"{dtype}[2,3,5] {values}", axes=(0, -1)),
        sample(f"{dtype}[2,3,1] {values}", axes=(-1, 1), keepdims=True),
        sample(f"{dtype}[17] {values}", axes=()),
        sample(f"{dtype}[] {values}"),
        sample(f"{dtype}[0,3] {values}", axes=1),
    )
    nothing = (sample(f"{dtype}[0,3] {values}", axes=0), sample(f"{dtype}[3,0] {values}"))
    return made + nothing if empty else made


def _positions(values: str) -> tuple[Sample, ...]:
    return (
        sample(f"T[S,7] {values}", axis=1),
        sample(f"T[7,S] {values}", axis=0, keepdims=True),
        sample(f"T[17] {values}", axis=-1),
        sample(f"T[0,3] {values}", axis=1),
        sample("T[40] 0..2", axis=0),
    )


def _position(name: str) -> Callable[..., torch.Tensor]:
    """torch says nothing of which of equals it finds: look for the first of them."""

    def call(x: torch.Tensor, *, axis: int, keepdims: bool = False) -> torch.Tensor:
        best = getattr(torch, name)(x, dim=axis, keepdim=True)
        hit = (x == best) | (x != x)
        order = torch.arange(x.shape[axis], 0, -1).reshape(
            [-1] + [1] * (x.ndim - 1 - axis % x.ndim)
        )
        return torch.argmax(hit * order, dim=axis, keepdim=keepdims)

    return call


def _dot(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    *,
    batch_lhs: Any = (),
    batch_rhs: Any = (),
    contract_lhs: Any,
    contract_rhs: Any,
    accum_dtype: str = "",
    out_dtype: str = "",
) -> torch.Tensor:
    letters = iter("abcdefghijklmnop")
    left = [next(letters) for _ in lhs.shape]
    right = [next(letters) for _ in rhs.shape]
    for i, j in zip(batch_lhs + contract_lhs, batch_rhs + contract_rhs, strict=True):
        right[j] = left[i]
    batch = [left[i] for i in batch_lhs]
    shared = [*batch, *(left[i] for i in contract_lhs)]
    rest = [n for n in left + right if n not in shared]
    wider = accum_dtype or out_dtype
    if wider and DTYPES[wider].is_float:
        lhs, rhs = (x.to(getattr(torch, DTYPES[wider].compute.numpy.name)) for x in (lhs, rhs))
    return torch.einsum(f"{''.join(left)},{''.join(right)}->{''.join(batch + rest)}", lhs, rhs)


_DOTS = (
    sample("T[S,7] {v}", "T[7,5] {v}", contract_lhs=(-1,), contract_rhs=(0,)),
    sample("T[17] {v}", "T[17] {v}", contract_lhs=(0,), contract_rhs=(0,)),
    sample("T[3] {v}", "T[S] {v}", contract_lhs=(), contract_rhs=()),
    sample(
        "T[2,S,5] {v}",
        "T[S,4,2] {v}",
        batch_lhs=(0,),
        batch_rhs=(-1,),
        contract_lhs=(1,),
        contract_rhs=(0,),
    ),
    sample("T[2,3,5] {v}", "T[3,4,2] {v}", contract_lhs=(0, 1), contract_rhs=(-1, 0)),
    sample("T[2,0] {v}", "T[0,3] {v}", contract_lhs=(1,), contract_rhs=(0,)),
    sample("T[0,2] {v}", "T[2,3] {v}", contract_lhs=(1,), contract_rhs=(0,)),
    sample("T[] {v}", "T[2] {v}", contract_lhs=(), contract_rhs=()),
)


def _dots(values: str, **attrs: str) -> tuple[Sample, ...]:
    return tuple(
        sample(*(o.replace(" {v}", f" {values}") for o in s.operands), **{**s.attrs, **attrs})
        for s in _DOTS
    )


_ALONG = tuple(
    sample(f"T[{shape}] any", axis=axis)
    for shape, axis in (("S,7", 1), ("7,S", 0), ("17", -1), ("0,3", 0), ("3,0", 1))
)

REDUCING = (
    Case("reduce_sum", _reductions("any"), _sum, (*INTEGERS, "ui64")),
    Case(
        "reduce_sum", _reductions("special"), _sum, (*FLOATS, *COMPLEX), 16, magnitude=8, why=ORDER
    ),
    Case(
        "reduce_sum",
        (
            sample("T[S,40]", axes=-1, accum_dtype="f32", out_dtype="T"),
            sample("T[S,40]", axes=0, out_dtype="f32"),
        ),
        _sum,
        ("bf16", "f16"),
        ulps=16,
        magnitude=8,
        why=ORDER,
    ),
    Case("reduce_sum", (sample("T[S,40] any", axes=1, accum_dtype="si64"),), _sum, ("si8", "ui4")),
    Case(
        "reduce_prod",
        _reductions("any"),
        _over_each(lambda x, dim, keepdim: x.prod(dim, keepdim)),
        (*INTEGERS, "ui64"),
    ),
    Case(
        "reduce_prod",
        _reductions("special"),
        _over_each(lambda x, dim, keepdim: x.prod(dim, keepdim)),
        ("f32", "f64", "bf16", "f16", "cf32"),
        ulps=32,
        magnitude=1,
        why="the product is taken in another order",
    ),
    Case("reduce_max", _reductions("any", empty=False), _extreme("amax", 0), INTEGERS),
    Case("reduce_max", _reductions("any"), _extreme("amax", -math.inf), FLOATS),
    Case("reduce_min", _reductions("any", empty=False), _extreme("amin", 0), INTEGERS),
    Case("reduce_min", _reductions("any"), _extreme("amin", math.inf), FLOATS),
    Case("reduce_any", _reductions("", "i1"), _over_each(torch_op("any"))),
    Case("reduce_all", _reductions("", "i1"), _over_each(torch_op("all"))),
    Case("argmax", _positions("any"), _position("amax"), REAL),
    Case("argmin", _positions("any"), _position("amin"), REAL),
    Case("cumsum", _ALONG, lambda x, *, axis: x.cumsum(axis), (*INTEGERS, "ui64")),
    Case("cumprod", _ALONG, lambda x, *, axis: x.cumprod(axis), (*INTEGERS, "ui64")),
    Case(
        "cumprod",
        tuple(
            sample(f"T[{shape}] special", axis=axis)
            for shape, axis in (("S,7", 1), ("7,S", 0), ("17", -1), ("0,3", 0))
        ),
        lambda x, *, axis: x.cumprod(axis),
        (*FLOATS, "cf32"),
        ulps=16,
        magnitude=1,
        why="torch multiplies in f64",
    ),
    Case("cummax", _ALONG, lambda x, *, axis: x.cummax(axis).values, REAL),
    Case("cummin", _ALONG, lambda x, *, axis: x.cummin(axis).values, REAL),
    Case(
        "cumsum",
        tuple(
            sample(f"T[{shape}] special", axis=axis)
            for shape, axis in (("S,7", 1), ("7,S", 0), ("17", -1), ("0,3", 0))
        ),
        lambda x, *, axis: x.cumsum(axis),
        (*FLOATS, "cf32"),
        ulps=16,
        magnitude=8,
        why="torch adds in f64",
    ),
    Case("dot_general", _dots("any"), _dot, (*INTEGERS, "ui64")),
    Case("dot_general", _dots(""), _dot, (*FLOATS, *COMPLEX), 32, magnitude=8, why=ORDER),
    Case("dot_general", _dots("", out_dtype="f32"), _dot, ("bf16",), 32, magnitude=8, why=ORDER),
    Case("dot_general", _dots("", accum_dtype="f64"), _dot, ("f32",), 32, magnitude=8, why=ORDER),
    Case("dot_general", _dots("any", accum_dtype="si32"), _dot, ("si8", "ui4")),
)
