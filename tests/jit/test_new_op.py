"""A new op with a type rule and a NumPy meaning alone works in every mode."""

# Traced functions take any array, and the holes of a pattern have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer.scalars import RULES
from gptrs.ir.checks import one_dtype, one_shape, require
from gptrs.ir.dispatch import OPS
from gptrs.ir.primitives import Elementwise, elementwise
from gptrs.ir.program import Scalar
from gptrs.ir.rewrite import Fuel, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from tests.cases.programs import record, retrace
from tests.cases.sample import same_bits
from tests.fuzz.control import GENERATORS
from tests.fuzz.search import Search
from tests.support.rule_samples import apply, assert_same_results

Hypot = Elementwise[[Tensor | Scalar, Tensor | Scalar], Tensor]
DTYPES = ("f32", "f64", "f16", "bf16")


@pytest.fixture
def hypot() -> Iterator[Hypot]:
    """√(x² + y²), which no table but that of the ops knows."""

    @elementwise()
    def hypot(x: Tensor | Scalar, y: Tensor | Scalar) -> Type:
        """√(x² + y²)."""
        for operand in (x, y):
            if isinstance(operand, Tensor):
                require(operand, "float")
        return Type(one_shape(x, y), one_dtype(x, y))

    @hypot.numpy
    def _(x: Any, y: Any) -> Array:
        return cast("Array", np.hypot(x, y))

    assert hypot not in RULES
    yield cast("Hypot", hypot)
    del OPS["hypot"]


def array(*shape: int, dtype: str = "f32") -> Array:
    drawn = np.random.default_rng(len(shape)).normal(size=shape)
    return drawn.astype(ptir.tensor(np.zeros(0), dtype=dtype).numpy().dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_runs_between_fused_loops(hypot: Hypot, dtype: str) -> None:
    function = lambda x, y: -hypot(x + 1.0, y * 2.0)
    x, y = array(3, 7, dtype=dtype), array(7, dtype=dtype)
    compiled = ptir.jit(precise=True)(function)
    with ptir.eager():
        expected = function(ptir.tensor(x), ptir.tensor(y)).numpy()
    assert same_bits(compiled(x, y).numpy(), expected)
    assert "hypot" in str(compiled.explain(x, y)), "what only the reference does is said"


def test_it_takes_numbers_and_nothing(hypot: Hypot) -> None:
    five = ptir.jit(lambda x: hypot(x * 1.0, 4.0))
    assert five(np.full((2, 3), 3, np.float32)).numpy().tolist() == [[5.0] * 3] * 2
    assert five(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert five(np.float32(3)).numpy() == 5


def test_its_extents_may_be_symbols(hypot: Hypot) -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: hypot(x, x.sum(0)).max())
    for rows in (1, 4):
        x = array(rows, 3)
        assert function(x).numpy() == np.hypot(x, x.sum(0, dtype=np.float32)).max()
    assert len(function.retraces()) == 1


def test_its_text_gives_the_program_again(hypot: Hypot) -> None:
    program = record(lambda x, y: hypot(x, y) + hypot(2.0, y), "f32[?S,3]", "f32[3]")
    text = str(program)
    assert "ptir.hypot(2.0, x1)" in text
    assert str(ptir.parse(text)) == text == str(retrace(text))


def test_rules_rewrite_it(hypot: Hypot) -> None:
    def drop_sign(x: Tensor, y: Tensor) -> Tensor:
        """A square has no sign."""
        return hypot(x, y)

    rule = rewrite(lambda x, y: hypot(-x, y), samples=[{"x": "F[*]", "y": "F[*]"}])(drop_sign)
    program = record(lambda x, y: hypot(ptir.broadcast_to(-x, shape=(2, 3)), y), "f32[3]", "f32[3]")
    fuel = Fuel()
    after = apply(program, rule, fuel=fuel)
    assert fuel.log == ["drop_sign"]
    assert_same_results(program, after)


@pytest.mark.slow
def test_random_programs_have_it(hypot: Hypot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GENERATORS, "hypot", lambda b: hypot(x := b.value("float"), b.of(x.type)))
    search = Search()
    ops = ("hypot", "add", "neg", "slice", "reduce_max", "transpose")
    search.run(60, 0, ops=ops)
    assert search.programs == 60
    assert search.instructions["test_new_op"] > 10
