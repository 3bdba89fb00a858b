"""cond, while_loop and scan in jitted functions: retraces, symbolic sizes, donation, plans."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.faer import packed_weights
from gptrs.backends.faer.backend import FaerBackend
from gptrs.errors import DonatedError
from gptrs.ir.program import Program
from gptrs.nn.module import Module
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower

X = np.arange(6, dtype=np.float32).reshape(2, 3)
BACKENDS = ["reference", "faer"]
FACTOR = 2.0
HOOK: Any = None


def scaled(x: Any) -> Any:
    return x * FACTOR


def hooked(x: Any) -> Any:
    return HOOK(x)


def test_what_a_branch_reads_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    function = ptir.jit(lambda x: ptir.cond(x.sum() > 0, scaled, lambda y: y, x))
    loop = ptir.jit(lambda x: ptir.while_loop(lambda s: s.sum() < FACTOR, lambda s: s + 1, x))
    monkeypatch.setitem(globals(), "HOOK", lambda x: x + 1)
    by_name = ptir.jit(lambda x: ptir.scan(lambda s, r: (s, hooked(r)), 0, x)[1])
    for _ in range(3):
        np.testing.assert_array_equal(function(X).numpy(), X * 2)
        assert loop(X[0, :1]).tolist() == [2]
        np.testing.assert_array_equal(by_name(X).numpy(), X + 1)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    monkeypatch.setitem(globals(), "HOOK", lambda x: x - 1)
    for _ in range(3):
        np.testing.assert_array_equal(function(X).numpy(), X * 3)
        assert loop(X[0, :1]).tolist() == [3]
        np.testing.assert_array_equal(by_name(X).numpy(), X - 1)
    for each in (function, loop, by_name):
        assert each.cache_info().misses == 2
    assert "global FACTOR" in function.retraces()[-1].reason


class Model(Module):
    weight: Any
    steps: int = 2

    def __call__(self, x: Any) -> Any:
        def body(state: Any) -> Any:
            i, x = state
            return i + 1, x @ self.weight

        return ptir.while_loop(lambda s: s[0] < self.steps, body, (0, x))[1]


def weight(seed: int = 0, size: int = 16) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, size)).astype(np.float32) / 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_in_a_loop(backend: str) -> None:
    model = Model(ptir.Parameter(weight(), "w"))
    function = ptir.jit(backend=backend)(model)
    x = weight(1)
    np.testing.assert_allclose(function(x).numpy(), x @ weight() @ weight(), rtol=1e-4, atol=1e-5)
    function(x)
    assert function.cache_info().misses == 1
    model.steps = 3
    expected = x @ weight() @ weight() @ weight()
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    model.weight = ptir.Parameter(weight(2), "other")
    expected = x @ weight(2) @ weight(2) @ weight(2)
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert function.cache_info().misses == 2  # equal models share programs
    (loop,) = [i for i in function.program(x).body if i.op.control]
    assert [p.role for p in loop.attrs["body"].params] == ["input", "input", "parameter"]


def test_a_weight_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[Any] = []

    def counting(array: Any, form: Any, isa: Any) -> Any:
        packed.append(form)
        return original(array, form, isa)

    original = packed_weights.pack
    monkeypatch.setattr(packed_weights, "pack", counting)
    model = Model(ptir.Parameter(weight(size=64), "w"), 5)
    nested = ptir.jit(backend="faer")(
        lambda x: ptir.cond(x.sum() > -1e9, lambda: model(x), lambda: x @ model.weight)
    )
    x = weight(1, 64)
    expected = x
    for _ in range(5):
        expected = expected @ weight(size=64)
    for _ in range(3):
        np.testing.assert_allclose(nested(x).numpy(), expected, rtol=1e-3, atol=1e-4)
    assert len(packed) == len(set(packed)) > 0
    report = nested.explain(x).report
    assert report.parameter_bytes == sum(f.depth * f.columns * 4 for f in packed)


def test_a_parameter_of_a_region_need_not_be_one_outside() -> None:
    text = """# ptir.v0.4
from gptrs.ptir import ops as ptir

