"""Scalar rules of users' ops: the syntax that is accepted, and the fused loops made of them."""

# Traced functions take any array.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.ir.primitives import Elementwise, elementwise
from gptrs.ir.scalar_rules import FUNCTIONS
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, Type
from tests.cases.sample import same_bits

pytestmark = pytest.mark.usefixtures("own_definitions")

LIMIT, COUNT = 0.5, 3


def define(meaning: Callable[..., Any], rule: Callable[..., Any] | None = None) -> Any:
    """An op of one operand and an attribute."""

    @elementwise
    def bend(x: Tensor, *, scale: float = 1.0) -> Type:
        return x.type

    bend.numpy(meaning)
    if rule is not None:
        bend.scalar(rule)
    return bend


def numpy_bend(x: Array, *, scale: float) -> Array:
    return np.where(x > 2, x + LIMIT, x / (1 + np.exp(-scale * np.abs(x))))


def bend_rule(x: Any, scale: float) -> Any:
    """With a name of its own, a number of the module, and an early return."""
    power = -scale * abs(x)
    if x > 2:
        return x + LIMIT
    return x / (1 + math.exp(power))


def array(dtype: str) -> Any:
    drawn = np.random.default_rng(0).normal(size=(40, 30)) * 2
    return ptir.tensor(drawn.astype(np.float32)).astype(dtype)


@pytest.mark.parametrize(("dtype", "bound"), [("f32", 1e-6), ("f64", 1e-14), ("bf16", 0.01)])
@pytest.mark.parametrize("backend", ["faer", "reference"])
def test_loops_compute_it(dtype: str, bound: float, backend: str) -> None:
    bend = define(numpy_bend, bend_rule)
    function = ptir.jit(backend=backend)(lambda x: bend(x * 2.0, scale=0.5) * 4.0)
    x = array(dtype)
    with ptir.eager():
        expected = function(x).numpy().astype(np.float64)
    np.testing.assert_allclose(function(x).numpy().astype(np.float64), expected, rtol=bound)
    (kind, *others) = {step.kind for step in function.explain(x).report.steps}
    assert (kind, others) == ("region" if backend == "faer" else "reference", [])


def test_one_kernel_has_all_of_it() -> None:
    bend = define(numpy_bend, bend_rule)
    function = ptir.jit(lambda x: bend(x) * bend(x, scale=2.0))
    (_, source) = function.explain(array("f32")).sources.popitem()
    assert source.count("def bend_of_f32(x, scale):") == 1
    assert "exp32(" in source


def test_precise_programs_have_the_bits_of_numpy() -> None:
    bend = define(numpy_bend, bend_rule)
    function = ptir.jit(precise=True)(lambda x: bend(x * 2.0))
    x = array("f32")
    with ptir.eager():
        expected = function(x).numpy()
    assert same_bits(function(x).numpy(), expected)


def test_without_a_rule_it_is_a_step_of_its_own() -> None:
    bend = define(numpy_bend)
    function = ptir.jit(lambda x: bend(x * 2.0) + 1.0)
    (step,) = [s for s in function.explain(array("f32")).report.steps if s.kind == "reference"]
    assert (step.name, step.note) == ("bend", "no scalar rule")


def test_a_rule_works_on_integers_and_gives_truth_values() -> None:
    @elementwise
    def is_close(x: Tensor, y: Tensor, *, distance: int) -> Type:
        return Type(x.shape, ptir.i1)

    @is_close.numpy
    def _(x: Array, y: Array, *, distance: int) -> Array:
        return np.abs(x - y) <= distance

    @is_close.scalar
    def _(x: Any, y: Any, distance: int) -> Any:
        return abs(x - y) <= distance

    function = ptir.jit(lambda x, y: is_close(x, y + 1, distance=3))
    x, y = (np.random.default_rng(n).integers(-9, 9, (5, 7)).astype(np.int32) for n in (0, 1))
    assert np.array_equal(function(x, y).numpy(), np.abs(x - y - 1) <= 3)
    assert [step.kind for step in function.explain(x, y).report.steps] == ["region"]


