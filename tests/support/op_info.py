"""torch's own samples of operators (`op_db`, OpInfo), and what they are called here.

A row names an OpInfo, says how a sample of it is called with our ops, and how closely results must
agree with torch's. `NotOursError` says which samples have no counterpart.
"""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptrs import ptir
from gptrs.ir.dispatch import OPS
from tests.cases.sample import LIBM, ORDER

Tensor = ptir.Tensor
F = ("f32", "f64")
I = ("si32", "si64", "si8", "ui8")  # noqa: E741 - beside F and B
B = ("i1",)


class NotOursError(Exception):
    """A sample asks for what no op here does."""


@dataclass(frozen=True)
class Row:
    """``call`` takes what a sample has, with our tensors. ``ulps``, ``magnitude`` and ``why`` are
    as in `tests.cases.sample.Case`."""

    info: str
    call: Callable[..., Any]
    dtypes: tuple[str, ...] = F
    ulps: int = 0
    magnitude: float = 0.0
    why: str = ""
    special: bool = True
    """Whether special values take the place of some elements in samples of their own."""
    numpy: Callable[..., Any] | None = None
    """NumPy's function, where torch gives something else..."""
    differs: str = ""
    """...namely this."""


def unless(condition: object, why: str) -> None:
    if condition:
        raise NotOursError(why)


def axes_of(dim: Any) -> Any:
    """torch takes () for all axes."""
    if isinstance(dim, list | tuple):
        return tuple(dim) or None
    return dim


def _op(name: str) -> Callable[..., Any]:
    return lambda *operands: OPS[name](*operands)


def _alpha(name: str) -> Callable[..., Any]:
    def call(x: Any, y: Any, alpha: Any = 1) -> Any:
        unless(alpha != 1 and x.dtype.is_float, "a product and a sum that are rounded once")
        return OPS[name](x, y if alpha == 1 else y * alpha)

    return call


def _totals(name: str, wide: bool = False) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        x = x if dtype is None else ptir.cast(x, dtype=dtype)
        attrs: dict[str, Any] = {}
        if wide and not x.dtype.is_float and dtype is None:
            attrs = {"accum_dtype": "si64", "out_dtype": "si64"}
        unless(not x.ndim and dim is not None, "an axis of a scalar")
        return OPS[name](x, axes=axes_of(dim), keepdims=keepdim, **attrs)

    return call


