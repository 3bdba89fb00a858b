"""Elementwise ops, and those of bits."""

# torch's test samples have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gptrs import ptir
from gptrs.ir.dispatch import OPS
from tests.cases.sample import LIBM
from tests.support.op_info.row import B, F, I, R, Row, op, plain, same, unless


def _alpha(name: str) -> Callable[..., Any]:
    def call(x: Any, y: Any, alpha: Any = 1) -> Any:
        unless(alpha != 1 and x.dtype.is_float, "a product and a sum that are rounded once")
        return OPS[name](x, y if alpha == 1 else y * alpha)

    return call


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if max is None:
        unless(min is None, "no bound")
        return OPS["maximum"](x, min)
    return ptir.minimum(x, max) if min is None else ptir.clamp(x, min, max)


def _round(x: Any, decimals: int = 0) -> Any:
    unless(decimals, "decimals")
    return ptir.round(x)


NUMPY_REMAINDER = "NaN where the quotient is beyond the range of the dtype"

ROWS: tuple[Row, ...] = (
    *plain(same("abs", "neg"), (*F, *I[:3])),
    Row("sign", op("sign"), (*F, *I[:3]), numpy=np.sign, differs="0 for NaN"),
    *plain(same("exp", "log", "tanh", "erf", "sin", "cos", "sigmoid"), ulps=8, why=LIBM),
    *plain(same("sqrt", "rsqrt", "reciprocal"), ulps=4, why=LIBM),
    *plain({"floor": "floor", "ceil": "ceil", "isfinite": "is_finite"}),
    Row("round", _round),
    Row("round.decimals_0", _round),
    *plain(same("logical_not", "logical_and", "logical_or"), B),
    *plain({"bitwise_not": "bit_not", "bitwise_and": "bit_and", "bitwise_or": "bit_or"}, I),
    *plain({"bitwise_xor": "bit_xor", "bitwise_left_shift": "shift_left"}, I),
    *plain({"bitwise_right_shift": "shift_right"}, I),
    Row("add", _alpha("add"), R),
    Row("sub", _alpha("sub"), R),
    *plain(same("mul"), R),
    Row("div.no_rounding_mode", lambda x, y: x / y),
    Row("floor_divide", lambda x, y: x // y, R),
    Row("remainder", op("remainder"), R, numpy=np.remainder, differs=NUMPY_REMAINDER),
    *plain(same("maximum", "minimum"), R),
    *plain(same("pow"), R, ulps=8, why=LIBM),
    Row("__rpow__", lambda x, y: y**x, ulps=8, why=LIBM),
    Row("square", lambda x: x**2, R),
    *plain({"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}, R),
    *plain({"eq": "equal", "ne": "not_equal"}, R),
    Row("where", lambda x, condition, y: ptir.select(condition, x, y), R),
    Row("clamp", _clamp, R),
    Row("clamp_min", _clamp, R),
    Row("clamp_max", lambda x, most: _clamp(x, None, most), R),
)
