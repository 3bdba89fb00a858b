"""Rows of sort, top_k, searchsorted and segment reductions."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from gptrs.ir.types import DTYPES
from tests.cases.sample import INTEGERS, ORDER, REAL, Case, Sample, sample
from tests.support.lazy_torch import torch

Pair: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"


def _sort(x: torch.Tensor, *, axis: int = -1, descending: bool = False) -> Pair:
    values, order = torch.sort(x, dim=axis, descending=descending, stable=True)
    return values, order


def _top_k(x: torch.Tensor, *, k: int, axis: int = -1, largest: bool = True) -> Pair:
    """torch says nothing of which of equals comes first: the positions are those of its sort."""
    values, _ = torch.topk(x, k, dim=axis, largest=largest)
    _, order = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values, order.narrow(axis, 0, k)


def _searchsorted(rows: torch.Tensor, values: torch.Tensor, *, right: bool = False) -> torch.Tensor:
    """By counting, as torch's function does not sort NaN as its sort does."""
    a, b = rows[..., None, :], values[..., :, None]
    nan, other = a != a, b != b
    before = (a < b) | (~nan & other)
    return (before | (a == b) | (nan & other) if right else before).sum(-1)


def _segments(dtype: str) -> Callable[..., torch.Tensor]:
    """torch's scatter into segments that are empty at first."""
    low, high = DTYPES[dtype].limits if DTYPES[dtype].is_integer else (-math.inf, math.inf)
    empty = {"add": 0, "mul": 1, "max": low, "min": high, "mean": math.nan}
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin", "mean": "mean"}

    def call(
        x: torch.Tensor, segments: torch.Tensor, *, count: int, reduce: str = "add"
    ) -> torch.Tensor:
        result = torch.full((count, *x.shape[1:]), empty[reduce], dtype=x.dtype)
        index = segments.reshape([-1] + [1] * (x.ndim - 1)).expand(x.shape)
        return torch.scatter_reduce(result, 0, index, x, names[reduce], include_self=False)

    return call


def _segment_samples(*reductions: str, values: str) -> tuple[Sample, ...]:
    return tuple(
        made
        for reduce in reductions
        for made in (
            sample(f"T[9,2] {values}", "si64[9] 0..3", count=6, reduce=reduce),
            sample(f"T[S,2,3] {values}", "si32[S] 0..2", count=3, reduce=reduce),
            sample(f"T[17] {values}", "ui8[17] 0..1", count=2, reduce=reduce),
            sample(f"T[4] {values}", "si4[4] 0..0", count=20, reduce=reduce),
            sample(f"T[0,3] {values}", "si64[0]", count=2, reduce=reduce),
            sample(f"T[3,0] {values}", "ui64[3] 0..1", count=2, reduce=reduce),
        )
    )


_NOTHING = (sample("T[0,3]", "si64[0]", count=0), sample("T[0]", "si64[0]", count=0, reduce="max"))

SORTING = (
    Case(
        "sort",
        (
            sample("T[S,7] any"),
            sample("T[7,S] any", axis=0),
            sample("T[2,3,9] any", axis=1, descending=True),
            sample("T[300] 0..3", descending=True),
            sample("T[300] 0..3", axis=0),
            sample("T[3,1] any"),
            sample("T[2,0] any", axis=-1),
            sample("T[0,3] any", axis=1, descending=True),
        ),
        _sort,
        (*REAL, "i1"),
    ),
    Case(
        "top_k",
        (
            sample("T[S,7] any", k=3),
            sample("T[7,S] any", k=1, axis=0, largest=False),
            sample("T[2,9,3] any", k=9, axis=1),
            sample("T[300] 0..3", k=100),
            sample("T[300] 0..3", k=100, largest=False),
            sample("T[3] any", k=0),
            sample("T[2,0] any", k=0, axis=-1),
            sample("T[0,3] any", k=2, axis=1),
        ),
        _top_k,
        REAL,
    ),
    Case(
        "searchsorted",
        (
            sample("T[S] sorted any", "T[9] any"),
            sample("T[S] sorted any", "T[S] any", right=True),
            sample("T[300] sorted 0..3", "T[1000] 0..5", right=True),
            sample("T[300] sorted 0..3", "T[1000] 0..5"),
            sample("T[2,3,S] sorted any", "T[2,3,5] any"),
            sample("T[S,1] sorted any", "T[S,2] any", right=True),
            sample("T[0]", "T[3]"),
            sample("T[3] sorted any", "T[0]"),
            sample("T[0,3]", "T[0,2]"),
        ),
        _searchsorted,
        (*REAL, "i1"),
    ),
    *(
        Case(
            "segment_reduce",
            (*_segment_samples("max", "min", values="any"), *_NOTHING),
            _segments(dtype),
            (dtype,),
        )
        for dtype in REAL
    ),
    *(
        Case(
            "segment_reduce",
            (*_segment_samples("add", "mul", values="any"), *_NOTHING),
            _segments(dtype),
            (dtype,),
        )
        for dtype in INTEGERS
    ),
    Case(
        "segment_reduce",
        (
            *_segment_samples("add", "mul", "mean", values="nonzero"),
            *_segment_samples("add", "mul", "mean", values="special"),
        ),
        _segments("f32"),
        ("f32", "f16", "bf16", "f64", "fp8_e5m2"),
        ulps=4,
        magnitude=20,
        why=ORDER,
    ),
)
