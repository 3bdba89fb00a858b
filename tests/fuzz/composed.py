"""Strategies for operands and attributes of composites, and for regions."""

from __future__ import annotations

from typing import Any

from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Type
from tests.fuzz.builder import Builder
from tests.fuzz.elementary import Draw

_F = ("float",)
_SI32 = DTYPES["si32"]
_DEEPEST = 2  # regions in regions


def _simple(name: str) -> Draw:
    return lambda b: OPS[name](b.value(*_F))


def _along(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*_F, least=1)
        return OPS[name](x, axis=b.integer(-x.ndim, x.ndim - 1))

    return draw


def _moment(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*_F, least=1)
        axes = None if b.chance(4) else b.some(range(x.ndim))
        return OPS[name](x, axes=axes, keepdims=b.chance(2))

    return draw


def _matmul(b: Builder) -> Tensor:
    x = b.value("float", "int", least=1)
    inner, n = x.shape[-1], b.extent()
    shape = (inner, n) if x.ndim < 3 or b.chance(2) else (*x.shape[:-2], inner, n)
    return OPS["matmul"](x, b.of(x.type.with_shape(shape)))


def _maybe(b: Builder, type: Type) -> Tensor | None:
    """An operand that may be absent."""
    return b.of(type) if b.chance(2) else None


def _linear(b: Builder) -> Tensor:
    x = b.value(*_F, least=1)
    transposed, n = b.chance(2), b.extent()
    shape = (x.shape[-1], n) if transposed else (n, x.shape[-1])
    bias = _maybe(b, x.type.with_shape((n,)))
    return OPS["linear"](x, b.of(x.type.with_shape(shape)), bias, transposed=transposed)


def _norm(name: str, optional: int, required: int = 0) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = b.value(*_F, least=1)
        row = x.type.with_shape(x.shape[-1:])
        operands = [b.of(row) for _ in range(required)] + [_maybe(b, row) for _ in range(optional)]
        return OPS[name](x, *operands)

    return draw


def _embedding(b: Builder) -> Tensor:
    weight = b.value(*_F, least=2, most=2)
    return OPS["embedding"](weight, b.index(weight.shape[0], b.shape(0, 2)))


def _attention(b: Builder) -> Tensor:
    groups, heads, depth = b.pick((1, 2)), b.pick((1, 2)), b.pick((4, 8, 3, 1))
    batch, queries, keys = b.extent(), b.extent(), b.extent()
    dtype = DTYPES[b.pick(("f32", "f32", "bf16", "f16", "f64"))]
    q = b.of(Type((batch, groups * heads, queries, depth), dtype))
    k, v = (b.of(Type((batch, groups, keys, depth), dtype)) for _ in range(2))
    v = OPS["select"](OPS["less"](OPS["abs"](v), 1e4), v, 0.0)  # hidden values are finite
    rows = Type((batch,), _SI32)
    begin = b.of(rows, f"0..{b.size(keys)}") if b.chance(3) else None
    end = b.of(rows, f"0..{b.size(keys)}") if b.chance(3) else None
    window = b.integer(1, 4) if b.chance(4) else None
    return OPS["attention"](q, k, v, begin, end, causal=b.chance(2), window=window)


def _rotary(b: Builder) -> Tensor:
    x = b.of(Type((*b.shape(1, 2), b.pick((2, 4, 8))), b.dtype("float")))
    half = x.shape[-1] // 2 if b.chance(2) else x.shape[-1]
    table = x.type.with_shape((x.shape[-2], half))
    return OPS["rotary"](x, b.of(table), b.of(table), interleaved=b.chance(2))


def _grouped_linear(b: Builder) -> Tensor:
    ids = b.index(3, b.shape(1, 2))
    dtype = b.dtype("float")
    outer = ids.shape if b.chance(2) else ids.shape[:-1]
    return OPS["grouped_linear"](b.of(Type((*outer, 4), dtype)), ids, b.of(Type((3, 5, 4), dtype)))


def _cross_entropy(b: Builder) -> Tensor:
    logits = b.value(*_F, least=1)
    targets = b.index(logits.shape[-1], logits.shape[:-1])
    ignored = 1 if b.chance(3) else None
    reduction = b.pick(("mean", "sum", "none"))
    return OPS["cross_entropy"](logits, targets, reduction=reduction, ignore_index=ignored)


def _images(b: Builder) -> Tensor:
    return b.value(*_F, least=4, most=4)


def _spans(b: Builder, window: tuple[Any, ...]) -> dict[str, Any]:
    padding = tuple((b.integer(0, min(1, n - 1)), b.integer(0, min(1, n - 1))) for n in window)
    return {"strides": (b.integer(1, 2), b.integer(1, 2)), "padding": padding}


