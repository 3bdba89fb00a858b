"""Idioms: composites as users write them in primitives, and what raising should find."""

# Small lambdas that are traced: their operands and results are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gptrs import ptir
from gptrs.ir.program import Program
from gptrs.ir.types import Array, Type
from gptrs.passes.base import Context
from gptrs.passes.raisable import RAISABLE
from tests.cases.programs import record
from tests.cases.sample import draw

NAMES = frozenset(raisable.name for raisable in RAISABLE)
Q, KV = "f32[2,4,6,8]", "f32[2,2,6,8]"


class Claims:
    """A target with kernels for all composites that can be raised, or for some."""

    passes = ()

    def __init__(self, names: frozenset[str] = NAMES) -> None:
        self.names = names

    def claims(self, instruction: Any) -> bool:
        return instruction.op.name in self.names


CONTEXT = Context(Claims())


@dataclass(frozen=True)
class Row:
    """A spelling: the composite that it is of, operands, and attributes that are to be found.

    ``sizes`` of the symbols in the types; ``exact``: it also is raised where rounding stays.
    """

    op: str
    function: Callable[..., Any]
    types: str
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    exact: bool = False
    left: frozenset[str] = frozenset()


def softmax(x, axis=-1):
    e = ptir.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softmax_without_kept_axes(x):
    e = ptir.exp(x - x.max(-1)[..., None])
    return e / e.sum(-1)[..., None]


def softmax_along_the_first_axis(x):
    e = ptir.exp(x - x.max(0))
    return e * ptir.reciprocal(e.sum(0))


def log_softmax(x):
    y = x - x.max(-1, keepdims=True)
    return y - ptir.log(ptir.exp(y).sum(-1, keepdims=True))


