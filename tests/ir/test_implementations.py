"""Alternative implementations of composites, built in and registered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, ShapeError, VerifyError
from gptrs.ir.composites import Composite
from gptrs.ir.dispatch import OPS
from gptrs.ir.implementation import Implementation
from gptrs.ir.sizes import evaluate
from tests.support.overriding import RANDOM, X, softmax_function

pytestmark = pytest.mark.usefixtures("own_implementations")


def attention_operands(keys: int, kv: tuple[Any, Any] = (None, None)) -> list[Any]:
    shapes = ((2, 4, 7, 8), (2, 2, keys, 8), (2, 2, keys, 6))
    return [*(RANDOM.standard_normal(s).astype(np.float32) for s in shapes), *kv]


KV = np.array([3, 295], np.int32), np.array([200, 300], np.int32)
ALTERNATIVES: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("softmax", "two_pass", [X], {}),
    ("softmax", "two_pass", [X], {"axis": 0}),
    ("softmax", "two_pass", [X[:, :0]], {"axis": 0}),
    ("softmax", "online", [X], {}),
    ("softmax", "online", [np.where(X > 0, X, -np.inf).astype(np.float32)], {}),
    ("softmax", "online", [X.T.copy()], {"axis": 0}),
    ("softmax", "online", [RANDOM.standard_normal((2, 3001)).astype(np.float16)], {}),
    ("layer_norm", "one_pass", [X, None, None], {}),
    ("layer_norm", "one_pass", [X, X[0], X[1]], {"eps": 1e-3}),
    ("layer_norm", "one_pass", [X.astype(np.float16), None, X[1].astype(np.float16)], {}),
    ("attention", "blocked", attention_operands(300), {}),
    ("attention", "blocked", attention_operands(129), {"causal": True, "scale": 0.2}),
    ("attention", "blocked", attention_operands(300, KV), {"causal": True}),
    ("attention", "blocked", attention_operands(300, (None, KV[1])), {"window": 5}),
    ("attention", "blocked", attention_operands(300, (KV[0], None)), {"causal": True}),
]


@pytest.mark.parametrize(("name", "other", "operands", "attrs"), ALTERNATIVES)
def test_alternatives_compute_what_the_definition_does(
    name: str, other: str, operands: list[Any], attrs: dict[str, Any]
) -> None:
    op = OPS[name]
    tensors = [None if o is None else ptir.tensor(o) for o in operands]
    ready, full = op.prepare(tensors, attrs)
    arrays = [o for o in operands if o is not None]
    (expected,) = evaluate(op.definition(ready, full), arrays)
    (found,) = evaluate(op.implemented(op.implementations[other], ready, full), arrays)
    # A few roundings of numbers up to 10, and one of f16.
    tolerance = 2e-6 if expected.dtype == np.float32 else 1e-3
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert found.dtype == expected.dtype


def test_every_alternative_has_a_row() -> None:
    built_in = {
        (op.name, other)
        for op in OPS.values()
        if isinstance(op, Composite)
        for other, known in op.implementations.items()
        if known.function.__module__.startswith("gptrs.")
    }
    assert built_in == {(name, other) for name, other, *_ in ALTERNATIVES}


def test_a_function_defined_again_replaces_itself() -> None:
    def register(factor: float) -> None:
        def scaled(x: Any, *, axis: int) -> Any:
            return ptir.exp(x) * factor

        scaled.__module__ = "__main__"  # a notebook's cell that runs again
        ptir.implementation("softmax", name="scaled_again")(scaled)

    function = softmax_function(overrides=None)
    register(1.0)
    with ptir.overrides({"softmax": "force=scaled_again"}):
        one = function(X).numpy()
        register(2.0)
        np.testing.assert_array_equal(function(X).numpy(), one * 2)
    assert "scaled_again (revision 1)" in function.retraces()[-1].reason


def register(function: Any, name: str = "other", when: Any = None) -> Any:
    return ptir.implementation("softmax", name=name, when=when)(function)


def test_what_cannot_be_registered() -> None:
    def good(x: Any, *, axis: int) -> Any:
        return x

    def without_axis(x: Any) -> Any:
        return x

    def with_another(x: Any, y: Any, axis: int) -> Any:
        return x + y

    def renamed(y: Any, axis: int) -> Any:
        return y

    def anything(*args: Any, **kwargs: Any) -> Any:
        return args[0]

    for call, message in (
        (lambda: ptir.implementation("softmix", name="a")(good), "no composite 'softmix'"),
        (lambda: register(good, "two_pass"), "softmax has an implementation 'two_pass' already"),
        (lambda: register(good, "portable"), "'portable' cannot name an implementation"),
        (lambda: register(good, "two words"), "'two words' cannot name an implementation"),
        (lambda: register(without_axis), "unexpected keyword argument 'axis'"),
        (lambda: register(with_another), "missing a required argument: 'y'"),
        (lambda: register(renamed), "y is in the place of x"),
        (lambda: register(good, when=renamed), "names 'y'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    assert register(good) is good
    register(anything, "any")
    assert isinstance(OPS["softmax"].implementations["any"], Implementation)


def test_what_is_no_tensor_is_an_error() -> None:
    def three(x: Any, axis: int) -> Any:
        return 3

    register(three)
    for eager in (False, True):
        with (
            ptir.eager(eager),
            ptir.overrides({"softmax": "force=other"}),
            pytest.raises(VerifyError, match="softmax returned 3, expected a Tensor"),
        ):
            softmax_function()(X)


def test_errors_in_an_implementation_name_it() -> None:
    def seven(x: Any, axis: int) -> Any:
        return x.reshape(7)

    register(seven)
    with (
        ptir.overrides({"softmax": "force=other"}),
        pytest.raises(ShapeError, match="in implementation 'other' of softmax"),
    ):
        softmax_function()(X)
