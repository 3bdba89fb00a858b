"""Invalid calls: dtypes, numbers and arguments that do not fit."""

# The lambdas are called with arrays of the types beside them, and wrongly on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gptrs.errors import ArgumentError, DTypeError, PtirError
from gptrs.ptir import ops as ptir


@dataclass(frozen=True)
class Wrong:
    """A call that fails. ``words`` are in the message; arrays are written as in `sample`."""

    call: Callable[..., Any]
    arrays: tuple[str, ...]
    error: type[PtirError]
    words: tuple[str, ...]


def wrong(call: Any, *arrays: str, error: type[PtirError], words: str) -> Wrong:
    return Wrong(call, arrays, error, tuple(words.split(" | ")))


DTYPES = (
    wrong(
        lambda x, y: x + y,
        "f32[3]",
        "bf16[3]",
        error=DTypeError,
        words="f32 and bf16 | in add(x: f32[3] | y: bf16[3] | fix: ptir.cast(y, dtype='f32')",
    ),
    wrong(
        lambda x, y: ptir.matmul(x, y),
        "f32[3,4]",
        "si32[4,2]",
        error=DTypeError,
        words="f32 and si32 | in matmul(x: f32[3,4] | y: si32[4,2] | fix: ptir.cast",
    ),
    wrong(
        lambda x, w, b: ptir.linear(x, w, b),
        "bf16[2,3]",
        "bf16[4,3]",
        "f32[4]",
        error=DTypeError,
        words="bf16 and f32 | in linear( | bias: f32[4] | fix: ptir.cast",
    ),
    wrong(
        lambda x, w: ptir.layer_norm(x, w),
        "f32[2,3]",
        "f64[3]",
        error=DTypeError,
        words="f32 and f64 | in layer_norm(x: f32[2,3] | weight: f64[3]",
    ),
    wrong(
        lambda q, k, v: ptir.attention(q, k, v),
        "f32[1,2,3,4]",
        "f32[1,2,3,4]",
        "f16[1,2,3,4]",
        error=DTypeError,
        words="f32 and f16 | in attention(q: f32[1,2,3,4] | v: f16[1,2,3,4]",
    ),
    wrong(
        lambda x: x / 2,
        "si32[3]",
        error=DTypeError,
        words="/ needs floating operands, found si32 | x // 2 | ptir.cast(x, dtype='f32') / 2",
    ),
    wrong(
        lambda x: 2 / x,
        "si32[3]",
        error=DTypeError,
        words="/ needs floating operands | fix: 2 // x divides",
    ),
    wrong(
        lambda x: x + 1.5,
        "si32[3]",
        error=DTypeError,
        words="the float 1.5 does not fit | si32 | in add(x: si32[3] | ptir.cast(x, dtype='f32')",
    ),
    wrong(
        lambda x: 300 + x,
        "ui8[3]",
        error=DTypeError,
        words="300 does not fit ui8 | in add(x: 300, y: ui8[3]",
    ),
    wrong(lambda x: x - 9, "si4[3]", error=DTypeError, words="9 does not fit si4 | in sub("),
    wrong(lambda x: x * True, "f32[3]", error=DTypeError, words="bool True does not fit | in mul("),
    wrong(lambda x: x * 2j, "f32[3]", error=DTypeError, words="complex 2j does not fit | 'cf32'"),
    wrong(
        lambda x: ptir.select(x > 0, 1.5, x),
        "si32[3]",
        error=DTypeError,
        words="the float 1.5 does not fit | in select(pred: i1[3]",
    ),
    wrong(
        lambda m: ptir.select(m, 1.0, 2.0),
        "i1[3]",
        error=DTypeError,
        words="1.0 and 2.0 have no dtype | fix: make one of them a Tensor",
    ),
    wrong(
        lambda x: ptir.select(x, x, x),
        "f32[3]",
        error=DTypeError,
        words="found dtype f32, expected a bool dtype | in select(pred: f32[3]",
    ),
    wrong(
        lambda x: ptir.exp(x),
        "si32[3]",
        error=DTypeError,
        words="found dtype si32, expected a float or complex | in exp(x: si32[3] | fix: ptir.cast",
    ),
    wrong(
        lambda x: ptir.bit_not(x), "f32[3]", error=DTypeError, words="found dtype f32 | in bit_not("
    ),
    wrong(
        lambda x: ptir.logical_and(x, x),
        "si8[3]",
        error=DTypeError,
        words="found dtype si8, expected a bool dtype | in logical_and(",
    ),
    wrong(lambda x: x < x, "cf32[3]", error=DTypeError, words="found dtype cf32 | in less("),
    wrong(
        lambda x: ptir.cast(x, dtype="f32"),
        "cf32[3]",
        error=DTypeError,
        words="cf32 does not convert to f32 | imaginary part | in cast(x: cf32[3]",
    ),
    wrong(
        lambda x: ptir.cast(x, dtype="float31"),
        "f32[3]",
        error=DTypeError,
        words="'float31' is no element type | in cast( | use one of i1, si4",
    ),
    wrong(
        lambda x: ptir.take(x, x),
        "f32[3]",
        error=DTypeError,
        words="found dtype f32, expected a int or uint | in take(x: f32[3]",
    ),
    wrong(
        lambda x: ptir.reduce_sum(x),
        "i1[3]",
        error=DTypeError,
        words="found dtype i1 | in reduce_sum(",
    ),
    wrong(
        lambda x: ptir.mean(x), "si32[3]", error=DTypeError, words="found si32 | in mean(x: si32[3]"
    ),
    wrong(
        lambda x: ptir.pad(x, low=(1,), high=(0,), value=0.5),
        "si32[3]",
        error=DTypeError,
        words="the float 0.5 does not fit | in pad(x: si32[3]",
    ),
    wrong(
        lambda: ptir.full(shape=(2,), value=2.5, dtype="si32"),
        error=DTypeError,
        words="the float 2.5 does not fit | si32 | in full(",
    ),
    wrong(
        lambda: ptir.full(shape=(2,), value=300, dtype="ui8"),
        error=DTypeError,
        words="300 does not fit ui8 | in full(",
    ),
    wrong(lambda: ptir.iota(shape=(3,), dtype="i1"), error=DTypeError, words="i1 | in iota( | fix"),
)

