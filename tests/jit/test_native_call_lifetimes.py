"""Native calls: references, freed results and models, threads, forks, signals."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import os
import signal
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gptrs import nn, ptir
from gptrs.errors import ArgumentError
from gptrs.ir.parameter import Parameter
from gptrs.ir.tensor import Tensor
from gptrs.kernels.driver.threads import limit_threads
from tests.support.native_calls import NEEDS_NATIVE_CALLS, X, is_native, outcome, warm

pytestmark = NEEDS_NATIVE_CALLS


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


class Scaled(nn.Module):
    w: Any

    def __call__(self, x: Any) -> Any:
        return x * self.w


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