def test_loops_and_powers() -> None:
    def rule(x: Any, scale: float) -> Any:
        total = x**2
        for _ in range(COUNT):
            total = total * 0.5 + scale
        return max(total, np.sqrt(abs(x)))

    def meaning(x: Array, *, scale: float) -> Array:
        total = x**2
        for _ in range(COUNT):
            total = total * 0.5 + scale
        return np.maximum(total, np.sqrt(np.abs(x)))

    bend = define(meaning, rule)
    x = array("f32")
    found = ptir.jit(lambda x: bend(x))(x).numpy()
    np.testing.assert_allclose(found, meaning(x.numpy(), scale=1.0), rtol=1e-6)


@pytest.mark.parametrize(("module", "name"), [(m, n) for m in FUNCTIONS for n in FUNCTIONS[m]])
def test_every_function_compiles(module: Any, name: str) -> None:
    function = getattr(module, name)
    two = FUNCTIONS[module][name] in ("atan2", "copysign", "hypot")
    scope = {"module": module}
    text = f"def rule(x, scale):\n    return module.{name}(x{', scale' if two else ''}) + 0"
    import linecache

    linecache.cache["<rule>"] = (len(text), None, text.splitlines(keepends=True), "<rule>")
    exec(compile(text, "<rule>", "exec"), {"np": np, "math": math, **scope}, scope)
    rule: Any = scope["rule"]
    rule.__globals__["module"] = module
    vector = np.vectorize(function, otypes=[float])
    bend = define(lambda x, scale: vector(x, scale) if two else vector(x), rule)
    x = np.array([0.25, 0.5, 0.75] if name not in ("acosh", "arccosh") else [1, 2.5, 4], "f4")
    found = ptir.jit(lambda x: bend(x))(x).numpy()
    np.testing.assert_allclose(found, vector(x, 1.0) if two else vector(x), rtol=2e-6)


def refused(rule: Callable[..., Any]) -> str:
    with pytest.raises(ArgumentError) as error:
        define(numpy_bend, rule)
    return str(error.value)


def test_what_a_rule_may_not_use_is_named() -> None:
    table = np.zeros(3)
    assert "uses np.linalg.norm" in refused(_of_another_module)
    assert "uses print" in refused(_prints)
    assert "uses table[0]" in refused(_indexes(table))
    assert "uses numpy_bend" in refused(_calls)
    assert "fix: it takes the op's operands and attributes: (x, scale)" in refused(_too_few)


def _of_another_module(x: Any, scale: float) -> Any:
    return np.linalg.norm(x) * scale


def _prints(x: Any, scale: float) -> Any:
    print(x)
    return x


def _indexes(table: Array) -> Callable[..., Any]:
    def rule(x: Any, scale: float) -> Any:
        return x + table[0]

    return rule


def _calls(x: Any, scale: float) -> Any:
    return numpy_bend(x, scale=scale)


def _too_few(x: Any) -> Any:
    return x


def test_a_rule_without_source_is_an_error() -> None:
    scope: dict[str, Any] = {}
    exec("def rule(x, scale): return x", scope)
    assert "fix: define it in a file or a cell of a notebook, by def" in refused(scope["rule"])


def test_copies_of_an_op_are_the_op() -> None:
    bend: Elementwise[..., Any] = define(numpy_bend, bend_rule)
    assert copy.deepcopy(bend) is copy.copy(bend) is bend
    assert pickle.loads(pickle.dumps(bend)) is bend
    assert pickle.loads(pickle.dumps(ptir.exp)) is ptir.exp


@pytest.mark.slow
def test_the_module_of_a_loop_has_its_rules() -> None:
    bend = define(numpy_bend, bend_rule)
    function = ptir.jit(backend="faer")(lambda x: bend(x * 2.0, scale=0.5) * 4.0)
    x = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    explained = function.explain(x)
    ((name, source),) = explained.sources.items()
    assert explained.kernels[name].source in source
    scope: dict[str, Any] = {}
    exec(source, scope)
    out = np.zeros_like(x)
    scope[f"{name}_parallel"](x, out)
    assert np.array_equal(out, function(x).numpy())
