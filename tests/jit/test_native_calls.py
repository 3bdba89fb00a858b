"""Native calls: what they answer, what they leave to the fast path, and that nobody can tell."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import os
import signal
import sys
import sysconfig
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import nn, ptir
from gptrs.errors import ArgumentError, DonatedError, ElementError
from gptrs.ir.tensor import Parameter, Tensor
from gptrs.kernels.driver.current import current_driver
from gptrs.kernels.driver.threads import limit_threads, recent_cores
from gptrs.kernels.native_call import layout

pytestmark = pytest.mark.skipif(
    sys.implementation.name != "cpython"
    or any(sysconfig.get_config_var(name) for name in ("Py_DEBUG", "Py_GIL_DISABLED"))
    or current_driver().native() is None,
    reason="no native calls: another interpreter or driver",
)

X = np.arange(6, dtype=np.float32)
Y = np.ones((2, 3), np.float32)


@dataclass
class Pair:
    a: Any
    b: Any


class Named(NamedTuple):
    a: Any
    b: Any


def warm(function: Any, *args: Any, **kwargs: Any) -> None:
    """Call until a record is made, if there is one."""
    for _ in range(2):
        function(*args, **kwargs)


def is_native(function: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether a native call answers this call."""
    calls = function._calls
    recent_cores()  # else it may have been looked up too long ago
    return calls.native(calls.records, args, kwargs) is not NotImplemented


