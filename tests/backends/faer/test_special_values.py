"""Signed zeros, infinities, NaN and the limits of a dtype: jit gives what eager mode gives."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferencePlan
from gptrs.ir.dispatch import OPS
from gptrs.ir.primitives import Elementwise
from gptrs.ir.rewrite import Fuel, Rule, Sample
from gptrs.ir.types import Array, DType, as_dtype
from gptrs.passes.rule_samples import LETTERS, Draw, difference, filled_in, letter_of
from gptrs.passes.rules import RULES
from tests.cases.sample import FLOATS, differences, same_bits
from tests.support.marks import slow_unless
from tests.support.rule_samples import apply

NAMED = (0.0, 1.0, math.inf, 0.5, 2.0, 3.0, 2.5)
ROUNDED = {
    *("exp", "log", "tanh", "erf", "sin", "cos", "pow", "log1p", "log2", "log10", "expm1", "exp2"),
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2", "hypot"),
    "cbrt",
}
"""Ops whose kernels and NumPy's functions differ in the last places, up to these."""
PLACES = 8


def special(dtype: DType, *, ends: bool = True) -> Array:
    """Special values of ``dtype`` with both signs, and NaN; also the least and the largest with
    ``ends``."""
    info: Any = ml_dtypes.finfo(dtype.numpy)
    limits = (info.smallest_subnormal, info.smallest_normal, info.max) if ends else ()
    positive = [*NAMED, *map(float, limits)]
    return np.array([*positive, *(-n for n in positive), math.nan]).astype(dtype.numpy)


def pairs(dtype: DType, count: int, *, ends: bool = True) -> list[Array]:
    """Every combination of ``count`` special values."""
    grid = np.meshgrid(*[special(dtype, ends=ends)] * count)
    return [np.ascontiguousarray(each.ravel()) for each in grid]


def eagerly(function: Callable[..., Any], *arrays: Array) -> Array:
    with ptir.eager():
        return function(*map(ptir.tensor, arrays)).numpy()


def close(name: str, found: Array, expected: Array) -> bool:
    """Equal bits; for an op that rounds in its own way, where results are zero or not finite."""
    if name not in ROUNDED:
        return same_bits(found, expected)
    fixed = (expected == 0) | ~np.isfinite(expected.astype(np.float64))
    return same_bits(found[fixed], expected[fixed]) and not differences(found, expected, PLACES)


def on_floats(*counts: int) -> list[str]:
    """The elementwise ops that take ``counts`` floats."""
    return [
        name
        for name, op in OPS.items()
        if isinstance(op, Elementwise) and len(op.operand_names) in counts and not op.predicate
        if not name.startswith(("logical", "bit", "shift", "cast"))
        if not op.kinds or "float" in op.kinds
        if name not in ("real", "imag", "conj")  # of complex numbers alone
    ]