ARGUMENTS = (
    wrong(
        lambda x: x + object(),
        "f32[3]",
        error=ArgumentError,
        words="(object) is no operand: expected a Tensor, an array or a number | in add(x: f32[3]",
    ),
    wrong(
        lambda x: x * "2",
        "f32[3]",
        error=ArgumentError,
        words="'2' (str) is no operand | in multiply(",
    ),
    wrong(
        lambda x: ptir.softmax(x, axis=x),
        "si32[] 0..0",
        error=ArgumentError,
        words="attribute axis must be known while tracing, found a Tensor (si32[]) | in softmax( | "
        "static_argnames",
    ),
    wrong(
        lambda x: ptir.add(x),
        "f32[3]",
        error=ArgumentError,
        words="add: missing a required argument: 'y' | fix: call it as add(x",
    ),
    wrong(
        lambda x: ptir.exp(x, x),
        "f32[3]",
        error=ArgumentError,
        words="exp: too many positional arguments | fix: call it as exp(x",
    ),
    wrong(
        lambda x: ptir.softmax(x, along=0),
        "f32[3]",
        error=ArgumentError,
        words="softmax: got an unexpected keyword argument 'along' | call it as softmax(x | axis",
    ),
    wrong(
        lambda x: ptir.concat(x),
        "f32[3]",
        error=ArgumentError,
        words="xs is f32[3] | expected a tuple or list | in concat(xs: f32[3]",
    ),
    wrong(
        lambda x: ptir.concat(()), "f32[3]", error=ArgumentError, words="at least one | in concat("
    ),
    wrong(
        lambda x, i: ptir.scatter_reduce(x, i, x, axis=0, reduce="mean"),
        "f32[3]",
        "si64[3] 0..0",
        error=ArgumentError,
        words="reduce is 'mean', expected one of add, max, min, replace | in scatter_reduce(",
    ),
    wrong(
        lambda x: ptir.softmax(3.0) + x,
        "f32[3]",
        error=ArgumentError,
        words="x is 3.0, expected a Tensor | in softmax(x: 3.0) | fix: ptir.tensor(x)",
    ),
    wrong(
        lambda x: ptir.matmul(x, 2.0),
        "f32[3]",
        error=ArgumentError,
        words="y is 2.0, expected a Tensor | in matmul(x: f32[3] | y: 2.0",
    ),
    wrong(
        lambda x: ptir.select(True, x, x),
        "f32[3]",
        error=ArgumentError,
        words="pred is True, expected a Tensor | in select(pred: True",
    ),
    wrong(
        lambda x: ptir.clamp(1.0, x, x),
        "f32[3]",
        error=ArgumentError,
        words="x is 1.0, expected a Tensor | in clamp(x: 1.0",
    ),
    wrong(
        lambda x: ptir.layer_norm(x, 1.0),
        "f32[2,3]",
        error=ArgumentError,
        words="weight is 1.0, expected a Tensor | in layer_norm(",
    ),
    wrong(
        lambda x: ptir.transpose(None, perm=()) + x,
        "f32[3]",
        error=ArgumentError,
        words="x is None, expected a Tensor | in transpose(x: None",
    ),
    wrong(
        lambda q: ptir.attention(q, q, q, window=0),
        "f32[1,1,2,4]",
        error=ArgumentError,
        words="window is 0, expected at least 1 | in attention(",
    ),
    wrong(
        lambda q: ptir.attention(q, q, q, softcap=0.0),
        "f32[1,1,2,4]",
        error=ArgumentError,
        words="softcap is 0.0, expected a positive number | in attention(",
    ),
    wrong(lambda x: x[::0], "f32[3]", error=ArgumentError, words="has step 0"),
    wrong(
        lambda x: ptir.transpose(x, perm=1),
        "f32[3]",
        error=ArgumentError,
        words="perm is 1, expected a tuple or list | in transpose(",
    ),
    wrong(
        lambda x: ptir.softmax(x, axis="0"),
        "f32[3]",
        error=ArgumentError,
        words="axis is '0', expected an integer | in softmax(",
    ),
    wrong(
        lambda x: ptir.reduce_sum(x, axes="a"),
        "f32[3]",
        error=ArgumentError,
        words="axes is 'a', expected an integer or a tuple or list or None | in reduce_sum(",
    ),
    wrong(
        lambda x: ptir.reduce_sum(x, out_dtype="si32"),
        "f32[3]",
        error=DTypeError,
        words="out_dtype is si32 and the operand f32 | fix: ptir.cast",
    ),
    wrong(
        lambda x: x + 10**400,
        "f32[3]",
        error=DTypeError,
        words="the number of 1329 bits does not fit f32 | in add(",
    ),
)
