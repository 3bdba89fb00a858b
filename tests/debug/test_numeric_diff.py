"""``ptir.compare``: two ways to run a function, and the first instruction that differs."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import nn, ptir
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.product import MatrixProduct
from gptrs.backends.faer.calls.rowwise import LayerNorm
from gptrs.debug.numeric_diff.diff import Diff
from gptrs.debug.numeric_diff.element_errors import element_errors
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import as_dtype
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.rowwise.norm import layer_norm_kernel
from tests.support.planted import line_of, plant_wrong_rule

X = np.random.default_rng(0).standard_normal((4, 8), np.float32)
W = np.random.default_rng(1).standard_normal((8, 6), np.float32)
COMPILED = ("jit", "unoptimised", "precise", "reference")


def mixed(x: Any, w: Any) -> Any:
    h = ptir.gelu(x @ w) / 3.0
    last, _ = ptir.scan(lambda s, row: (s * 0.5 + ptir.exp(row), None), ptir.zeros((6,)), h)
    return ptir.softmax(h), last, ptir.argmax(h, axis=1)


@pytest.mark.parametrize("a", [*COMPILED, "float64"])
@pytest.mark.parametrize("b", ["eager", "jit"])
def test_ways_agree(a: Any, b: Any) -> None:
    found = ptir.compare(mixed, (X, W), a=a, b=b)
    assert found.agrees, str(found)
    assert found.first is None
    ops = [row.op for row in found.rows]
    assert ops == ["matmul", "gelu", "div", "full", "scan", "softmax", "argmax"]
    assert [row.type for row in found.results] == ["f32[4,6]", "f32[6]", "si64[4]"]
    assert all(row.where is not None and row.where.file == __file__ for row in found.rows)
    assert str(found).splitlines()[-1].startswith(f"mixed: {a} and {b} agree: 7 instructions")


def test_precise_has_the_bits_of_eager_mode() -> None:
    found = ptir.compare(mixed, (X, W), a="precise")
    assert all(row.total.differing == 0 for row in (*found.rows, *found.results))


def test_float64_shows_what_rounding_does() -> None:
    found = ptir.compare(mixed, (X, W), a="eager", b="float64")
    product = found.rows[0]
    assert product.own is not None
    assert 0 < product.own.max_abs < 1e-5
    exact = X.astype(np.float64) @ W.astype(np.float64)
    assert product.own.max_abs == pytest.approx(np.abs(X @ W - exact).max())


def test_torch() -> None:
    pytest.importorskip("torch")
    found = ptir.compare(mixed, (X, W), a="eager", b="torch")
    assert found.agrees, str(found)
    assert any(row.own is not None and row.own.differing for row in found.rows)


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_wrong_rule(monkeypatch)


def choose(x: Any, y: Any) -> Any:
    once = ptir.exp(x) - ptir.exp(y)
    return ptir.maximum(once, y) * 2  # the line


def test_a_wrong_rule_is_found(wrong_rule: None) -> None:
    found = ptir.compare(choose, (X, X[::-1]))
    first = found.first
    assert first is not None
    assert first.op == "maximum"
    assert first.where is not None
    assert (first.where.file, first.where.line) == line_of(choose, "# the line")
    assert first.judged.beyond > X.size / 2
    assert [row.op for row in found.rows if not row.agrees] == ["maximum"], "errors of its own"
    assert found.rows[-1].total.differing, "what reads it differs in total"
    assert found.cause is not None
    assert (found.cause.kind, found.cause.name) == ("pass", "confuse")
    assert "ptir.minimum" in found.cause.text
    assert found.verdict.endswith("to blame: the pass confuse")
    assert ptir.compare(choose, (X, X[::-1]), a="unoptimised").agrees


def test_a_wrong_rule_in_a_loop_is_found(wrong_rule: None) -> None:
    def loop(x: Any) -> Any:
        def body(state: Any, row: Any) -> Any:
            state = state * 0.5
            return ptir.maximum(state, row), None  # in the body

        return ptir.scan(body, ptir.zeros((8,)) - 9, x)[0]

    rising = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    first = ptir.compare(loop, rising).first
    assert first is not None
    assert (first.op, first.path) == ("maximum", ("scan body, iteration 0",))
    assert first.where is not None
    assert (first.where.file, first.where.line) == line_of(loop, "# in the body")


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
        return kernel(layer_norm_kernel, isa, weight=False, bias=False, eps=1.0)

    def twice(x: Any) -> Any:
        y = ptir.exp(x * 2)
        return ptir.layer_norm(ptir.layer_norm(y))

    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    found = ptir.compare(twice, X)
    assert [row.agrees for row in found.rows] == [True, True, False, False]
    assert found.first is found.rows[2]
    assert found.cause is None, "no pass"


def test_what_only_the_fused_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_activation(self: MatrixProduct, compressed: bool) -> Product:
        return Product(self.core.weights, compressed)

    def layer(x: Any, w: Any) -> Any:
        return ptir.gelu_tanh(x @ w) + 1

    monkeypatch.setattr(MatrixProduct, "_product", without_activation)
    found = ptir.compare(layer, (X, np.ones((8, 11), np.float32)))
    assert all(row.agrees for row in found.rows)
    assert found.first is found.results[0]
    assert found.cause is not None
    assert found.cause.kind == "instruction"
    assert found.cause.name == "gpt_rs.faer.matmul.f32.v1"


def test_python_functions_give_results_alone() -> None:
    def shifted(x: Any) -> Any:
        assert type(x) is np.ndarray
        return np.tanh(x) + 1e-2

    same = ptir.compare(lambda x: ptir.tanh(x), X, b=np.tanh)
    assert same.agrees
    assert (same.rows, len(same.results), same.b) == ((), 1, "tanh")
    other = ptir.compare(ptir.jit(lambda x: ptir.tanh(x)), (ptir.tensor(X),), a=shifted)
    assert other.first is other.results[0]
    assert other.results[0].total.beyond == X.size
    with pytest.raises(ShapeError, match="compare functions that return the same arrays"):
        ptir.compare(lambda x: ptir.tanh(x), X, b=lambda x: x[0])


class Layer(nn.Module):
    weight: gptrs.Parameter

    def __call__(self, x: Tensor) -> Tensor:
        return ptir.softmax(x @ self.weight)


class JittedLayer(nn.Module):
    weight: gptrs.Parameter

    @ptir.jit
    def __call__(self, x: Tensor) -> Tensor:
        return ptir.softmax(x @ self.weight)


@pytest.mark.parametrize("kind", [Layer, JittedLayer])
def test_modules(kind: Any) -> None:
    layer = kind(gptrs.Parameter(W, "weight"))
    for function in (layer, layer.__call__):
        found = ptir.compare(function, X)
        assert found.agrees
        assert [row.op for row in found.rows] == ["matmul", "softmax"]


@pytest.mark.slow
def test_a_loaded_model() -> None:
    found = ptir.compare(gptrs.load("stories"), np.array([[1, 2, 3]]))
    assert found.agrees, str(found)
    assert sum(row.op == "attention" for row in found.rows) == 4


def test_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[float] = []

    def double(x: Any) -> Any:
        called.append(float(x))
        return 2 * x

    def function(x: Any) -> Any:
        ptir.print("sum {}", x.sum())
        ptir.check(x.sum() > -100, "small")
        return x + ptir.callback(double, x[0, 0], result="f32[]")

    found = ptir.compare(function, X)
    assert found.agrees
    assert called == [float(X[0, 0])]
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert [row.op for row in found.rows if row.own is None] == ["print", "check", "callback"]


def test_donated_and_dynamic_arguments_are_left_alone() -> None:
    @ptir.jit(donate="cache", dynamic={"x": {0: "N"}})
    def put(cache: Any, x: Any) -> Any:
        return ptir.dynamic_update_slice(cache, x * 3, start=(1, 0))

    cache = ptir.tensor(np.zeros((6, 8), np.float32))
    found = ptir.compare(put, (cache, X), b="precise")
    assert found.agrees
    assert not cache.donated
    assert not cache.numpy().any()


def test_text_html_and_json(wrong_rule: None) -> None:
    found: Diff = ptir.compare(choose, (X, X[::-1]))
    head, titles, *_ = str(found).splitlines()
    assert head == "choose, jit against eager:"
    assert titles.split()[:3] == ["op", "result", "own"]
    assert str(found).splitlines()[-1] == found.verdict
    page = found._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert page.count("<tr") == 1 + len(found.rows) + len(found.results)
    assert "differs" in page
    rows = [json.loads(line) for line in found.as_json().splitlines()]
    assert [row["kind"] for row in rows] == ["instruction"] * 5 + ["result", "verdict"]
    assert rows[3]["op"] == "maximum"
    assert rows[3]["agrees"] is False
    assert rows[-1]["agrees"] is False


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="'fast' is no way to run a function") as raised:
        ptir.compare(choose, (X, X), a="fast")  # type: ignore[arg-type]
    assert "use one of jit, unoptimised" in raised.value.fix
    with pytest.raises(ArgumentError, match="function is a int"):
        ptir.compare(3, (X,))


@pytest.mark.parametrize(
    ("dtype", "found", "expected", "numbers"),
    [
        ("f32", [1.0, 2.0], [1.0, 2.0 + 2**-22], (2**-22, 2**-22 / (2 + 2**-22), 1.0, 1)),
        ("f32", [np.nan, np.inf], [np.nan, np.inf], (0, 0, 0, 0)),
        ("f32", [np.nan, 0.0], [1.0, -0.0], (np.inf, np.inf, np.inf, 1)),
        ("bf16", [1.0], [1.0 + 2**-7], (2**-7, 2**-7 / (1 + 2**-7), 1.0, 1)),
        ("si64", [2**62], [2**62 + 1], (1, 2.0**-62, 1, 1)),
        ("si8", [3, 4], [3, 6], (2, 1 / 3, 2, 1)),
        ("cf32", [1j], [1j + 1], (1, 1 / np.sqrt(2), 2**23, 1)),
    ],
)
def test_element_errors(
    dtype: str, found: list[Any], expected: list[Any], numbers: tuple[float, ...]
) -> None:
    kind = as_dtype(dtype)
    one, other = (np.array(side).astype(kind.numpy) for side in (found, expected))
    errors = element_errors(one, other, None, kind)
    assert (errors.max_abs, errors.max_rel, errors.max_ulp, errors.differing) == pytest.approx(
        numbers
    )
    assert errors.beyond == errors.differing
