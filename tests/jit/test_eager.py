"""Eager mode agrees with traced programs: results, types, errors, donation."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import DTypeError, PtirError, ShapeError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.nn.module import Module
from tests.jit.test_trace_errors import MISTAKES

pytestmark = pytest.mark.usefixtures("strict_dtypes")  # which keeps these errors

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HALF = X.astype(np.float16)
WHOLE = np.arange(6, dtype=np.int32).reshape(2, 3)


class Layer(Module):
    weight: Parameter

    def __call__(self, x: Any) -> Any:
        return ptir.softmax(x @ self.weight)


LAYER = Layer(Parameter(np.ones((3, 4), np.float32) / 3, "w"))
INNER = ptir.jit(lambda x, s: x * s)
SCALAR = ptir.jit(lambda s: s / 2)

SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "number": (lambda x, s: x * s + 1, (HALF, 2.5)),
    "whole number": (lambda x, n: x * n, (WHOLE, 3)),
    "two numbers": (lambda a, b: (a * b, a - b), (2, 3)),
    "number of another kind": (lambda x, n: x * n, (X, 3)),
    "number through ops": (lambda x, s: x * (s * 2 + 1), (HALF, 0.5)),
    "nested with a number": (lambda x, s: INNER(x, s) + SCALAR(s), (HALF, 0.5)),
    "returned number": (lambda s: s, (2.0,)),
    "argument": (lambda x: (x, x), (X,)),
    "static": (lambda x: (x.shape, x.dtype.name, None, "s"), (X,)),
    "containers": (lambda d: {"k": [d["a"][0] + 1, (d["b"],)]}, ({"a": [X], "b": None},)),
    "parameter": (lambda x: LAYER(x), (X,)),
    "model argument": (lambda m, x: (m(x), m.weight), (LAYER, X)),
    "view": (lambda x: (x[0], x.T, x.reshape(-1)[1:3]), (X,)),
    "reductions": (lambda x: (x.sum(), x.mean(axis=1), ptir.argmax(x, axis=0)), (X,)),
    "numpy on the left": (lambda x: (X - x, X @ x.T, x > X, np.float32(2) ** x), (X,)),
    "added in place": (lambda x: _accumulate(x), (X,)),
    "captured": (lambda x: (x + X, X), (X,)),
}


def _accumulate(x: Any) -> Any:
    total: Any = np.zeros(3, np.float32)
    for row in x:
        total += row
    return total


def leaves(value: Any) -> list[Any]:
    from gptrs import tree

    return tree.flatten(value, is_leaf=lambda x: isinstance(x, Tensor))[0]


@pytest.mark.parametrize("name", SAME)
def test_results_agree(name: str) -> None:
    body, arguments = SAME[name]
    function = ptir.jit(body)
    traced = function(*arguments)
    with ptir.eager():
        eager = function(*arguments)
    assert function.cache_info().misses == 1
    assert type(traced) is type(eager)
    for a, b in zip(leaves(traced), leaves(eager), strict=True):
        assert type(a) is type(b)
        if isinstance(a, Tensor):
            assert a.type == b.type
            assert a.weak == b.weak
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)  # f32 in another order
            assert a.numpy().flags.c_contiguous
            assert b.numpy().flags.c_contiguous
        else:
            assert a == b


# Eager values are real: what needs them works, what has no meaning stays an error.
STAYS = [m for m in MISTAKES if m[2].__name__ not in ("TraceError", "ElementError")]


@pytest.mark.parametrize(("body", "argument", "kind", "words"), STAYS)
def test_type_errors_read_the_same(body: Any, argument: Any, kind: Any, words: Any) -> None:
    function = ptir.jit(lambda x: body(x))
    problems: list[str] = []
    for eager in (False, True):
        with ptir.eager(eager), pytest.raises(kind) as raised:
            function(argument)
        assert isinstance(raised.value, PtirError)
        assert raised.value.where is not None
        assert raised.value.where.file.endswith("test_trace_errors.py")
        problems.append(raised.value.problem)
    assert problems[0] == problems[1]


def test_values_are_real() -> None:
    seen: list[Any] = []

    @ptir.jit
    def function(x: Any, n: Any) -> Any:
        seen.append((x.tolist(), int(n), f"{n:.1f}", repr(x)))
        for _ in range(n):
            x = x + 1 if x.sum() < 100 else x
        return x

    with ptir.eager():
        found = function(X, 2)
    np.testing.assert_array_equal(found.numpy(), X + 2)
    assert seen[0][:3] == (X.tolist(), 2, "2.0")
    assert "f32[2,3]" in seen[0][3]
    assert function.cache_info().misses == 0


def test_the_variable_and_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    @ptir.jit
    def function(x: Any) -> Any:
        return x, bool(getattr(x, "is_traced", False))

    assert function(X)[1] is True
    monkeypatch.setenv("GPTRS_EAGER", "1")
    assert function(X)[1] is False
    with ptir.eager(False):
        assert function(X)[1] is True
        with ptir.eager():
            assert function(X)[1] is False
    monkeypatch.setenv("GPTRS_EAGER", "0")
    assert function(X)[1] is True


def test_nested_donation_is_not_taken_twice() -> None:
    step = ptir.jit(donate="t")(lambda t: t + 1)
    outer = ptir.jit(lambda t: step(t) + step(t))
    for eager in (False, True):
        with ptir.eager(eager):
            tensor = ptir.tensor(X)
            np.testing.assert_array_equal(outer(tensor).numpy(), 2 * (X + 1))
            np.testing.assert_array_equal(tensor.numpy(), X)


def test_an_error_leaves_eager_mode_as_it_was() -> None:
    function = ptir.jit(lambda x: x + X.T)
    with ptir.eager(), pytest.raises(ShapeError):
        function(X)
    with pytest.raises(ShapeError):
        function(X)
    with ptir.eager(), pytest.raises(DTypeError):
        ptir.jit(lambda x: x + HALF)(X)


def test_ops_outside_any_function() -> None:
    t = ptir.tensor([[1, 2], [3, 4]], dtype="f32")
    assert (t @ t + 1).tolist() == [[8, 11], [16, 23]]
    assert ptir.softmax(t).sum(axis=-1).shape == (2,)
    assert float(t[0, 1]) == 2
    assert bool(t[0, 0] == 1)
    assert [1, 2, 3][ptir.tensor(1)] == 2
    assert f"{t[1, 1]:.1f}" == "4.0"
    with pytest.raises(TypeError, match="integer"):
        assert [1, 2][t[0, 0]]