def as_lists(value: Any) -> Any:
    """A result with lists in place of Tensors, to be compared."""
    if isinstance(value, Tensor):
        return value.dtype.name, value.weak, value.numpy().tolist()
    if isinstance(value, dict):
        return {key: as_lists(child) for key, child in value.items()}
    if isinstance(value, Pair):
        return "Pair", as_lists(value.a), as_lists(value.b)
    if isinstance(value, list | tuple):
        return type(value), [*map(as_lists, value)]
    return value


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


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or its error."""
    try:
        return as_lists(function(*args, **kwargs))
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


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


SCALE = 2.0


class Scaled(nn.Module):
    w: Any
    factor: float = 3.0

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.factor * SCALE


class Holder:
    """An object that is no container."""

    def __init__(self) -> None:
        self.values = [1.0, 2.0]
        self.table = {"a": 3.0}


Function = Callable[[Any], Any]


def changes() -> Generator[tuple[Function, Function]]:
    """A function, and a change of what its call reads."""
    model = Scaled(Parameter(X, "w"))
    yield model, lambda patch: patch.setitem(globals(), "SCALE", 5.0)
    yield model, lambda _: setattr(model, "factor", 7.0)
    yield model, lambda _: setattr(model, "w", Parameter(X * 2, "w"))
    yield model, lambda _: setattr(model, "more", 1)
    yield model, lambda patch: patch.setattr(Scaled, "__call__", lambda self, x: x - self.w)
    yield model, lambda patch: patch.delitem(globals(), "SCALE")
    captured = X.copy()
    yield lambda x: x + captured, lambda _: captured.fill(9)
    holder = Holder()
    yield lambda x: x * holder.values[1], lambda _: holder.values.append(1.0)
    yield lambda x: x * holder.values[1], lambda _: setattr(holder, "values", [1.0, 3.0])
    yield lambda x: x * holder.table["a"], lambda _: holder.table.update(a=4.0)
    yield closure()
    yield lambda x: times(x), lambda patch: patch.setattr(times, "__defaults__", (3.0,))
    yield lambda x: times(x), lambda patch: patch.setattr(times, "__code__", plus.__code__)


def times(x: Any, factor: float = 2.0) -> Any:
    return x * factor


def plus(x: Any, factor: float = 2.0) -> Any:
    return x + factor


def closure() -> tuple[Function, Function]:
    value = 2.0

    def change(_: object) -> None:
        nonlocal value
        value = 11.0

    return lambda x: x * value, change


@pytest.mark.parametrize("number", range(13))
def test_changes_of_captures(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function, change = [*changes()][number]
    jitted = ptir.jit(lambda x: function(x))
    warm(jitted, X)
    assert is_native(jitted, X)
    change(monkeypatch)
    assert not is_native(jitted, X)
    assert outcome(jitted, X) == outcome(ptir.jit(lambda x: function(x)), X)


@pytest.mark.parametrize("variable", ["GPTRS_EAGER", "GPTRS_PRECISE", "GPTRS_NUM_THREADS"])
def test_changes_of_settings(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    assert is_native(jitted, X)
    monkeypatch.setenv(variable, "1")
    assert not is_native(jitted, X)
    monkeypatch.delenv(variable)
    monkeypatch.setenv("GPTRS_NUM_THREADS", "2")
    assert is_native(jitted, X)


@contextmanager
def another_environment() -> Generator[None]:
    before = os.environ
    os.environ = dict(before)  # noqa: B003  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        os.environ = before  # noqa: B003


@pytest.mark.parametrize(
    "context",
    [ptir.eager, lambda: ptir.backend("reference"), another_environment, ptir.assume_unchanged],
)
def test_contexts(context: Callable[[], Any]) -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    with context():
        assert not is_native(jitted, X)
        np.testing.assert_array_equal(jitted(X).numpy(), X + 1)
    assert is_native(jitted, X)


def test_inside_of_a_trace() -> None:
    inner = ptir.jit(lambda x: x + 1)
    warm(inner, X)
    outer = ptir.jit(lambda y: inner(X) * y)
    assert len(outer.program(X).body) > 1
    np.testing.assert_array_equal(outer(X).numpy(), (X + 1) * X)


def test_a_failed_step() -> None:
    jitted = ptir.jit(lambda x, y: x // y)
    x, y = np.arange(4, dtype=np.int32), np.array([1, 2, 3, 4], np.int32)
    warm(jitted, x, y)
    assert is_native(jitted, x, y)
    zero = np.array([1, 2, 0, 4], np.int32)
    errors = []
    for function in (jitted, ptir.jit(lambda x, y: x // y)):
        with pytest.raises(ElementError) as found:
            function(x, zero)
        errors.append(str(found.value).replace("<lambda>", ""))
    assert errors[0].splitlines()[0] == errors[1].splitlines()[0]
    assert is_native(jitted, x, y)


def test_an_evicted_program() -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    jitted.clear_cache()
    assert not is_native(jitted, X)
    jitted(X)
    assert jitted.cache_info().misses == 1


def test_references() -> None:
    jitted = ptir.jit(lambda t, n: (t["a"] + n, t["b"] * 2))
    a, b = X.copy(), X.copy()
    tree: dict[str, Any] = {"a": a, "b": ptir.tensor(b)}
    warm(jitted, tree, 2.5)
    assert is_native(jitted, tree, 2.5)
    watched = (a, b, tree, tree["b"], jitted, a.dtype, tree["b"].type, None, Tensor)
    gc.collect()
    before = [*map(sys.getrefcount, watched)]
    for _ in range(100):
        jitted(tree, 2.5)
        assert outcome(jitted, tree, 10**30)[0] is ArgumentError  # more than 64 bits
    gc.collect()
    after = [*map(sys.getrefcount, watched)]
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) < 50


def test_results_are_freed_and_arguments_too() -> None:
    jitted = ptir.jit(lambda x: x + 1)
    warm(jitted, X)
    x = X.copy()
    result = jitted(x)
    ends = weakref.ref(x), weakref.ref(result), weakref.ref(result.numpy())
    del x, result
    assert [end() is None for end in ends] == [True] * 3


def test_a_model_is_freed() -> None:
    model = Scaled(Parameter(X, "w"))
    jitted = ptir.jit(lambda model, x: model(x))
    warm(jitted, model, X)
    assert is_native(jitted, model, X)
    end = weakref.ref(model.w)
    del model
    gc.collect()
    assert end() is None


def test_collections_of_garbage_in_calls() -> None:
    jitted = ptir.jit(lambda x: (x + 1, [x * 2]))
    warm(jitted, X)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            one, (two,) = jitted(X)
            assert one.tolist() == (X + 1).tolist()
            assert two.tolist() == (X * 2).tolist()
    finally:
        gc.set_threshold(*threshold)


def test_threads() -> None:
    jitted = ptir.jit(lambda x, w: ptir.softmax(x @ w, axis=-1) + x)
    w = np.eye(64, dtype=np.float32)
    inputs = [np.full((32, 64), i, np.float32) for i in range(8)]
    expected = [jitted(x, w).numpy() for x in inputs]
    warm(jitted, inputs[0], w)

    def work(number: int) -> None:
        for _ in range(200):
            np.testing.assert_array_equal(jitted(inputs[number], w).numpy(), expected[number])

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(work, range(8))] == [None] * 8


def test_a_function_that_is_dropped_in_a_call_of_another_thread() -> None:
    x = np.ones((256, 256), np.float32)

    def work(_: int) -> None:
        jitted = ptir.jit(lambda x: (x @ x).sum())
        for turn in range(20):
            assert jitted(x).item() == 256**3
            if turn % 7 == 6:
                jitted.clear_cache()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(8))] == [None] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child() -> None:
    x = np.arange(1 << 18, dtype=np.float32)
    with limit_threads(2):
        jitted = ptir.jit(lambda x: x * 2 + 1)
        warm(jitted, x)
        child = os.fork()
        if child == 0:
            right = all(np.array_equal(jitted(x).numpy(), x * 2 + 1) for _ in range(20))
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0


class Stopped(Exception):  # noqa: N818 - what a handler raises
    """Raised by the handler of a signal."""


def test_a_signal_ends_a_loop() -> None:
    jitted = ptir.jit(lambda x, n: ptir.while_loop(lambda v: v < n, lambda v: v + 1, x))
    start = np.array(0, np.int64)
    warm(jitted, start, np.array(10, np.int64))
    assert is_native(jitted, start, np.array(10, np.int64))

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Stopped):
            jitted(start, np.array(1 << 62, np.int64))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert jitted(start, np.array(10, np.int64)).item() == 10


def test_weights_that_were_evicted() -> None:
    """Packed weights that the cache dropped are made again."""
    w = Parameter(np.eye(64, dtype=np.float32), "w")
    jitted = ptir.jit(lambda x: x @ w)
    x = np.ones((4, 64), np.float32)
    warm(jitted, x)
    assert is_native(jitted, x)
    plan: Any = next(iter(jitted._calls._cached.values())).slot.entry.plan
    plan._spare[-1].lease.end()
    assert not is_native(jitted, x)
    np.testing.assert_array_equal(jitted(x).numpy(), x)