def layer_norm_of_powers(x, w, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / (v + 1e-6) ** 0.5 * w + b


def layer_norm_of_sums(x, w, b):
    c = x - x.sum(-1, keepdims=True) / x.shape[-1]
    v = (c * c).sum(-1, keepdims=True) * (1 / 8)
    return b + w * (c * ptir.rsqrt(3e-5 + v))


def layer_norm_without_kept_axes(x, w):
    v = ptir.var(x, axes=-1)
    return w * ((x - x.mean(-1)[..., None]) / ptir.sqrt(v + 1e-3)[..., None])


def layer_norm_of_a_product(x, y):
    x = x * y * 0.5
    c = x - x.mean(-1, keepdims=True)
    return c * ptir.reciprocal(ptir.sqrt((c * c).mean(-1, keepdims=True) + 1e-5))


def layer_norm_defined(x, w, b):
    c = x - ptir.mean(x, axes=-1, keepdims=True)
    return c * ptir.rsqrt(ptir.mean(c * c, axes=-1, keepdims=True) + 1e-5) * w + b


def layer_norm_of_narrow(x, w):
    wide = x.astype("f32")
    c = wide - wide.mean(-1, keepdims=True)
    y = c / ptir.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
    return (y * w.astype("f32")).astype("bf16")


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + ptir.concat((-x[..., half:], x[..., :half]), axis=-1) * sin


def rotated_by_halves(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return ptir.concat((a * cos - b * sin, b * cos + a * sin), axis=-1)


def cubic(x):
    return x + 0.044715 * x**3


SQRT = math.sqrt(2 / math.pi)
PLAIN: tuple[Row, ...] = (
    Row("relu", lambda x: ptir.maximum(x, 0.0), "f32[3,4]", exact=True),
    Row("relu", lambda x: ptir.maximum(0, x), "f32[3,4]", exact=True),
    Row("relu6", lambda x: ptir.minimum(ptir.maximum(x, 0), 6.0), "f32[3,4]"),
    Row("relu6", lambda x: ptir.clamp(x, 0, 6), "f32[3,4]", exact=True),
    Row("softmax", softmax, "f32[3,5]", {"axis": 1}, exact=True),
    Row("softmax", lambda x: softmax(x, 1), "f32[3,5,2]", {"axis": 1}, exact=True),
    Row("softmax", softmax, "f32[?S,?T]", {"axis": 1}, {"S": 3, "T": 5}, exact=True),
    Row("softmax", softmax_without_kept_axes, "f32[2,3,5]", {"axis": 2}, exact=True),
    Row("softmax", softmax_along_the_first_axis, "f32[3,5]", {"axis": 0}),
    Row("softmax", lambda x: softmax(x.astype("f32")).astype("f16"), "f16[3,5]", exact=True),
    Row("log_softmax", log_softmax, "f32[3,5]", {"axis": 1}, exact=True),
    Row("gelu", lambda x: 0.5 * x * (1 + ptir.erf(x / math.sqrt(2))), "f32[3,4]"),
    Row("gelu", lambda x: x * (0.5 * (1.0 + ptir.erf(x * 0.70710678))), "f32[3,4]"),
    Row(
        "gelu",
        lambda x: x * (ptir.erf(x * SQRT / 2 * math.sqrt(math.pi)) + 1) / 2,
        "f32[?S]",
        sizes={"S": 3},
    ),
    Row(
        "gelu",
        lambda x, y: x * y * 0.5 * (1 + ptir.erf(x * y * math.sqrt(0.5))),
        "f32[3] f32[3]",
        left=frozenset(["mul"]),
    ),
    Row("gelu", lambda x: x * 0.5 * (ptir.erf(x * math.sqrt(0.5)) + 1.0), "f32[3,4]", exact=True),
    Row("gelu_tanh", lambda x: 0.5 * x * (1 + ptir.tanh(SQRT * cubic(x))), "f32[3,4]"),
    Row("gelu_tanh", lambda x: x * (0.5 * (1 + ptir.tanh(SQRT * cubic(x)))), "f32[3,4]"),
    Row(
        "gelu_tanh",
        lambda x: 0.5 * x * (1 + ptir.tanh(0.7978845608 * x * (1 + 0.044715 * x * x))),
        "f32[3,4]",
    ),
    Row("sigmoid", lambda x: 1 / (1 + ptir.exp(-x)), "f32[3,4]"),
    Row("sigmoid", lambda x: 0.5 * ptir.tanh(0.5 * x) + 0.5, "f32[3,4]"),
    Row("silu", lambda x: x / (1 + ptir.exp(-x)), "f32[3,4]"),
    Row("silu", lambda x: x * (1 / (1 + ptir.exp(-x))), "f32[3,4]"),
    Row("silu", lambda x: x * ptir.sigmoid(x), "f32[3,4]", exact=True),
    Row("silu", lambda x: ptir.reciprocal(ptir.exp(-x) + 1.0) * x, "f32[3,4]", exact=True),
    Row("gelu_quick", lambda x: x * ptir.sigmoid(1.702 * x), "f32[3,4]", exact=True),
    Row("layer_norm", layer_norm_of_powers, "f32[2,3,8] f32[8] f32[8]", {"eps": 1e-6}),
    Row("layer_norm", layer_norm_of_sums, "f32[3,8] f32[8] f32[8]", {"eps": 3e-5}),
    Row("layer_norm", layer_norm_of_sums, "f32[?S,8] f32[8] f32[8]", {"eps": 3e-5}, {"S": 3}),
    Row("layer_norm", layer_norm_without_kept_axes, "f32[2,8,8] f32[8]", {"eps": 1e-3}),
    Row(
        "layer_norm",
        layer_norm_of_a_product,
        "f32[3,8] f32[3,8]",
        {"eps": 1e-5},
        left=frozenset(["mul"]),
    ),
    Row("layer_norm", layer_norm_defined, "f32[3,8] f32[8] f32[8]", {"eps": 1e-5}, exact=True),
    Row("layer_norm", layer_norm_of_narrow, "bf16[3,8] bf16[8]", {"eps": 1e-5}),
    Row(
        "rms_norm",
        lambda x, w: w * (x * ptir.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6)),
        "f32[3,8] f32[8]",
        {"eps": 1e-6},
    ),
    Row(
        "rms_norm",
        lambda x: x / ptir.sqrt((x * x).mean(-1, keepdims=True) + 0.5),
        "f32[?S,?D]",
        {"eps": 0.5},
        {"S": 2, "D": 8},
    ),
    Row("rotary", rotated, "f32[2,3,5,8] f32[5,8] f32[5,8]", exact=True),
    Row("rotary", rotated, "f32[2,3,?S,8] f32[2,1,?S,8] f32[2,1,?S,8]", {}, {"S": 5}, exact=True),
    Row("rotary", rotated, "f32[5,8] f32[5,8] f32[1,8]", exact=True),
    Row("rotary", rotated_by_halves, "f32[2,3,5,8] f32[5,4] f32[5,4]", {"interleaved": False}),
    Row("rotary", rotated_by_halves, "f32[2,?S,8] f32[?S,4] f32[1,4]", {}, {"S": 5}),
    Row(
        "batch_norm",
        lambda x, m, v, w, b: (x - m) / ptir.sqrt(v + 1e-3) * w + b,
        "f32[2,3,4] f32[4] f32[4]|positive f32[4] f32[4]",
        {"eps": 1e-3},
    ),
)


def traced(row: Row) -> Program:
    return record(row.function, *(part.split("|")[0] for part in row.types.split()))


def arrays_for(row: Row) -> tuple[Array, ...]:
    """Ordinary numbers, or what stands after a type."""
    rng = np.random.default_rng(zlib.crc32(label(row).encode()))
    drawn: list[Array] = []
    for part in row.types.split():
        text, _, values = part.partition("|")
        type = Type.parse(text)
        shape = [row.sizes.get(str(n), n) for n in type.shape]
        drawn.append(draw(type.with_shape(shape), values, rng))
    return tuple(drawn)


def ops(program: Program) -> list[str]:
    return [instruction.op.name for instruction in program.body]


def label(row: Row) -> str:
    return f"{row.op}-{row.function.__name__}-{row.types}"