def _conv2d(b: Builder) -> Tensor:
    x = _images(b)
    window, depth, outputs = (b.integer(1, 3), b.integer(1, 3)), x.shape[-1], b.integer(1, 4)
    groups = 1
    if isinstance(depth, int) and depth > 1 and b.chance(3):
        groups, outputs, depth = depth, depth * b.integer(1, 2), 1
    weight = b.of(x.type.with_shape((*window, depth, outputs)))
    bias = _maybe(b, x.type.with_shape((outputs,)))
    return OPS["conv2d"](x, weight, bias, groups=groups, **_spans(b, window))


def _depthwise_conv2d(b: Builder) -> Tensor:
    x = _images(b)
    window, multiplier = (b.integer(1, 3), b.integer(1, 3)), b.integer(1, 2)
    weight = b.of(x.type.with_shape((*window, x.shape[-1], multiplier)))
    bias = _maybe(b, x.type.with_shape((x.shape[-1] * multiplier,)))
    return OPS["depthwise_conv2d"](x, weight, bias, **_spans(b, window))


def _pool(name: str) -> Draw:
    def draw(b: Builder) -> Tensor:
        x = _images(b)
        window = b.integer(1, 3), b.integer(1, 3)
        more = {"count_include_pad": b.chance(2)} if name == "avg_pool2d" else {}
        return OPS[name](x, window=window, **_spans(b, window), **more)

    return draw


def _global_avg_pool2d(b: Builder) -> Tensor:
    return OPS["global_avg_pool2d"](_images(b), keepdims=b.chance(2))


_STORED = ("si8", "ui8", "si4", "si16", "fp8_e4m3", "si32")


def _grouping(b: Builder, x: Tensor) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """Attributes that say which elements share a scale, and the shape of the scales."""
    if not x.ndim or b.chance(2):
        return {}, ()
    axis = b.integer(0, x.ndim - 1)
    extent = x.shape[axis]
    if b.chance(2) or not isinstance(extent, int) or not extent:
        return {"axis": axis}, (extent,)
    size = b.pick([n for n in (1, 2, 3, extent) if extent % n == 0])
    shape = (*x.shape[:axis], extent // size, *x.shape[axis + 1 :])
    return {"axis": axis, "group_size": size}, shape


def _scale(b: Builder, shape: tuple[Any, ...]) -> Tensor:
    return b.of(Type(shape, DTYPES["f32"]), "positive")


def _point(b: Builder, name: str, shape: tuple[Any, ...]) -> Tensor | None:
    if DTYPES[name].is_float or b.chance(2):
        return None
    return b.of(Type(shape, DTYPES[name]), "0..3")


def _quantize(b: Builder) -> Tensor:
    x, name = b.value(*_F), b.pick(_STORED)
    attrs, shape = _grouping(b, x)
    return OPS["quantize"](x, _scale(b, shape), _point(b, name, shape), dtype=name, **attrs)


def _stored(b: Builder) -> Tensor:
    return b.value("int", "uint", "float", where=lambda v: v.dtype.name in (*_STORED, "ui4"))


def _dequantize(b: Builder) -> Tensor:
    q = _stored(b)
    attrs, shape = _grouping(b, q)
    scale, point = _scale(b, shape), _point(b, q.dtype.name, shape)
    return OPS["dequantize"](q, scale, point, dtype=b.dtype("float"), **attrs)


def _requantize(b: Builder) -> Tensor:
    q, name = _stored(b), b.pick(_STORED)
    attrs, shape = _grouping(b, q)
    scales = [_scale(b, shape), _scale(b, shape)]
    points = [_point(b, q.dtype.name, shape), _point(b, name, shape)]
    return OPS["requantize"](q, *scales, *points, dtype=name, **attrs)


COMPOSITES: dict[str, Draw] = {
    **{
        name: _simple(name)
        for name in ("sigmoid", "silu", "gelu", "gelu_tanh", "gelu_quick", "relu", "relu6")
    },
    **{name: _along(name) for name in ("softmax", "log_softmax")},
    **{name: _moment(name) for name in ("mean", "var")},
    **{name: _pool(name) for name in ("max_pool2d", "avg_pool2d")},
    "matmul": _matmul,
    "linear": _linear,
    "layer_norm": _norm("layer_norm", 2),
    "rms_norm": _norm("rms_norm", 1),
    "batch_norm": _norm("batch_norm", 2, 2),
    "embedding": _embedding,
    "attention": _attention,
    "rotary": _rotary,
    "grouped_linear": _grouped_linear,
    "cross_entropy": _cross_entropy,
    "conv2d": _conv2d,
    "depthwise_conv2d": _depthwise_conv2d,
    "global_avg_pool2d": _global_avg_pool2d,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "requantize": _requantize,
}