def f(x: "f32[32,32]", y: "f32[32,32]", n: "si64[]"):
    v0 = ptir.mul(y, 2)  # f32[32,32]
    def region0(i: "si64[]", state: "f32[32,32]", n: "si64[]", w: "f32[32,32] parameter"):
        v0 = ptir.less(i, n)  # i1[]
        return v0

    def region1(i: "si64[]", state: "f32[32,32]", n: "si64[]", w: "f32[32,32] parameter"):
        v0 = ptir.add(i, 1)  # si64[]
        v1 = ptir.matmul(state, w)  # f32[32,32]
        return v0, v1

    v1 = ptir.constant(value=ptir.array("si64[]", [0]))  # si64[]
    v2, v3 = ptir.while_loop((v1, x), (n, {w}), condition=region0, body=region1)
    return v3
"""
    for name in ("v0", "y"):
        backend = FaerBackend()
        made = backend.plan(_lowered(ptir.parse(text.replace("{w}", name)), backend))
        y = weight(size=32)
        for seed in range(3):
            y[:] = weight(seed, 32)  # the same array with other elements
            (found,) = made.run([weight(9, 32), y, np.array(2)], {})
            w = y * 2 if name == "v0" else y
            np.testing.assert_allclose(found, weight(9, 32) @ w @ w, rtol=1e-3, atol=1e-4)


def _lowered(program: Program, backend: FaerBackend) -> Program:
    return lower(program, Context(backend))


@pytest.mark.parametrize("backend", BACKENDS)
def test_symbolic_sizes(backend: str) -> None:
    @ptir.jit(backend=backend, dynamic={"x": {0: "S", 1: "T"}})
    def function(x: Any) -> Any:
        rows, columns = x.shape

        def step(state: Any, row: Any) -> Any:
            counted = ptir.full(shape=(rows,), value=1.0, dtype=ptir.f32).sum() * columns
            return (state[0] + counted, state[1] + row), row * rows

        last, ys = ptir.scan(step, (0.0, x[0] * 0), x)
        most = ptir.while_loop(lambda s: s < rows, lambda s: s + 1, 0)
        picked = ptir.cond(most > 2, lambda: x.reshape(rows * columns), lambda: -x.reshape(-1))
        return last, ys, most, picked, ptir.scan(lambda s, _: (s + 1, s), 0, length=rows)[1]

    for rows, columns in ((1, 1), (3, 2), (2, 5), (3, 2), (7, 1)):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) + 1
        (counted, total), ys, most, picked, numbers = function(x)
        assert counted.item() == rows * rows * columns
        np.testing.assert_array_equal(total.numpy(), x.sum(axis=0))
        np.testing.assert_array_equal(ys.numpy(), x * rows)
        assert most.item() == rows
        np.testing.assert_array_equal(picked.numpy(), x.ravel() if rows > 2 else -x.ravel())
        assert numbers.tolist() == list(range(rows))
    assert function.cache_info().misses == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_donated_input_may_be_the_state(backend: str) -> None:
    @ptir.jit(backend=backend, donate="cache")
    def fill(cache: Any, n: Any) -> Any:
        def body(state: Any) -> Any:
            i, cache = state
            row = ptir.full(shape=(1, 3), value=1.0, dtype=ptir.f32) * i.astype("f32")
            return i + 1, ptir.dynamic_update_slice(cache, row, (i, i * 0))

        return ptir.while_loop(lambda s: s[0] < n, body, (n * 0, cache))

    cache = ptir.tensor(np.zeros((5, 3), np.float32))
    i, filled = fill(cache, np.array(3, np.int32))
    assert i.item() == 3
    assert filled.numpy()[:, 0].tolist() == [0, 1, 2, 0, 0]
    with pytest.raises(DonatedError):
        cache.numpy()


def test_the_body_overwrites_its_state() -> None:
    @ptir.jit(backend="faer")
    def fill(cache: Any, n: Any) -> Any:
        def body(state: Any) -> Any:
            i, cache = state
            row = ptir.full(shape=(1, 3), value=1.0, dtype=ptir.f32)
            return i + 1, ptir.dynamic_update_slice(cache, row, (i, i * 0))

        return ptir.while_loop(lambda s: s[0] < n, body, (n * 0, cache))

    cache, n = np.zeros((5, 3), np.float32), np.array(2, np.int32)
    notes = [step.note for step in fill.explain(cache, n).report.steps if step.kind == "call"]
    assert notes == ["in body, in place"]
    assert fill(cache, n)[1].numpy()[:, 0].tolist() == [1, 1, 0, 0, 0]
    assert not cache.any()


def test_passes_and_explain_reach_into_regions() -> None:
    w = ptir.Parameter(weight(size=128), "w")

    @ptir.jit(backend="faer")
    def function(x: Any) -> Any:
        def body(h: Any, row: Any) -> Any:
            new = ptir.softmax(h @ w + row)
            return new, ptir.cond(
                new.sum() > 0, lambda: ptir.exp(new) * 2, lambda: ptir.softmax(new @ w)
            )

        return ptir.scan(body, x[:1] * 1.0, x)

    x = weight(1, 128)
    (scan,) = [i for i in function.lowered(x).body if i.op.control]
    inner = [i.op.name for i in scan.attrs["body"].body]
    assert "custom_call" in inner
    assert "softmax" not in inner
    text = str(function.explain(x))
    for words in (
        " scan ",
        " cond ",
        "gpt_rs.faer.matmul.f32.v1",
        "gpt_rs.faer.softmax.f32.v1",
        "in body, in then",
        "2 for branches and loops",
    ):
        assert words in text, text
    h = x[:1]
    for row, found in zip(x, function(x)[1].numpy(), strict=True):
        logits = h @ weight(size=128) + row
        e = np.exp(logits - logits.max())
        h = e / e.sum()
        np.testing.assert_allclose(found, np.exp(h) * 2, rtol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_share_one_plan(backend: str) -> None:
    model = Model(ptir.Parameter(weight(), "w"), 6)
    function = ptir.jit(backend=backend)(model)
    inputs = [weight(seed) for seed in range(8)]
    expected = [function(x).numpy() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for found, value in zip(pool.map(function, inputs), expected, strict=True):
                np.testing.assert_array_equal(found.numpy(), value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*BACKENDS, "eager"])
def test_an_interrupt_ends_a_loop(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python reports and loses what is raised in a callback of its collector or of a weak
    # reference, and an interrupt may fall into one. Anything else that is lost still fails.
    report = sys.unraisablehook

    def lost(raised: Any) -> None:
        if raised.exc_type is not KeyboardInterrupt:
            report(raised)

    monkeypatch.setattr(sys, "unraisablehook", lost)

    def forever(x: Any, limit: Any) -> Any:
        return ptir.while_loop(lambda s: s.sum() < limit, lambda s: s * 1.0, x)

    function = ptir.jit(backend="faer" if mode == "eager" else mode)(forever)
    x = ptir.tensor(X)
    with ptir.eager(mode == "eager"):
        np.testing.assert_array_equal(function(x, -1.0).numpy(), X)

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(5):
                signal.setitimer(signal.ITIMER_REAL, 0.05, 1)  # again if the first is lost
                with pytest.raises(KeyboardInterrupt):
                    function(x, 1e9)
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        np.testing.assert_array_equal(function(x, -1.0).numpy(), X)


def test_any_callable_is_a_branch() -> None:
    class Adder:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return x + self.by

        def method(self, x: Any) -> Any:
            return x - self.by

    adder = Adder(1.0)
    callables: list[Callable[[Any], Any]] = [
        adder,
        adder.method,
        functools.partial(_add, 1.0),
        ptir.jit(lambda x: x + 1.0),
        ptir.exp,
    ]
    for each in callables:
        found = ptir.jit(lambda x, f=each: ptir.cond(x.sum() > 0, f, lambda y: y, x))(X)
        np.testing.assert_allclose(found.numpy(), each(ptir.tensor(X)).numpy(), rtol=1e-6)


def _add(by: float, x: Any) -> Any:
    return x + by
