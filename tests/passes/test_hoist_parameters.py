"""Hoisting of derived parameters: computed once per lifetime, within the memory bound."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferenceBackend
from gptrs.errors import ElementError
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import DerivedParam, Program, verify
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from gptrs.jit import derived
from gptrs.passes.base import Context
from gptrs.passes.hoist import hoist_parameters
from gptrs.passes.pipeline import lower

CONTEXT = Context(ReferenceBackend())


def record(function: Callable[..., Any], **types: str) -> Program:
    """The program of ``function``; parameters called x are inputs, others weights."""
    recorder = Recorder("f")
    params = [
        recorder.input(Type.parse(t), n, role="input" if n == "x" else "parameter")
        for n, t in types.items()
    ]
    with interpreter(recorder):
        return recorder.finish([function(*params)])


def hoisted(function: Callable[..., Any], **types: str) -> list[DerivedParam]:
    program = record(function, **types)
    after = hoist_parameters(program, CONTEXT)
    verify(after)
    assert after.params[: len(program.params)] == program.params
    assert hoist_parameters(after, CONTEXT) is after
    return [param for param in after.params if isinstance(param, DerivedParam)]


def ops(param: DerivedParam) -> list[str]:
    verify(param.definition)
    return [instruction.op.name for instruction in param.definition.body]


def test_a_scaled_weight_is_one_parameter() -> None:
    (param,) = hoisted(lambda x, w, s: x @ (w * s), x="f32[3,4]", w="f32[4,5]", s="f32[5]")
    assert param.name == "w_derived"
    assert [source.name for source in param.sources] == ["s", "w"]
    assert ops(param) == ["broadcast_to", "mul"]
    assert param.type == Type.parse("f32[4,5]")


def test_values_that_share_parameters_go_together() -> None:
    def batch_norm(x: Tensor, mean: Tensor, var: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        scale = gamma * ptir.rsqrt(var + 1e-5)
        return x * scale + (beta - mean * scale)

    vectors = dict.fromkeys(("mean", "var", "gamma", "beta"), "f32[5]")
    found = hoisted(batch_norm, x="f32[3,5]", **vectors)
    assert sorted(ops(param)[-1] for param in found) == ["mul", "sub"]


@pytest.mark.parametrize(
    ("why", "function", "types"),
    [
        ("nothing is computed", lambda x, w: x @ w, {"w": "f32[4,5]"}),
        ("it would be wider", lambda x, w: x @ w.astype("f32"), {"w": "f16[4,5]"}),
        (
            "it would be wider, and is no small vector",
            lambda x, w: x[0, 0] * w.astype("f32"),
            {"w": f"f16[{2**18 + 1}]"},
        ),
        ("it would be larger", lambda x, w: x * w, {"w": "f32[4]"}),
        ("a reshape is free", lambda x, w: x @ w.reshape(4, 5), {"w": "f32[2,2,5]"}),
        ("both are needed", lambda x, w: (x @ ptir.exp(w)) @ w, {"w": "f32[4,4]"}),
        ("constants are no parameters", lambda x: x * ptir.iota(shape=(4,), dtype=ptir.f32), {}),
    ],
)
def test_what_stays(why: str, function: Callable[..., Any], types: dict[str, str]) -> None:
    assert hoisted(function, x="f32[3,4]", **types) == [], why


def test_what_is_made_larger_is_derived_before() -> None:
    (param,) = hoisted(lambda x, w: x * ptir.exp(w), x="f32[3,4]", w="f32[4]")
    assert ops(param) == ["exp"]


def test_a_bias_of_16_bits_is_widened_once() -> None:
    (param,) = hoisted(lambda x, w: x + w.astype("f32"), x="f32[3,4]", w="bf16[4]")
    assert ops(param) == ["cast"]
    assert param.type == Type.parse("f32[4]")

    def layer(x: Tensor, w: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return (x @ w.astype("f32") + b.astype("f32")) * ptir.exp(s)

    found = hoisted(layer, x="f32[3,4]", w="f16[4,5]", b="f16[5]", s="f32[5]")
    assert [param.name for param in found] == ["b_derived", "s_derived"]


def test_sizes_that_are_not_known_stay() -> None:
    (param,) = hoisted(lambda x, w: x * ptir.exp(w), x="f32[?S,4]", w="f32[4]")
    assert param.type == Type.parse("f32[4]")


def test_one_of_several_results_is_derived() -> None:
    def both(x: Tensor, w: Tensor) -> Tensor:
        values, places = ptir.ops.sort(w)
        return x * values * ptir.exp(-ptir.cast(places, dtype=ptir.f32))

    found = hoisted(both, x="f32[3,4]", w="f32[4]")
    assert len(found) == 0  # both results are larger than w
    (param,) = hoisted(lambda x, w: x * ptir.ops.sort(w)[0], x="f32[3,4]", w="f32[4]")
    assert ops(param) == ["sort"]

    def beside(x: Tensor, w: Tensor) -> Tensor:
        values, places = ptir.ops.sort(w)
        ptir.exp(-ptir.cast(places, dtype=ptir.f32))  # nobody reads it
        return x * values

    (param,) = hoisted(beside, x="f32[3,4]", w="f32[4]")
    assert ops(param) == ["sort"]


def test_without_fuel_nothing_is_derived() -> None:
    program = record(lambda x, w: x * ptir.exp(w), x="f32[3,4]", w="f32[4]")
    context = Context(ReferenceBackend())
    context.fuel.left = 0
    assert hoist_parameters(program, context) is program


def test_the_whole_pipeline_derives_and_then_rests() -> None:
    program = record(lambda x, w, s: x @ (w * s), x="f32[3,4]", w="f32[4,5]", s="f32[5]")
    once = lower(program, CONTEXT)
    assert [p.name for p in once.params if isinstance(p, DerivedParam)] == ["w_derived"]
    assert str(lower(once, CONTEXT)) == str(once)


class Counted:
    """A source of parameters that counts how often they are loaded."""

    def __init__(self, array: Array) -> None:
        self.array, self.loads = array, 0

    def load(self, name: str) -> Array:
        self.loads += 1
        return self.array


@pytest.fixture(params=["reference", "faer"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def weights(seed: int = 0) -> tuple[Parameter, Parameter, Array, Array]:
    rng = np.random.default_rng(seed)
    w, s = rng.normal(size=(4, 5)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    return Parameter(w, "w"), Parameter(s, "s"), w, s


def test_it_is_computed_once_and_gives_the_same(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    evaluate = derived.evaluate

    def counting(program: Program, arrays: Any) -> Any:
        counted.append(1)
        return evaluate(program, arrays)

    monkeypatch.setattr(derived, "evaluate", counting)

    @ptir.jit(backend=backend)
    def function(x: Any, w: Any, s: Any) -> Any:
        return x @ (w * s)

    x = np.ones((2, 4), np.float32)
    first = weights(1)
    for _ in range(3):
        found = function(x, *first[:2]).numpy()
        np.testing.assert_allclose(found, x @ (first[2] * first[3]), rtol=1e-5)
    assert len(counted) == 1
    other = weights(2)
    found = function(x, *other[:2]).numpy()  # the program is the same one
    np.testing.assert_allclose(found, x @ (other[2] * other[3]), rtol=1e-5)
    assert function.cache_info().misses == 1
    assert len(counted) == 2
    found = function(np.ones((3, 4), np.float32), *first[:2]).numpy()  # another program
    np.testing.assert_allclose(found[0], x[0] @ (first[2] * first[3]), rtol=1e-5)
    assert len(counted) == 2


def test_the_sources_are_released(backend: str) -> None:
    array = np.arange(20, dtype=np.float32).reshape(4, 5)
    source = Counted(array)
    w = Parameter.from_source("w", Type.of(array), source)

    @ptir.jit(backend=backend)
    def function(x: Any) -> Any:
        return x @ ptir.exp(w * 0.01)

    x = np.ones((2, 4), np.float32)
    for _ in range(3):
        np.testing.assert_allclose(function(x).numpy(), x @ np.exp(array * 0.01), rtol=1e-5)
    assert source.loads == 1
    assert w.numpy() is array  # loaded again for who asks
    assert source.loads == 2


def known() -> dict[Any, Any]:
    gc.collect()
    return {**derived._DERIVED._known}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
def test_they_go_with_the_model() -> None:
    before = known()
    w, s, *_ = weights(3)

    @ptir.jit
    def function(x: Any, w: Any, s: Any) -> Any:
        return x @ (w * s)

    function(np.ones((2, 4), np.float32), w, s)
    (key,) = known().keys() - before.keys()
    gone = weakref.ref(known()[key][0])
    del w, s
    assert key not in known()
    assert gone() is None


def test_an_error_while_deriving_is_the_users(backend: str) -> None:
    bad = Parameter(np.zeros(3, np.int32), "bad")

    @ptir.jit(backend=backend)
    def function(x: Any) -> Any:
        return x + (12 // (bad + bad))

    for _ in range(2):
        with pytest.raises(ElementError, match="zero"):
            function(np.ones(3, np.int32))
