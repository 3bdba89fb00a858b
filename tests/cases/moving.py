"""Rows of the ops that create, move, select and scatter elements."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.cases.sample import Case, S, sample
from tests.support.lazy_torch import torch

ANY = ("f32", "bf16", "fp8_e4m3", "f64", "i1", "si4", "ui8", "si64", "cf32")
INDICES = ("si32", "ui8", "si64", "ui64", "si4")
CONSTANTS = (
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array([math.nan, -0.0, math.inf], np.float16),
    np.zeros((0, 2), np.int8),
    np.array(True),
    np.random.default_rng(0).normal(size=(17, 7)),
)


def _iota(*, shape: tuple[int, ...], axis: int = 0, dtype: str = "") -> torch.Tensor:
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return torch.arange(shape[axis]).reshape(along).expand(shape)


def _slice(x: torch.Tensor, *, starts: Any, sizes: Any, strides: Any = None) -> torch.Tensor:
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        step = strides[axis] if strides else 1
        x = x.index_select(axis, torch.arange(size) * step + start)
    return x


def _pad(
    x: torch.Tensor, *, low: Any, high: Any, interior: Any = None, value: float = 0
) -> torch.Tensor:
    between = interior or (0,) * x.ndim
    spans = list(zip(x.shape, low, high, between, strict=True))
    padded = torch.full([lo + n + max(n - 1, 0) * g + hi for n, lo, hi, g in spans], value)
    padded = padded.to(x.dtype)
    for position in np.ndindex(*x.shape):
        at = tuple(lo + i * (g + 1) for i, (_, lo, _, g) in zip(position, spans, strict=True))
        padded[at] = x[position]
    return padded


def _box(x: torch.Tensor, start: Any, sizes: Any) -> tuple[slice, ...]:
    firsts = [min(max(int(s), 0), n - m) for s, n, m in zip(start, x.shape, sizes, strict=True)]
    return tuple(slice(a, a + m) for a, m in zip(firsts, sizes, strict=True))


def _update(x: torch.Tensor, update: torch.Tensor, start: Any) -> torch.Tensor:
    result = x.clone()
    result[_box(x, start, update.shape)] = update
    return result


def _scatter(
    x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, *, axis: int, reduce: str
) -> torch.Tensor:
    if reduce == "replace":
        return torch.scatter(x, axis, index, source)
    name = {"add": "sum", "max": "amax", "min": "amin"}[reduce]
    return torch.scatter_reduce(x, axis, index, source, name)


LITERAL = (
    Case(
        "constant",
        tuple(sample(value=value) for value in CONSTANTS),
        lambda *, value: torch.from_numpy(value),
        fixed="there is no operand",
    ),
    Case(
        "full",
        tuple(sample(shape=shape, value=1, dtype="T") for shape in ((2, 3), (), (0, 4))),
        lambda *, shape, value, dtype: torch.full(shape, value),
        ("f32", "bf16", "fp8_e4m3", "si4", "ui64", "cf32"),
        fixed="there is no operand",
    ),
    Case(
        "full",
        (sample(shape=(3,), value=-math.inf, dtype="T"), sample(shape=(2,), value=0.1, dtype="T")),
        lambda *, shape, value, dtype: torch.full(shape, value, dtype=torch.float64),
        ("f64", "f32", "fp8_e5m2"),
        fixed="there is no operand",
    ),
    Case(
        "full",
        (sample(shape=(2, 1), value=True, dtype="i1"),),
        lambda *, shape, value, dtype: torch.full(shape, value),
        fixed="there is no operand",
    ),
    Case(
        "iota",
        (
            sample(shape=(5,), dtype="T"),
            sample(shape=(2, 3, 4), dtype="T", axis=-1),
            sample(shape=(2, 3, 1), axis=1, dtype="T"),
            sample(shape=(0, 3), axis=1, dtype="T"),
            sample(shape=(3, 0), axis=1),
        ),
        _iota,
        ("f32", "bf16", "si32", "si64", "ui8", "si4"),
        fixed="there is no operand",
    ),
)

SHAPE = (
    Case(
        "reshape",
        (
            sample("T[S,4] any", shape=(-1, 2)),
            sample("T[S,4] any", shape=(S * 4,)),
            sample("T[2,3,4] any", shape=(6, -1)),
            sample("T[] any", shape=(1, 1)),
            sample("T[1,1] any", shape=()),
            sample("T[0,3] any", shape=(3, 0, 7)),
            sample("T[0,3] any", shape=(-1, 3)),
        ),
        lambda x, *, shape: x.reshape(shape),
        ANY,
    ),
    Case(
        "transpose",
        (
            sample("T[S,4] any", perm=(1, 0)),
            sample("T[2,S,5,1] any", perm=(-1, 1, 0, 2)),
            sample("T[] any", perm=()),
            sample("T[0,3] any", perm=(1, 0)),
        ),
        lambda x, *, perm: x.permute(perm),
        ANY,
    ),
    Case(
        "broadcast_to",
        (
            sample("T[S,1] any", shape=(2, S, 7)),
            sample("T[] any", shape=(3, 1)),
            sample("T[] any", shape=()),
            sample("T[1] any", shape=(0,)),
            sample("T[7] any", shape=(17, 7)),
        ),
        lambda x, *, shape: torch.broadcast_to(x, shape),
        ANY,
    ),
    Case(
        "slice",
        (
            sample("T[S,7] any", starts=(0, 1), sizes=(S, 3), strides=(1, 2)),
            sample("T[S,7] any", starts=(S - 1, 6), sizes=(1, 1)),
            sample("T[17] any", starts=(16,), sizes=(1,), strides=(5,)),
            sample("T[17] any", starts=(1,), sizes=(4,), strides=(5,)),
            sample("T[S,9] any", starts=(S - 1, 7), sizes=(S, 3), strides=(-1, -3)),
            sample("T[4,17] any", starts=(0, 16), sizes=(4, 17), strides=(1, -1)),
            sample("T[5] any", starts=(0,), sizes=(0,), strides=(2,)),
            sample("T[5] any", starts=(4,), sizes=(0,), strides=(-1,)),
            sample("T[5] any", starts=(5,), sizes=(0,)),
            sample("T[] any", starts=(), sizes=()),
            sample("T[0,3] any", starts=(0, 1), sizes=(0, 2)),
        ),
        _slice,
        ANY,
    ),
    Case(
        "concat",
        (
            sample(("T[S,2] any", "T[4,2] any", "T[S,2] any"), axis=0),
            sample(("T[S,2] any", "T[S,1] any"), axis=-1),
            sample(("T[S] any",)),
            sample(("T[0,3] any", "T[2,3] any", "T[0,3] any")),
            sample(("T[2,S,3] any", "T[2,1,3] any", "T[2,0,3] any", "T[2,4,3] any"), axis=1),
            sample(("T[3,17] any", "T[3,1] any", "T[3,40] any"), axis=1),
        ),
        lambda xs, *, axis=0: torch.cat(xs, axis),
        ANY,
    ),
    Case(
        "pad",
        (
            sample("T[S,2] any", low=(1, 0), high=(0, 2)),
            sample("T[S,2] any", low=(0, 1), high=(2, 0), interior=(2, 1), value=1),
            sample("T[] any", low=(), high=()),
            sample("T[0,3] any", low=(2, 0), high=(1, 1), interior=(3, 1)),
            sample("T[1] any", low=(0,), high=(0,), interior=(5,)),
            sample("T[2,S,3,5] any", low=(0, 2, 1, 0), high=(1, 0, 1, 2), value=2),
        ),
        _pad,
        tuple(dtype for dtype in ANY if dtype != "i1"),
    ),
    Case("pad", (sample("i1[S,2]", low=(1, 0), high=(0, 2), value=True),), _pad),
    Case(
        "pad",
        (sample("T[S,2]", low=(1, 0), high=(0, 2), value=-math.inf),),
        _pad,
        ("f32", "bf16", "fp8_e5m2"),
    ),
    Case(
        "tile",
        (
            sample("T[S,2] any", reps=(2, 3)),
            sample("T[3] any", reps=(0,)),
            sample("T[] any", reps=()),
            sample("T[0,2] any", reps=(4, 1)),
            sample("T[2,S,3] any", reps=(1, 3, 2)),
        ),
        lambda x, *, reps: x.repeat(reps),
        ANY,
    ),
)

INDEX = (
    Case(
        "take",
        (
            sample("f32[S,3]", "T[2,4] 0..0"),
            sample("bf16[7]", "T[S] 0..6"),
            sample("i1[7,2]", "T[] 0..6"),
            sample("f32[7,0]", "T[3] 0..6"),
            sample("f32[0,2]", "T[0] 0..0"),
        ),
        lambda x, index: x[index],
        INDICES,
    ),
    Case(
        "gather",
        (
            sample("f32[S,7]", "T[S,4] 0..6", axis=1),
            sample("f32[5,S]", "T[2,S] 0..4", axis=-2),
            sample("si8[6] any", "T[9] 0..5", axis=0),
            sample("cf32[5,3]", "T[0,2] 0..4", axis=0),
            sample("f32[0,3]", "T[0,3] 0..0", axis=0),
        ),
        lambda x, index, *, axis: torch.gather(x, axis, index),
        INDICES,
    ),
    Case(
        "scatter_add",
        (
            sample("f32[S,7]", "T[S,4] 0..6", "f32[S,4]", axis=1),
            sample("si8[7] any", "T[17] 0..6", "si8[19] any", axis=-1),
            sample("bf16[5,3]", "T[2,2] 0..4", "bf16[2,3]", axis=0),
            sample("f64[4]", "T[0] 0..0", "f64[0]", axis=0),
        ),
        lambda x, index, source, *, axis: torch.scatter_add(x, axis, index, source),
        INDICES,
        ulps=4,
        magnitude=4,
        why="torch adds in another order where an index occurs twice",
    ),
    Case(
        "scatter_reduce",
        (
            *(
                sample("f32[S,7] special", "T[S,4] 0..6", "f32[S,4] special", axis=1, reduce=reduce)
                for reduce in ("max", "min")
            ),
            *(
                sample("si16[7] any", "T[17] 0..6", "si16[17] any", axis=0, reduce=reduce)
                for reduce in ("add", "max", "min")
            ),
            sample("bf16[4,3]", "T[2,0] 0..2", "bf16[2,3]", axis=-1, reduce="max"),
        ),
        _scatter,
        INDICES,
    ),
    Case(
        "scatter_reduce",
        # Each index once: torch does not say which source stays.
        (sample("T[S,1] any", "si64[S,1] 0..0", "T[S,1] any", axis=1, reduce="replace"),),
        _scatter,
        ANY,
    ),
)

DYNAMIC = (
    Case(
        "dynamic_slice",
        (
            sample("f32[S,7]", ("T[] 0..7", 2), sizes=(1, 3)),
            sample("f32[S,7]", (0, "T[] 4..7"), sizes=(S, 5)),
            sample("bf16[17]", ("T[] 0..7",), sizes=(4,)),
            sample("f32[5]", (-3,), sizes=(2,)),
            sample("i1[]", (), sizes=()),
            sample("f32[0,3]", (1, "T[] 0..7"), sizes=(0, 2)),
        ),
        lambda x, start, *, sizes: x[_box(x, start, sizes)],
        INDICES,
    ),
    Case(
        "dynamic_update_slice",
        (
            sample("f32[S,7]", "f32[1,3]", ("T[] 0..7", 2)),
            sample("f32[S,7]", "f32[S,2]", (0, "T[] 4..7")),
            sample("bf16[17]", "bf16[4]", ("T[] 0..7",)),
            sample("si64[]", "si64[]", ()),
            sample("f32[3,2]", "f32[0,1]", (1, 7)),
        ),
        _update,
        INDICES,
    ),
)

MOVING = (*LITERAL, *SHAPE, *INDEX, *DYNAMIC)