@pytest.mark.parametrize("dtype", ["f32", pytest.param("f64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", on_floats(1, 2, 3))
def test_elementwise_ops_agree(name: str, dtype: str) -> None:
    op: Any = OPS[name]
    function = lambda *operands: op(*operands)
    arrays = pairs(as_dtype(dtype), len(op.operand_names))
    compiled = ptir.jit(function)(*arrays).numpy()
    assert close(name, compiled, eagerly(function, *arrays))


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("dtype", ["f32", pytest.param("f64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", on_floats(2))
def test_no_rule_forgets_a_special_number(name: str, dtype: str) -> None:
    """The same ops with a number on either side, for which there are rules."""
    op: Any = OPS[name]
    x = special(as_dtype(dtype))
    for number in special(as_dtype(dtype)).tolist():
        for function in (lambda x: op(x, number), lambda x: op(number, x)):  # noqa: B023
            expected = eagerly(function, x)
            assert same_bits(ptir.jit(precise=True)(function)(x).numpy(), expected), number
            found = ptir.jit(function)(x).numpy()
            assert not differences(found, expected, 4), number
            zero = expected == 0
            assert same_bits(found[zero], expected[zero]), number


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("power", [0.5, -0.5])
def test_roots_are_powers_everywhere(power: float, dtype: str) -> None:
    x = special(as_dtype(dtype))
    compiled = ptir.jit(lambda x: x**power)(x).numpy()
    assert close("pow", compiled, eagerly(lambda x: x**power, x))
    found = ptir.jit(lambda x: x**power)(np.array([-math.inf, -0.0], x.dtype)).numpy()
    expected = [math.inf, 0.0] if power > 0 else [0.0, math.inf]
    assert same_bits(found, np.array(expected, x.dtype))


def is_elementwise(sample: Sample) -> bool:
    """Whether all arrays of a sample have the same shape, whatever that is, and may be floats."""
    texts = [hole for hole in sample.values() if isinstance(hole, str) and "[" in hole]
    return bool(texts) and all(re.match(r"[TFWRS]\[\*\]", text) for text in texts)


@pytest.mark.parametrize(
    ("rule", "sample"),
    [
        pytest.param(rule, sample, id=f"{rule.name}-{i}", marks=slow_unless(i == 0))
        for rule in RULES
        for i, sample in enumerate(rule.samples)
        if is_elementwise(sample)
    ],
)
def test_rules_keep_special_values(rule: Rule, sample: Sample) -> None:
    """Also those that leave the ends of a dtype open keep zeros, infinities and NaN."""
    count = sum(isinstance(hole, str) and "[" in hole for hole in sample.values())
    tried = 0
    for name in LETTERS[letter_of(sample)]:
        if name not in FLOATS:
            continue
        arrays = pairs(as_dtype(name), count, ends=not rule.finite)
        drawn = filled_in(rule, sample, Draw(name, {"k": 2, "m": 3, "n": 4}, arrays[0].shape))
        if drawn is None:
            continue
        fuel = Fuel()
        after = apply(drawn.program, rule, fuel=fuel)
        tried += len(fuel.log)
        (expected,) = ReferencePlan(drawn.program).run(arrays, {})
        (found,) = ReferencePlan(after).run(arrays, {})
        assert difference(rule, found, expected) == "", name
        zero = expected == 0
        assert same_bits(found[zero], expected[zero]), name
    assert tried


# Of zeros of two signs one is greater, whatever their order, to which NumPy's functions look.


def flipped(greatest: Callable[[Any], Any], x: Any, name: str) -> Any:
    """The greatest, or least, by a function for the greatest."""
    return greatest(x) if name == "max" else -greatest(-x)


EXTREMES: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda x, name: OPS[f"reduce_{name}"](x),
    "rows": lambda x, name: OPS[f"reduce_{name}"](x, axes=-1),
    "columns": lambda x, name: OPS[f"reduce_{name}"](x, axes=0),
    "several axes": lambda x, name: OPS[f"reduce_{name}"](x.reshape(2, 2, -1), axes=(0, 2)),
    "window": lambda x, name: ptir.reduce_window(
        x.reshape(1, *x.shape, 1), reduce=name, window=(1, x.shape[1])
    ),
    "segment": lambda x, name: ptir.segment_reduce(
        x, ptir.full(shape=x.shape[:1], value=0, dtype=ptir.si32), count=1, reduce=name
    ),
    "scattered": lambda x, name: ptir.scatter_reduce(
        x, ptir.full(shape=x.shape, value=1, dtype=ptir.si32), x, axis=0, reduce=name
    ),
    "pairs": lambda x, name: OPS[f"{name}imum"](x[:2], x[2:]),
    "pairs with +0": lambda x, name: OPS[f"{name}imum"](x, 0.0),
    "pairs with -0": lambda x, name: OPS[f"{name}imum"](-0.0, x),
    "clamped": lambda x, name: ptir.clamp(x[:2], x[2:], x[:1]),
    "pool": lambda x, name: flipped(
        lambda x: ptir.max_pool2d(x.reshape(1, 4, -1, 1), window=(4, 1)), x, name
    ),
    "relu": lambda x, name: ptir.relu(x),
    "relu6": lambda x, name: ptir.relu6(x),
}


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=slow_unless(d == "f32")) for d in ("f32", "f64", "f16", "bf16")]
)
@pytest.mark.parametrize("name", EXTREMES)
def test_zeros_have_an_order(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for extreme in ("max", "min"):
        function = lambda x: EXTREMES[name](x, extreme)  # noqa: B023 - called here
        compiled = ptir.jit(function)
        for columns in (1, 2, 17, 70, 700):
            common = np.where(rng.random((4, columns)) < 1.5 / columns, 1.0, -1.0)
            signs = (common if extreme == "max" else -common).astype(as_dtype(dtype).numpy)
            expected = np.signbit(eagerly(function, signs))
            for found in (compiled(signs * 0).numpy(), eagerly(function, signs * 0)):
                assert not found.any()
                assert np.array_equal(np.signbit(found), expected), (extreme, columns)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_keep_the_sign_of_nan(dtype: str) -> None:
    """Two numbers that differ by it alone are two, in a loop and in memory."""

    @ptir.jit
    def chosen(pred: ptir.Tensor) -> ptir.Tensor:
        minus, plus = (
            ptir.full(shape=(), value=nan, dtype=as_dtype(dtype)) for nan in (-math.nan, math.nan)
        )
        return ptir.where(pred, minus, plus)

    found = chosen(np.array([True, False])).numpy()
    assert np.signbit(found).tolist() == [True, False]
    assert np.isnan(found.astype(np.float32)).all()


def test_extremes_of_neighbours_of_narrow_floats() -> None:
    """The loop is so long that LLVM does not inline it, and cannot fail all the same."""
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((17, 3, 3)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    function: Any = lambda x, y: ptir.nextafter(x, y).max(axis=1)
    with ptir.backend("reference"):
        expected = ptir.jit(function)(x, y)
    assert ptir.jit(function)(x, y).numpy().tobytes() == expected.numpy().tobytes()


def test_a_complex_product_over_no_axes_keeps_signs_of_zeros() -> None:
    x = np.array([complex(-0.0, -0.0), complex(0.0, -0.0), complex(-0.0, 1.0)])
    for backend in ("faer", "reference"):
        made: Any = ptir.jit(lambda x: ptir.prod(x, axis=()), backend=backend)
        assert made(x).numpy().tobytes() == x.tobytes()
        for name in ("sum", "mean"):
            one: Any = ptir.jit(
                lambda x, name=name: getattr(ptir, name)(x, axis=()), backend=backend
            )
            zero = np.array([-0.0], np.float32)
            assert one(zero).numpy().tobytes() == getattr(np, name)(zero, axis=()).tobytes()
