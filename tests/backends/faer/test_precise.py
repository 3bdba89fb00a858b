"""``precise=True``: jitted functions give the bits of eager mode, whatever is fused.

Everything that a jitted function may do otherwise is tried: narrow floats that stay f32 between
instructions, sums in another order, functions whose last bits differ, rewrites that round.
"""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.dispatch import OPS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from tests.cases import CASES, is_first
from tests.cases.sample import Case, all_same_bits, inputs, several
from tests.support.marks import slow_unless

FLOATS = ("f32", "f16", "bf16", "f64")
ROWS = [
    pytest.param(
        case,
        dtype,
        id=f"{case.op}-{dtype}-{number}",
        marks=slow_unless(is_first(case) and dtype == case.dtypes[0]),
    )
    for number, case in enumerate(CASES)
    for dtype in [d for d in case.dtypes if d in FLOATS][:3:2]
]


def jitted(function: Callable[..., Any]) -> Any:
    return ptir.jit(backend="faer", precise=True)(function)


def arrays(results: Any) -> tuple[Array, ...]:
    return tuple(result.numpy() for result in several(results))


@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_an_op_has_the_bits_of_eager(case: Case, dtype: str) -> None:
    made = inputs(case.samples[0], dtype)

    def call(*given: Any) -> Any:
        return OPS[case.op](*made.operands(given), **made.sample.attrs)

    with ptir.eager():
        expected = arrays(call(*map(Tensor, made.arrays)))
    assert all_same_bits(arrays(jitted(call)(*made.arrays)), expected)


def norm(x: Any, w: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * ptir.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w[0]


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a chain": lambda x, w: ((x * 1.1 + 0.3) * x - x / 3.0) * 0.1,
    "numbers that meet": lambda x, w: (x * 0.1) * 0.3 + 0.1 + 0.7,
    "an activation": lambda x, w: ptir.gelu(x * 0.7) + x,
    "a product with an epilogue": lambda x, w: ptir.gelu(x @ w + w[0]) + x,
    "a norm": norm,
    "softmax": lambda x, w: ptir.softmax(x @ w / 8.0, axis=-1) @ w,
    "attention": lambda x, w: ptir.attention(*[(x * s)[None, None] for s in (1.0, 0.5, 0.1)]),
    "sums": lambda x, w: (x.sum(0), x.sum(), (x * x).sum(-1), ptir.var(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_function_has_the_bits_of_eager(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((40, 64)).astype(dtype), rng.standard_normal((64, 64)).astype(dtype)
    with ptir.eager():
        expected = arrays(FUNCTIONS[name](Tensor(x), Tensor(w)))
    assert all_same_bits(arrays(jitted(FUNCTIONS[name])(x, w)), expected)


def test_arithmetic_stays_fused() -> None:
    function = jitted(FUNCTIONS["a chain"])
    report = function.explain(*[np.ones(1000, ml_dtypes.bfloat16)] * 2).report
    assert [step.kind for step in report.steps] == ["region"]
