"""Native calls: what they answer, what they leave to the fast path, and that nobody can tell."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import DonatedError
from gptrs.ir.parameter import Parameter
from gptrs.kernels.native_call import layout
from tests.support.native_calls import (
    NEEDS_NATIVE_CALLS,
    Named,
    Pair,
    X,
    Y,
    as_lists,
    is_native,
    outcome,
    warm,
)

pytestmark = NEEDS_NATIVE_CALLS


def test_this_interpreter_has_the_layout() -> None:
    assert layout.supported()


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (lambda x: x + 1, (X,), {}),
        (lambda x: x + 1, (ptir.tensor(X),), {}),
        (lambda x, y: x + y, (X,), {"y": X}),
        (lambda x, y=2.0: x * y, (X,), {}),
        (lambda x, *rest: x + rest[1], (X, Y, X), {}),
        (lambda x, **rest: x + rest["b"], (X,), {"a": Y, "b": X}),
        (lambda x, n: x * n, (X, 3), {}),
        (lambda x, n: x * n, (X, 2.5), {}),
        (lambda x, n: x * n, (X.astype(np.complex64), 2.5 + 1j), {}),
        (lambda x, flag: x if flag else -x, (X, False), {}),
        (lambda x, how: x + len(how), (X, "mean"), {}),
        (lambda x, none: x + 1 if none is None else x, (X, None), {}),
        (lambda t: t["a"] + t[1], ({"a": X, 1: X},), {}),
        (lambda t: t[0] * t[1][0], ((X, [X]),), {}),
        (lambda p: p.a + p.b["c"], (Pair(X, {"c": X}),), {}),
        (lambda p: p.a + p.b, (Named(X, X),), {}),
        (lambda x: (x + 1, x + 2), (X,), {}),
        (lambda x: [x + 1, {"k": x + 2, "n": 3}], (X,), {}),
        (lambda x: Pair(x + 1, "text"), (X,), {}),
        (lambda x: Named(x + 1, (x + 2,)), (X,), {}),
        (lambda x: x, (X,), {}),
        (lambda x, n: (x + 1, n, x.reshape((3, 2)), x + 1), (X, 2.5), {}),
        (lambda x: x.sum(), (X,), {}),
        (lambda x: x + x.shape[0], (np.empty((0, 3), np.float32),), {}),
        (lambda x: x + 1, (np.array(2, np.int16),), {}),
        (lambda x: ptir.softmax(x @ x.T, axis=-1), (Y,), {}),
        (lambda x: ptir.while_loop(lambda v: v.sum() < 50, lambda v: v + 1, x), (X,), {}),
    ],
)
def test_calls_that_are_native(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    jitted = ptir.jit(function)
    first = as_lists(jitted(*args, **kwargs))
    jitted(*args, **kwargs)
    assert is_native(jitted, *args, **kwargs)
    for _ in range(3):
        assert as_lists(jitted(*args, **kwargs)) == first
    assert jitted.cache_info()[:2] == (5, 1)


def test_results_have_memory_of_their_own() -> None:
    jitted = ptir.jit(lambda x: (x, x.reshape((2, 3)), x + 1, x + 1))
    warm(jitted, X)
    assert is_native(jitted, X)
    arrays = [X, *(result.numpy() for result in jitted(X))]
    assert all(array.flags.writeable and array.flags.c_contiguous for array in arrays)
    shared = [np.shares_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n]]
    assert not any(shared)


def test_static_arguments() -> None:
    jitted = ptir.jit(static_argnames=("axes", "how"))(lambda x, axes, how: x.sum(axes) + how)
    warm(jitted, Y, (0, 1), 3)
    assert is_native(jitted, Y, (0, 1), 3)
    assert jitted(Y, (0, 1), 4).item() == 10
    assert jitted(Y, (1,), 3).shape == (2,)
    assert not is_native(jitted, Y, [0, 1], 3)
    assert not is_native(jitted, Y, (0, True), 3)


class Sub(np.ndarray):
    """Another class of arrays."""


def unaligned() -> Any:
    memory = np.zeros(4 * 6 + 1, np.uint8)
    return memory[1:].view(np.float32)


READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("value", "answered"),
    [
        (X.copy(), True),
        (READ_ONLY, True),
        (np.frombuffer(X.tobytes(), np.float32), True),
        (np.arange(12, dtype=np.float32)[::2], False),
        (unaligned(), False),
        (X.astype(">f4"), False),
        (X.view(Sub), False),
        (X[:5], False),
        (X.reshape(2, 3), False),
        (X.astype(np.int32), False),
        (X.astype(np.float64), False),
        (ptir.tensor(X), False),
        (Parameter(X), False),
        (2.0, False),
        (np.float32(2), False),
        ([1.0, 2.0], False),
        ({"x": X}, False),
        (None, False),
        (np.array([None] * 6), False),
    ],
)
def test_other_arguments(value: Any, answered: bool) -> None:
    jitted, other = (ptir.jit(lambda x: x + 1) for _ in range(2))
    warm(jitted, X)
    assert is_native(jitted, X)
    assert is_native(jitted, value) is answered
    assert outcome(jitted, value) == outcome(other, value)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((X,), {}),
        ((X, X, X), {}),
        ((X,), {"other": X}),
        ((X,), {"tree": {"a": X}}),
        ((X, {"b": X, "a": X}), {}),
        ((X, {"a": X, "c": X}), {}),
        ((X, {"a": X, "b": X, "c": X}), {}),
        ((X, OrderedDict(a=X, b=X)), {}),
        ((X, [("a", X)]), {}),
        ((X, {"a": X, "b": 1}), {}),
    ],
)
def test_other_trees(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    jitted, other = (ptir.jit(lambda x, tree: x + tree["a"] * 2) for _ in range(2))
    warm(jitted, X, {"a": X, "b": X})
    assert is_native(jitted, X, {"".join("a"): X, "b": X})
    assert not is_native(jitted, *args, **kwargs)
    for _ in range(3):
        assert outcome(jitted, *args, **kwargs) == outcome(other, *args, **kwargs)


def leaf(rng: np.random.Generator, dtype: str) -> Any:
    """An argument that most often is an array."""
    array: Any = rng.integers(1, 9, (2, 3)).astype(dtype)
    match int(rng.integers(24)):
        case 0:
            return ptir.tensor(array)
        case 1:
            return float(array[0, 0])
        case 2:
            return int(array[0, 0])
        case 3:
            return array.T.copy().T
        case 4:
            return np.float32(2)
        case 5:
            return array[:, :1].copy()
        case 6:
            return array.astype(array.dtype.newbyteorder())
        case 7:
            return rng.choice([True, False]).item()
        case _:
            return array


def arguments(rng: np.random.Generator) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `several`, in one of several forms."""
    dtype = rng.choice(["f4", "f8", "i4"])
    x, y, z = (leaf(rng, dtype) for _ in range(3))
    tree: Any = {"a": y, "b": [z, 3]}
    match int(rng.integers(6)):
        case 0:
            tree = {"b": (z, 3), "a": y}
        case 1:
            tree = OrderedDict(tree)
        case 2:
            tree["c"] = None
        case _:
            pass
    match int(rng.integers(4)):
        case 0:
            return (x,), {"tree": tree}
        case 1:
            return (x,), {"tree": tree, "how": "add"}
        case _:
            return (x, tree), {}


