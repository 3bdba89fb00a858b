"""Rows of the composites."""

# torch's functions are only partly typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gptrs.ptir import ops as ptir
from tests.cases.programs import record
from tests.cases.sample import FLOATS, LIBM, ORDER, Case, Sample, sample
from tests.support.lazy_torch import F, torch, torch_op

HALVES = ("f32", "f64", "f16", "bf16")
SCALE = "differences in the scores are carried through exp and the second product"


def _activation(op: str, fn: Callable[..., torch.Tensor]) -> Case:
    shapes = ("S,7", "17", "", "0,3")
    samples = tuple(sample(f"T[{shape}] special") for shape in shapes)
    return Case(op, samples, fn, FLOATS, ulps=16, magnitude=1, why=LIBM)


def _gelu(x: torch.Tensor) -> torch.Tensor:
    # In f32 with AVX-512, torch 2.13 gives NaN for ∞ and ∞ for 3e38.
    return F.gelu(x.double()).to(x.dtype)


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def _along(*values: str) -> tuple[Sample, ...]:
    return tuple(
        made
        for v in values
        for made in (
            sample(f"T[S,7] {v}"),
            sample(f"T[7,S] {v}", axis=0),
            sample(f"T[2,S,5] {v}", axis=-2),
            sample(f"T[17] {v}"),
            sample(f"T[1,1] {v}", axis=0),
            sample(f"T[0,3] {v}"),
            sample(f"T[3,0] {v}"),
        )
    )


def _moments(**attrs: Any) -> tuple[Sample, ...]:
    return (
        sample("T[S,7]", **attrs),
        sample("T[S,7]", axes=-1, **attrs),
        sample("T[S,7] special", axes=(0,), keepdims=True, **attrs),
        sample("T[2,3,5]", axes=(0, -1), **attrs),
        sample("T[0,3]", axes=1, keepdims=True, **attrs),
    )


def _mean(x: torch.Tensor, *, axes: Any = None, keepdims: bool = False) -> torch.Tensor:
    return torch.mean(x, tuple(range(x.ndim)) if axes is None else axes, keepdim=keepdims)


def _var(
    x: torch.Tensor, *, axes: Any = None, keepdims: bool = False, correction: int = 0
) -> torch.Tensor:
    if not x.numel():
        return _mean(x, axes=axes, keepdims=keepdims)  # NaN, without torch's warning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a correction of n or more
        return torch.var(x, axes, correction=correction, keepdim=keepdims)


