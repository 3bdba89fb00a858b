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

Distance = Elementwise[[Tensor | Scalar, Tensor | Scalar], Tensor]
DTYPES = ("f32", "f64", "f16", "bf16")


@pytest.fixture
def distance() -> Iterator[Distance]:
    """√(x² + y²), which no table but that of the ops knows."""

    @elementwise()
    def distance(x: Tensor | Scalar, y: Tensor | Scalar) -> Type:
        """√(x² + y²)."""
        for operand in (x, y):
            if isinstance(operand, Tensor):
                require(operand, "float")
        return Type(one_shape(x, y), one_dtype(x, y))

    @distance.numpy
    def _(x: Any, y: Any) -> Array:
        return cast("Array", np.hypot(x, y))

    assert distance not in RULES
    yield cast("Distance", distance)
    del OPS["distance"]


def array(*shape: int, dtype: str = "f32") -> Array:
    drawn = np.random.default_rng(len(shape)).normal(size=shape)
    return drawn.astype(ptir.tensor(np.zeros(0), dtype=dtype).numpy().dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_runs_between_fused_loops(distance: Distance, dtype: str) -> None:
    function = lambda x, y: -distance(x + 1.0, y * 2.0)
    x, y = array(3, 7, dtype=dtype), array(7, dtype=dtype)
    compiled = ptir.jit(precise=True)(function)
    with ptir.eager():
        expected = function(ptir.tensor(x), ptir.tensor(y)).numpy()
    assert same_bits(compiled(x, y).numpy(), expected)
    assert "distance" in str(compiled.explain(x, y)), "what only the reference does is said"


def test_it_takes_numbers_and_nothing(distance: Distance) -> None:
    five = ptir.jit(lambda x: distance(x * 1.0, 4.0))
    assert five(np.full((2, 3), 3, np.float32)).numpy().tolist() == [[5.0] * 3] * 2
    assert five(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert five(np.float32(3)).numpy() == 5


def test_its_extents_may_be_symbols(distance: Distance) -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: distance(x, x.sum(0)).max())
    for rows in (1, 4):
        x = array(rows, 3)
        assert function(x).numpy() == np.hypot(x, x.sum(0, dtype=np.float32)).max()
    assert len(function.retraces()) == 1


def test_its_text_gives_the_program_again(distance: Distance) -> None:
    program = record(lambda x, y: distance(x, y) + distance(2.0, y), "f32[?S,3]", "f32[3]")
    text = str(program)
    assert "ptir.distance(2.0, x1)" in text
    assert str(ptir.parse(text)) == text == str(retrace(text))


def test_rules_rewrite_it(distance: Distance) -> None:
    def drop_sign(x: Tensor, y: Tensor) -> Tensor:
        """A square has no sign."""
        return distance(x, y)

    rule = rewrite(lambda x, y: distance(-x, y), samples=[{"x": "F[*]", "y": "F[*]"}])(drop_sign)
    program = record(
        lambda x, y: distance(ptir.broadcast_to(-x, shape=(2, 3)), y), "f32[3]", "f32[3]"
    )
    fuel = Fuel()
    after = apply(program, rule, fuel=fuel)
    assert fuel.log == ["drop_sign"]
    assert_same_results(program, after)


@pytest.mark.slow
def test_random_programs_have_it(distance: Distance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        GENERATORS, "distance", lambda b: distance(x := b.value("float"), b.of(x.type))
    )
    search = Search()
    ops = ("distance", "add", "neg", "slice", "reduce_max", "transpose")
    search.run(60, 0, ops=ops)
    assert search.programs == 60
    assert search.instructions["test_new_op"] > 10
