"""Jitted functions on a backend: selection, donation, errors, a small GPT-2."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.base import Backend, Plan
from gptrs.errors import DonatedError, ElementError
from gptrs.ir.parameter import Parameter
from gptrs.ir.program import Program
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array
from gptrs.models.gpt2 import GPT2, GPT2Config

X = np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4)
VOCABULARY = 61


def attend(x: Any, w: Any) -> Any:
    return ptir.softmax(x @ w) @ x


@pytest.fixture
def planned(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that the backend makes plans of in this test."""
    found: list[Program] = []
    make = backend.plan

    def plan(program: Program, *, precise: bool = False) -> Plan:
        found.append(program)
        return make(program, precise=precise)

    monkeypatch.setattr(backend, "plan", plan)
    return found


@pytest.fixture
def expected() -> Array:
    """What `attend` gives for X and its transpose."""
    e = np.exp(np.asarray(X @ X.T, np.float64))
    return np.asarray(e / e.sum(axis=1, keepdims=True) @ X, np.float32)


def close(found: Array, expected: Array) -> bool:
    """For numbers around 1 that are sums of some dozens, taken in any order."""
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_chosen_where_a_function_is_decorated(
    backend: Backend, planned: list[Program], expected: Array
) -> None:
    function = ptir.jit(backend=backend.name)(attend)
    assert close(function(X, X.T).numpy(), expected)
    assert planned == [function.lowered(X, X.T)]


def test_chosen_for_a_block(backend: Backend, planned: list[Program], expected: Array) -> None:
    function = ptir.jit(attend)
    with ptir.backend(backend.name):
        assert close(function(X, X.T).numpy(), expected)
    assert len(planned) == 1