def _var(root: bool) -> Callable[..., Any]:
    def call(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = (
            (1 if unbiased is None else int(unbiased)) if correction is None else correction
        )
        unless(not isinstance(correction, int), "a correction that is no integer")
        found = ptir.var(x, axes=axes_of(dim), keepdims=keepdim, correction=correction)
        return ptir.sqrt(found) if root else found

    return call


def _position(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        if dim is None:
            unless(keepdim, "all axes, kept")
            return OPS[name](x.reshape(-1), axis=0)
        return OPS[name](x, axis=dim, keepdims=keepdim)

    return call


def _extreme(name: str) -> Callable[..., Any]:
    """torch.max(x, dim): values and positions."""

    def call(x: Any, dim: int, keepdim: bool = False) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return (
            OPS[f"reduce_{name}"](x, axes=dim, keepdims=keepdim),
            OPS[f"arg{name}"](x, axis=dim, keepdims=keepdim),
        )

    return call


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if max is None:
        unless(min is None, "no bound")
        return OPS["maximum"](x, min)
    return ptir.minimum(x, max) if min is None else ptir.clamp(x, min, max)


def _along(name: str) -> Callable[..., Any]:
    def call(x: Any, dim: int, dtype: Any = None) -> Any:
        unless(not x.ndim, "an axis of a scalar")
        return OPS[name](x if dtype is None else ptir.cast(x, dtype=dtype), axis=dim)

    return call


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    unless(not stable, "equal elements in any order")
    return ptir.ops.sort(x, axis=dim, descending=descending)


def _top_k(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    unless(not sorted, "in any order")
    return ptir.top_k(x, k=k, axis=dim, largest=largest)[0]


def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    unless(not (x.ndim and index.ndim and source.ndim), "an axis of a scalar")
    return ptir.scatter_add(x, index, source, axis=dim)


def _index_select(x: Any, dim: int, index: Any) -> Any:
    unless(dim != 0 or not x.ndim, "another axis, or a scalar")
    return ptir.take(x, index)


def _scatter(reduce: str) -> Callable[..., Any]:
    def call(x: Any, dim: int, index: Any, source: Any, mode: str = "", **kwargs: Any) -> Any:
        unless(kwargs.get("reduce") is not None, "a reduction of its own")
        unless(not kwargs.get("include_self", True), "without what was there")
        unless(not isinstance(source, Tensor), "a number")
        unless(not (x.ndim and index.ndim and source.ndim), "an axis of a scalar")
        return ptir.scatter_reduce(x, index, source, axis=dim, reduce=reduce)  # pyright: ignore[reportArgumentType]

    return call


def _gather(x: Any, dim: int, index: Any) -> Any:
    unless(not x.ndim or x.ndim != index.ndim, "scalars, or an empty index of another rank")
    return ptir.gather(x, index, axis=dim)


def _embedding(weight: Any, ids: Any, max_norm: Any = None, **_: Any) -> Any:
    unless(max_norm is not None, "rows are scaled in place")
    return ptir.embedding(weight, ids)


def _pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    unless(any(n < 0 for n in pad), "cuts")
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    pairs = [*pairs, *[(0, 0)] * (x.ndim - len(pairs))][::-1]
    return ptir.pad(
        x, low=tuple(p[0] for p in pairs), high=tuple(p[1] for p in pairs), value=value or 0
    )


def _cat(xs: Any, dim: int = 0) -> Any:
    unless(any(x.ndim != xs[0].ndim or (not x.size and x.ndim == 1) for x in xs), "an empty vector")
    return ptir.concat(tuple(xs), axis=dim)


def _tile(x: Any, dims: Any) -> Any:
    rank = max(x.ndim, len(dims))
    spread = x.reshape((*[1] * (rank - x.ndim), *x.shape))
    return ptir.tile(spread, reps=(*[1] * (rank - len(dims)), *dims))


def _transpose(x: Any, a: int, b: int) -> Any:
    unless(not x.ndim, "an axis of a scalar")
    return x.transpose(a, b)


def _squeeze(x: Any, *dim: int) -> Any:
    unless(dim, "an axis that may be longer than 1")
    return x.squeeze()


def _two(value: Any) -> tuple[int, int]:
    first, *rest = (value,) if isinstance(value, int) else value
    return first, rest[0] if rest else first


def _pads(value: Any) -> Any:
    a, b = _two(value)
    return ((a, a), (b, b))


def _images(x: Any) -> Any:
    unless(x.ndim != 4, "one image")
    return x.permute(0, 2, 3, 1)


def _channels_first(y: Any) -> Any:
    return y.permute(0, 3, 1, 2)


def _conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    unless(isinstance(padding, str), "padding by name")
    y = ptir.conv2d(
        _images(x),
        weight.permute(2, 3, 1, 0),
        bias,
        strides=_two(stride),
        padding=_pads(padding),
        dilation=_two(dilation),
        groups=groups,
    )
    return _channels_first(y)


def _max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    unless(ceil_mode or return_indices, "windows over the edge, or positions")
    y = ptir.max_pool2d(
        _images(x),
        window=_two(kernel_size),
        strides=None if stride is None or stride == () else _two(stride),
        padding=_pads(padding),
        dilation=_two(dilation),
    )
    return _channels_first(y)


def _avg_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    unless(ceil_mode or divisor_override is not None, "windows over the edge, or another divisor")
    y = ptir.avg_pool2d(
        _images(x),
        window=_two(kernel_size),
        strides=None if not stride else _two(stride),
        padding=_pads(padding),
        count_include_pad=count_include_pad,
    )
    return _channels_first(y)


def _batch_norm(
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    unless(training or x.ndim < 2, "statistics of the batch")
    order = (0, *range(2, x.ndim), 1)
    y = ptir.batch_norm(x.permute(order), mean, var, weight, bias, eps=eps)
    return y.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def _layer_norm(x: Any, shape: Any, *weights: Any, eps: float = 1e-5, **named: Any) -> Any:
    unless(len(shape) != 1, "several axes")
    return ptir.layer_norm(x, *weights, eps=eps, **named)


def _rms_norm(x: Any, shape: Any, *weights: Any, eps: float | None = None) -> Any:
    unless(len(shape) != 1, "several axes")
    least = 2.0 ** (-52 if x.dtype is ptir.f64 else -23)
    return ptir.rms_norm(x, *weights, eps=least if eps is None else eps)


def _cross_entropy(
    logits: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    unless(weight is not None or label_smoothing, "weights or smoothing")
    unless(not target.dtype.is_integer, "probabilities")
    if logits.ndim > 1:
        logits = logits.permute(0, *range(2, logits.ndim), 1)
    return ptir.cross_entropy(logits, target, reduction=reduction, ignore_index=ignore_index)  # pyright: ignore[reportArgumentType]


def _attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    unless(attn_mask is not None or dropout_p, "a mask, or dropout")
    unless(is_causal and q.shape[-2] != k.shape[-2], "queries begin with the first key")
    unless(q.ndim != 4 or k.shape[0] != q.shape[0] or v.shape[-1] != q.shape[-1], "other ranks")
    return ptir.attention(q, k, v, causal=is_causal, scale=scale)


def _gelu(x: Any, approximate: str = "none") -> Any:
    return ptir.gelu(x) if approximate == "none" else ptir.gelu_tanh(x)


def _round(x: Any, decimals: int = 0) -> Any:
    unless(decimals, "decimals")
    return ptir.round(x)


def _plain(names: dict[str, str], dtypes: tuple[str, ...] = F, **more: Any) -> tuple[Row, ...]:
    return tuple(Row(info, _op(name), dtypes, **more) for info, name in names.items())


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


R = (*F, *I)
SUMMED: dict[str, Any] = {"ulps": 64, "magnitude": 8, "why": ORDER}
NAMED: dict[str, Any] = {"ulps": 16, "magnitude": 1, "why": LIBM}
OUTSIDE = "padding and hidden keys are times 0 or left out, by the kernel that torch takes"
BATCH_NORM = "x · scale + shift, where ∞ · 0 may occur, and not (x − mean) · scale"
NUMPY_REMAINDER = "NaN where the quotient is beyond the range of the dtype"

ROWS: tuple[Row, ...] = (
    *_plain(_same("abs", "neg"), (*F, *I[:3])),
    Row("sign", _op("sign"), (*F, *I[:3]), numpy=np.sign, differs="0 for NaN"),
    *_plain(_same("exp", "log", "tanh", "erf", "sin", "cos", "sigmoid"), ulps=8, why=LIBM),
    *_plain(_same("sqrt", "rsqrt", "reciprocal"), ulps=4, why=LIBM),
    *_plain({"floor": "floor", "ceil": "ceil", "isfinite": "is_finite"}),
    Row("round", _round),
    Row("round.decimals_0", _round),
    *_plain(_same("logical_not", "logical_and", "logical_or"), B),
    *_plain({"bitwise_not": "bit_not", "bitwise_and": "bit_and", "bitwise_or": "bit_or"}, I),
    *_plain({"bitwise_xor": "bit_xor", "bitwise_left_shift": "shift_left"}, I),
    *_plain({"bitwise_right_shift": "shift_right"}, I),
    Row("add", _alpha("add"), R),
    Row("sub", _alpha("sub"), R),
    *_plain(_same("mul"), R),
    Row("div.no_rounding_mode", lambda x, y: x / y),
    Row("floor_divide", lambda x, y: x // y, R),
    Row("remainder", _op("remainder"), R, numpy=np.remainder, differs=NUMPY_REMAINDER),
    *_plain(_same("maximum", "minimum"), R),
    *_plain(_same("pow"), R, ulps=8, why=LIBM),
    Row("__rpow__", lambda x, y: y**x, ulps=8, why=LIBM),
    Row("square", lambda x: x**2, R),
    *_plain({"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}, R),
    *_plain({"eq": "equal", "ne": "not_equal"}, R),
    Row("where", lambda x, condition, y: ptir.select(condition, x, y), R),
    Row("clamp", _clamp, R),
    Row("clamp_min", _clamp, R),
    Row("clamp_max", lambda x, most: _clamp(x, None, most), R),
    *_plain({"nn.functional.relu": "relu", "nn.functional.relu6": "relu6"}),
    Row("nn.functional.silu", lambda x, inplace=False: ptir.silu(x), **NAMED),
    Row("nn.functional.gelu", _gelu, **NAMED),
    Row("sum", _totals("reduce_sum", wide=True), R, **SUMMED),
    Row("prod", _totals("reduce_prod", wide=True), R, **SUMMED),
    Row("mean", _totals("mean"), **SUMMED),
    Row("var", _var(root=False), **SUMMED),
    Row("var.unbiased", _var(root=False), **SUMMED),
    Row("std", _var(root=True), **SUMMED),
    Row("amax", _totals("reduce_max"), R),
    Row("amin", _totals("reduce_min"), R),
    Row("max.reduction_with_dim", _extreme("max"), R),
    Row("min.reduction_with_dim", _extreme("min"), R),
    Row("any", _totals("reduce_any"), B),
    Row("all", _totals("reduce_all"), B),
    Row("argmax", _position("argmax"), R),
    Row("argmin", _position("argmin"), R),
    Row("cumsum", _along("cumsum"), **SUMMED),
    Row("softmax", _along("softmax"), **NAMED),
    Row("softmax.with_dtype", _along("softmax"), **NAMED),
    Row("log_softmax", _along("log_softmax"), **NAMED),
    Row("sort", _sort, R),
    Row("msort", lambda x: ptir.ops.sort(x, axis=0)[0], R),
    Row("topk", _top_k, R),
    Row("gather", _gather, R),
    Row("index_select", _index_select, R),
    Row("nn.functional.embedding", _embedding),
    Row("scatter", _scatter("replace"), R),
    Row("scatter_add", _scatter_add, R, **SUMMED),
    Row("scatter_reduce.amax", _scatter("max"), R),
    Row("scatter_reduce.amin", _scatter("min"), R),
    Row("scatter_reduce.sum", _scatter("add"), R, **SUMMED),
    Row("reshape", lambda x, shape: x.reshape(tuple(shape))),
    Row("permute", lambda x, dims: x.permute(tuple(dims))),
    Row("transpose", _transpose),
    Row("broadcast_to", lambda x, shape: ptir.broadcast_to(x, shape=tuple(shape))),
    Row("unsqueeze", lambda x, dim: x.unsqueeze(dim)),
    Row("squeeze", _squeeze),
    Row("cat", _cat, R),
    Row("stack", lambda xs, dim=0: ptir.stack(xs, dim), R),
    Row("tile", _tile),
    Row("nn.functional.pad.constant", _pad, R),
    *_plain({"matmul": "matmul", "mm": "matmul", "bmm": "matmul", "dot": "matmul"}, **SUMMED),
    *_plain({"mv": "matmul", "nn.functional.linear": "linear"}, **SUMMED),
    Row("nn.functional.conv2d", _conv2d, special=False, differs=OUTSIDE, **SUMMED),
    Row("nn.functional.max_pool2d", _max_pool2d),
    Row("nn.functional.avg_pool2d", _avg_pool2d, **SUMMED),
    Row("nn.functional.batch_norm", _batch_norm, special=False, differs=BATCH_NORM, **SUMMED),
    Row("nn.functional.layer_norm", _layer_norm, **SUMMED),
    Row("nn.functional.rms_norm", _rms_norm, **SUMMED),
    Row("nn.functional.cross_entropy", _cross_entropy, **SUMMED),
    Row(
        "nn.functional.scaled_dot_product_attention",
        _attention,
        special=False,
        differs=OUTSIDE,
        **SUMMED,
    ),
)