FACTORS = [1, 2]


def several(x: Any, tree: Any, how: str = "multiply") -> Any:
    one = x * tree["a"] if how == "multiply" else x + tree["a"]
    return {"one": one, "two": (tree["b"][0] // FACTORS[0], x * tree["b"][1]), "text": how}


@pytest.mark.parametrize("seed", range(3))
def test_random_calls(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in any order give what the same calls without records give, errors included."""
    rng = np.random.default_rng(seed)
    monkeypatch.setitem(globals(), "FACTORS", [1, 2])
    jitted, other = (ptir.jit(several) for _ in range(2))
    seen = [arguments(rng) for _ in range(12)]
    answered = 0
    for _ in range(400):
        if rng.random() < 0.03:
            FACTORS[0] = int(rng.integers(0, 3))
        if rng.random() < 0.05:
            seen[rng.integers(len(seen))] = arguments(rng)
        args, kwargs = seen[int(rng.integers(len(seen)) * rng.random())]
        answered += is_native(jitted, *args, **kwargs) if FACTORS[0] else 0
        other._calls.records.clear()
        assert outcome(jitted, *args, **kwargs) == outcome(other, *args, **kwargs)
    assert answered > 20


def test_a_donated_tensor_is_an_error() -> None:
    x = ptir.tensor(X.copy())
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, x)
    ptir.jit(donate="x")(lambda x: x * 2)(x)
    with pytest.raises(DonatedError):
        jitted(x)


def test_weak_tensors() -> None:
    weak = ptir.jit(lambda x: x)(2.0)
    assert weak.weak
    jitted = ptir.jit(lambda x, y: x * y)
    x, strong = X.astype(weak.numpy().dtype), ptir.tensor(weak.numpy())
    warm(jitted, x, strong)
    assert is_native(jitted, x, strong)
    assert not is_native(jitted, x, weak)