def test_chosen_by_the_environment(
    backend: Backend, planned: list[Program], expected: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_BACKEND", backend.name)
    function = ptir.jit(attend)
    for _ in range(3):
        assert close(function(X, X.T).numpy(), expected)
    assert len(planned) == 1


def test_explained(backend: Backend) -> None:
    function = ptir.jit(backend=backend.name, dynamic={"x": {0: "N"}, "w": {1: "N"}})(attend)
    explanation = function.explain(X, X.T)
    assert explanation.report.instructions() >= len(function.lowered(X, X.T).body) > 0
    assert str(explanation).startswith("attend:\n")


def test_one_program_for_all_sizes(backend: Backend, planned: list[Program]) -> None:
    function = ptir.jit(backend=backend.name, dynamic={"x": {0: "N"}})(lambda x: x.sum(axis=0) + 1)
    for rows in (3, 1, 8, 2):
        x = np.resize(X, (rows, 4))
        assert close(function(x).numpy(), x.sum(axis=0) + 1)
    assert len(planned) == 1
    assert close(function(np.zeros((0, 4), np.float32)).numpy(), np.ones(4, np.float32))


def test_arguments_of_any_name(backend: Backend) -> None:
    @ptir.jit(backend=backend.name)
    def function(
        np: Any, v0: Any, v1_: Any, self: Any, sizes: Any, arguments: Any, inf: Any, out: Any
    ) -> Any:
        total = np + 2 * v0 + 3 * v1_ + 5 * self + 7 * sizes + 11 * arguments
        return total + 13 * inf + 17 * out

    @ptir.jit(backend=backend.name)
    def words_of_kernels(
        first: Any, last: Any, block: Any, prange: Any, chunk: Any, extent: Any, row: Any, j: Any
    ) -> Any:
        total = first + 2 * last + 3 * block + 5 * prange + 7 * chunk + 11 * extent
        return total + 13 * row + 17 * j

    given = [np.full(2, 10.0**n, np.float64) for n in range(8)]
    primes = (1, 2, 3, 5, 7, 11, 13, 17)
    exact = sum(n * array for n, array in zip(primes, given, strict=True))
    assert np.array_equal(function(*given).numpy(), exact)
    assert np.array_equal(words_of_kernels(*given).numpy(), exact)


def test_a_donated_argument(backend: Backend) -> None:
    def shift(x: Any, part: Any) -> Any:
        updated = ptir.dynamic_update_slice(x, part, (1,))
        return updated, x * 2, ptir.dynamic_update_slice(updated, part * 2, (2,))

    function = ptir.jit(donate="x", backend=backend.name)(shift)
    given = ptir.tensor(np.arange(5, dtype=np.float32))
    found = [t.tolist() for t in function(given, np.full(2, 9, np.float32))]
    assert found == [[0, 9, 9, 3, 4], [0, 2, 4, 6, 8], [0, 9, 18, 18, 4]]
    with pytest.raises(DonatedError):
        given.numpy()


def test_a_donated_argument_goes_round(backend: Backend) -> None:
    def put(x: Any, value: Any, at: Any) -> Any:
        return ptir.dynamic_update_slice(x, value.reshape(1), (at,)), x.sum()

    function = ptir.jit(donate="x", backend=backend.name)(put)
    kept = ptir.tensor(np.zeros(6, np.float32))
    sums: list[Any] = []
    for n in range(6):
        kept, total = function(kept, np.float32(n + 1), np.int32(n))
        sums.append(total.item())
    assert kept.tolist() == [1, 2, 3, 4, 5, 6]
    assert sums == [0, 1, 3, 6, 10, 15]


def test_a_call_that_fails_donates_nothing(backend: Backend) -> None:
    def update(x: Any, ids: Any) -> Any:
        updated = ptir.dynamic_update_slice(x, x[:2] * 3 + 1, (1,))
        return updated, ptir.take(updated, ids, axis=0)

    function = ptir.jit(donate="x", backend=backend.name)(update)
    given = ptir.tensor(np.arange(5, dtype=np.float32))
    with pytest.raises(ElementError):
        function(given, np.array([1, 5]))
    assert given.tolist() == [0, 1, 2, 3, 4]
    updated, taken = function(given, np.array([1, 4]))
    assert updated.tolist() == [0, 1, 4, 3, 4]
    assert taken.tolist() == [1, 4]


def divide(x: Any, y: Any) -> Any:
    return (x + 1) // y, x


def look_up(x: Any, y: Any) -> Any:
    return ptir.ops.take(x, y) * 2


@pytest.mark.parametrize(
    ("function", "bad", "good"),
    [(divide, [1, 0, 2], [1, 3, 2]), (look_up, [0, 3, 1], [0, 2, 1]), (look_up, [-1], [0])],
)
def test_elements_without_a_result(
    function: Callable[..., Any], bad: list[int], good: list[int], backend: Backend
) -> None:
    x = np.array([7, -8, 9], np.int32)
    texts: list[str] = []
    for name in (backend.name, "reference"):
        run = ptir.jit(backend=name)(function)
        for _ in range(2):  # an error is no reason to fail later
            with pytest.raises(ElementError) as error:
                run(x, np.array(bad, np.int32))
            texts.append(str(error.value))
            where = error.value.where
            assert where is not None
            code = function.__code__
            assert where == (code.co_filename, code.co_firstlineno + 1, code.co_qualname)
            found = run(x, np.array(good, np.int32))
            first = found[0] if isinstance(found, tuple) else found
            expected = (x + 1) // good if function is divide else x[good] * 2
            assert first.tolist() == expected.tolist()
    assert len(set(texts)) == 1


def gpt2() -> GPT2:
    rng = np.random.default_rng(0)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=24, n_layer=2, n_head=3)

    def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
        return Parameter(rng.standard_normal(shape).astype(np.float32) * 0.2, name)

    return GPT2.build(config, parameter)


def logits(made: GPT2, ids: Array) -> list[Array]:
    """Those of all tokens at once, then of five and the rest one by one."""
    whole, _ = made(Tensor(ids), None)
    found = [whole.numpy()]
    kept = made.init_cache(np.zeros(len(ids), np.int32), 16)
    for part in (ids[:, :5], *(ids[:, n : n + 1] for n in range(5, ids.shape[1]))):
        y, now = made(Tensor(part), kept, logits="last")
        assert now is not None
        kept = now
        found.append(y.numpy())
    return found


@pytest.mark.slow
def test_gpt2(backend: Backend) -> None:
    made = gpt2()
    ids = np.random.default_rng(1).integers(0, VOCABULARY, (2, 9))
    with ptir.backend("reference"):
        expected = logits(made, ids)
    with ptir.backend(backend.name):
        found = logits(made, ids)
    for a, b in zip(found, expected, strict=True):
        assert close(a, b)
    wrong = ids.copy()
    wrong[1, 3] = VOCABULARY
    with (
        ptir.backend(backend.name),
        pytest.raises(ElementError, match=r"at .*layers\.py:\d+ in Embedding"),
    ):
        logits(made, wrong)
