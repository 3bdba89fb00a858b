"""GPTRS_CHECK: every compiled call against the reference backend."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir
from gptrs.backends.faer.calls.base import kernel
from gptrs.backends.faer.calls.product import MatrixProduct
from gptrs.backends.faer.calls.rowwise import LayerNorm
from gptrs.errors import MismatchError
from gptrs.kernels.compiler.compile import Kernel
from gptrs.kernels.compiler.isa import Isa
from gptrs.kernels.gemm.product import Product
from gptrs.kernels.rowwise.norm import layer_norm_kernel
from tests.support.cli import in_process
from tests.support.models import tiny_gpt2
from tests.support.planted import line_of, plant_wrong_rule
from tests.support.slow_path import SlowCalls

X = np.random.default_rng(0).standard_normal((4, 8), np.float32)


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_CHECK", "1")


def choose(x: Any, y: Any) -> Any:
    once = ptir.exp(x) - ptir.exp(y)
    return ptir.maximum(once, y) * 2  # the line


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ptir.jit(choose)(X, X[::-1])
    plant_wrong_rule(monkeypatch)
    with pytest.raises(MismatchError) as raised:
        ptir.jit(choose)(X, X[::-1])
    head, first, *rest = raised.value.problem.splitlines()
    assert head.startswith("choose: result 0 (f32[4,8]; ")
    assert head.endswith(" of faer differs from the reference backend's")
    assert first.startswith("  the first instruction that differs: maximum (f32[4,8]; ")
    assert "the pass confuse changes what it computes" in "\n".join(rest)
    assert raised.value.where is not None
    assert raised.value.where[:2] == line_of(choose, "# the line")
    monkeypatch.setenv("GPTRS_CHECK", "0")
    ptir.jit(choose)(X, X[::-1])


def test_a_wrong_kernel_in_a_loop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
        return kernel(layer_norm_kernel, isa, weight=False, bias=False, eps=1.0)

    def loop(x: Any) -> Any:
        def body(state: Any) -> Any:
            count, y = state
            return count + 1, ptir.layer_norm(y + 1)  # the line

        return ptir.while_loop(lambda state: state[0] < 3, body, (0, x))[1]

    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    with pytest.raises(MismatchError, match="while_loop body, iteration 0, layer_norm") as raised:
        ptir.jit(loop)(X)
    assert raised.value.where is not None
    assert raised.value.where[:2] == line_of(loop, "# the line")


def test_what_only_the_fused_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_activation(self: MatrixProduct, compressed: bool) -> Product:
        return Product(self.core.weights, compressed)

    def layer(x: Any, w: Any) -> Any:
        return ptir.gelu_tanh(x @ w) + 1  # the line

    monkeypatch.setattr(MatrixProduct, "_product", without_activation)
    with pytest.raises(MismatchError, match=r"gpt_rs\.faer\.matmul|ptir\.custom_call") as raised:
        ptir.jit(layer)(X, np.ones((8, 13), np.float32))
    assert raised.value.where is not None
    assert raised.value.where[:2] == line_of(layer, "# the line")


def test_rounding_is_no_difference() -> None:
    @ptir.jit
    def cancelling(x: Any) -> Any:
        total = ptir.exp(x).sum() * 1e4
        return total - ptir.sum(ptir.exp(x) * 1e4), ptir.inv(x[:, :4]), ptir.argmax(x * 0.3, axis=1)

    for seed in range(5):
        cancelling(np.random.default_rng(seed).standard_normal((4, 8), np.float32))


def test_effects_donation_and_random_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    called: list[float] = []

    def noisy(v: Any) -> Any:
        called.append(float(v))
        return v + len(called)  # another value each time

    @ptir.jit(donate="state")
    def step(state: Any, x: Any, seed: Any) -> Any:
        ptir.print("step {}", x)
        ptir.check(x >= 0, "negative")
        y = ptir.callback(noisy, x, result="f32[]")
        drawn = ptir.rng_normal(seed, shape=(8,))
        return ptir.dynamic_update_slice(state, (drawn + y)[None], start=(1, 0))

    state = ptir.tensor(X)
    for n in range(3):
        old, state = state, step(state, np.float32(n), n)
        assert old.donated
    assert called == [0, 1, 2]
    assert capsys.readouterr().out.splitlines() == ["step 0.0", "step 1.0", "step 2.0"]
    assert (state.numpy()[0] == X[0]).all()


def test_effects_in_loops(capsys: pytest.CaptureFixture[str]) -> None:
    @ptir.jit
    def count(x: Any) -> Any:
        def body(state: Any, row: Any) -> Any:
            ptir.print("{:.0f}", state)
            return ptir.callback(lambda s: s + 1, state, result="f32[]"), None

        return ptir.scan(body, ptir.zeros(()), x)[0]

    assert count(X).item() == 4
    assert capsys.readouterr().out.split() == ["0", "1", "2", "3"]


def test_dynamic_sizes_and_compiled_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamic = ptir.jit(choose, dynamic={"x": {0: "N"}, "y": {0: "N"}})
    dynamic(X, X[::-1])
    dynamic(X[:2], X[:2])
    plant_wrong_rule(monkeypatch)
    wrong = ptir.jit(choose, dynamic={"x": {0: "N"}, "y": {0: "N"}})
    with pytest.raises(MismatchError, match="maximum"):
        wrong(X[:3], X[1:])
    with pytest.raises(MismatchError, match="maximum"):
        ptir.jit(choose).lower(X, X).compile()(X, X[::-1])


@pytest.mark.slow
def test_models_generate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = in_process(monkeypatch, capsys, "generate")("Once", "--max-tokens", "3")
    assert (said.code, said.out.strip()) == (0, "Once upon a time")

    def eps_of_one(self: LayerNorm, isa: Isa) -> Kernel:
        return kernel(layer_norm_kernel, isa, weight=True, bias=True, eps=1.0)

    model = gptrs.load(tiny_gpt2(tmp_path, n_embd=60, n_head=4))
    monkeypatch.setattr(LayerNorm, "_kernel", eps_of_one)
    with pytest.raises(MismatchError, match="the first instruction that differs: layer_norm"):
        list(model.causal_lm.stream_tokens([1, 2, 3], max_tokens=2))


def test_calls_are_fast_again(monkeypatch: pytest.MonkeyPatch, slow_calls: SlowCalls) -> None:
    jitted = ptir.jit(lambda x: x * 2)
    jitted(X)
    jitted(X)
    assert slow_calls.count == 2, "each call is checked"
    monkeypatch.delenv("GPTRS_CHECK")
    for _ in range(5):
        jitted(X)
    assert slow_calls.count == 3