def _layer_norm(
    x: torch.Tensor, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _linear(
    x: torch.Tensor, weight: torch.Tensor, bias: Any = None, *, transposed: bool = False
) -> torch.Tensor:
    return F.linear(x, weight.T if transposed else weight, bias)


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_start: torch.Tensor | None = None,
    kv_len: torch.Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    softcap: float | None = None,
) -> torch.Tensor:
    """torch's attention with the mask spelled out; a row that sees nothing gives 0."""
    batch, heads, queries, _ = q.shape
    keys = k.shape[2]
    k, v = (x.repeat_interleave(heads // k.shape[1], 1) for x in (k, v))
    zero = torch.zeros(batch, dtype=torch.int64)
    start = (zero if kv_start is None else kv_start)[:, None, None, None]
    end = (zero + keys if kv_len is None else kv_len)[:, None, None, None]
    key = torch.arange(keys)
    query = torch.arange(queries)[:, None] + end - queries
    mask = (key >= start) & (key < end) & (query == query)
    if causal:
        mask = mask & (key <= query)
    if window is not None:
        mask = mask & (key > query - window)
    if softcap is None:
        result = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    else:
        scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        capped = torch.tanh(scores / softcap) * softcap
        weights = torch.where(mask, capped, -torch.inf).softmax(-1)
        result = weights.nan_to_num(0.0) @ v
    return torch.where(mask.any(-1, keepdim=True), result, 0)


def _heads(
    batch: int | str, heads: int, queries: int | str, groups: int, keys: int | str, depth: int = 8
) -> tuple[str, str, str]:
    return (
        f"T[{batch},{heads},{queries},{depth}]",
        f"T[{batch},{groups},{keys},{depth}]",
        f"T[{batch},{groups},{keys},5]",
    )


NORMS = (
    Case("mean", _moments(), _mean, HALVES, 16, magnitude=1, why=ORDER),
    Case("var", _moments(), _var, HALVES, 64, magnitude=4, why=ORDER),
    Case("var", _moments(correction=1)[:4], _var, ("f32",), 64, magnitude=4, why=ORDER),
    Case("var", _moments(correction=4)[:4], _var, ("f32",), 64, magnitude=4, why=ORDER),
    Case(
        "softmax",
        _along("", "special"),
        lambda x, *, axis=-1: torch.softmax(x, axis),
        FLOATS,
        16,
        magnitude=1,
        why=LIBM,
    ),
    Case(
        "log_softmax",
        _along("", "special"),
        lambda x, *, axis=-1: torch.log_softmax(x, axis),
        FLOATS,
        16,
        magnitude=4,
        why=LIBM,
    ),
    Case(
        "layer_norm",
        (
            sample("T[S,7]"),
            sample("T[2,S,16]", "T[16]", "T[16]", eps=1e-3),
            sample("T[S,17]", None, "T[17]"),
            sample("T[17]", "T[17]"),
            sample("T[0,3]", "T[3]"),
        ),
        _layer_norm,
        HALVES,
        64,
        magnitude=4,
        why=ORDER,
    ),
)

PRODUCTS = (
    Case(
        "matmul",
        (
            sample("T[S,4]", "T[4,5]"),
            sample("T[4]", "T[4]"),
            sample("T[4]", "T[4,7]"),
            sample("T[S,4]", "T[4]"),
            sample("T[2,S,4]", "T[4,5]"),
            sample("T[4]", "T[2,4,5]"),
            sample("T[2,1,S,4]", "T[5,4,2]"),
            sample("T[S,3,4]", "T[S,4,1]"),
            sample("T[0,4]", "T[4,3]"),
            sample("T[2,3,0]", "T[2,0,4]"),
        ),
        torch_op("matmul"),
        (*HALVES, "fp8_e4m3", "si8", "si64", "cf32"),
        64,
        magnitude=8,
        why=ORDER,
    ),
    Case(
        "linear",
        (
            sample("T[S,4]", "T[5,4]", "T[5]"),
            sample("T[2,S,4]", "T[5,4]"),
            sample("T[17]", "T[17,1]", "T[1]", transposed=True),
            sample("T[0,4]", "T[3,4]", "T[3]"),
        ),
        _linear,
        (*HALVES, "fp8_e5m2"),
        64,
        magnitude=8,
        why=ORDER,
    ),
    Case(
        "embedding",
        (
            sample("T[S,7]", "si64[2,3] 0..0"),
            sample("T[17,3]", "si32[S] 0..16"),
            sample("T[17,1]", "ui8[] 0..16"),
            sample("T[5,2]", "si64[0,3] 0..4"),
        ),
        lambda weight, ids: F.embedding(ids, weight),
        (*HALVES, "si8"),
    ),
)

_LENGTHS = ("si32[2] 0..4", "si32[2] 5..9")

ATTENTION = Case(
    "attention",
    (
        sample(*_heads("S", 2, 3, 2, 7)),
        sample(*_heads(2, 4, "S", 2, 9), causal=True),
        sample(*_heads(2, 4, "S", 1, 9), scale=0.1),
        sample(*_heads(1, 6, 1, 3, "S"), causal=True),
        sample(*_heads(2, 2, 5, 1, 9), *_LENGTHS),
        sample(*_heads(2, 2, 5, 1, 9), *_LENGTHS, causal=True),
        sample(*_heads(2, 2, 5, 1, 9), *_LENGTHS, causal=True, window=3),
        sample(*_heads(2, 2, 5, 1, 9), *_LENGTHS, window=1),
        sample(*_heads(2, 4, "S", 2, 9), causal=True, softcap=1.5),
        sample(*_heads(2, 2, 5, 1, 9), *_LENGTHS, scale=0.5, softcap=0.7),
        sample(*_heads(2, 2, "S", 1, 9), None, "si64[2] 3..9", causal=True),
        sample(*_heads(2, 2, 3, 1, 9), "si32[2] 7..8"),
        # Rows that see nothing: an empty range, and queries that stand before the first key.
        sample(*_heads(2, 2, 3, 1, 9), "si32[2] 5..5", "si32[2] 5..5"),
        sample(*_heads(2, 2, 5, 1, 9), None, "si32[2] 2..2", causal=True),
        sample(*_heads(2, 2, 7, 2, 3), causal=True),
        sample(*_heads(1, 1, 3, 1, 0)),
        sample(*_heads(0, 2, 3, 1, 4)),
        sample(*_heads(1, 2, 0, 1, 4), causal=True),
    ),
    _attention,
    HALVES,
    ulps=64,
    magnitude=4,
    why=SCALE,
)

CALL = Case(
    "custom_call",
    (
        sample(
            ("T[2,3] any", "T[3] any"),
            target="test.part",
            definition=record(lambda x, y: ptir.relu(x) + y, "f32[2,3]", "f32[3]"),
        ),
        sample(
            ("T[4]",),
            target="test.doubled",
            definition=record(lambda x: ptir.concat((x, x)) + 1.0, "f32[4]"),
        ),
    ),
    lambda xs, *, target, definition: (
        torch.relu(xs[0]) + xs[1] if target == "test.part" else torch.cat((xs[0], xs[0])) + 1
    ),
    fixed="the definition has types of its own",
)

COMPOSITE = (
    CALL,
    *NORMS,
    *PRODUCTS,
    ATTENTION,
    _activation("sigmoid", torch_op("sigmoid")),
    Case(
        "relu",
        tuple(sample(f"T[{shape}] any") for shape in ("S,7", "17", "", "0,3")),
        torch_op("relu"),
        (*FLOATS, "si8", "si64"),
    ),
    _activation("silu", _silu),
    _activation("gelu", _gelu),
    _activation("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
    _activation("gelu_quick", lambda x: x * torch.sigmoid(1.702 * x)),
)
