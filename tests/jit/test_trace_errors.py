"""Errors in traced functions name the op, the operand, the fix and the user's line."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import (
    ArgumentError,
    DonatedError,
    DTypeError,
    ElementError,
    PtirError,
    ShapeError,
    TraceError,
)
from gptrs.ir.parameter import Parameter

pytestmark = pytest.mark.usefixtures("strict_dtypes")  # which keeps these errors

X = np.arange(1, 4, dtype=np.float32)
HALF = X.astype(np.float16)
M = np.ones((2, 3), np.float32)
I = np.array([0, 2])  # noqa: E741
LEAKED: list[Any] = []
SOFTMAX: Any = ptir.softmax


@dataclass
class Cache:
    keys: list[Any]
    state: Any = None


def loop(x: Any) -> Any:
    while x > 0:
        x = x - 1
    return x


CAPTURED = ptir.tensor(X)


def write(x: Any) -> Any:
    CAPTURED[0] = x[1]
    return x


# What is done to x, the kind of error, and words that its text must have.
MISTAKES: list[tuple[Callable[[Any], Any], Any, type[PtirError], tuple[str, ...]]] = [
    (lambda x: x if x > 0 else -x, 1.0, TraceError, ("truth", "result of greater", "ptir.select")),
    (lambda x: x if x else -x, X, TraceError, ("truth", "argument x, f32[3]", "static_argnames")),
    (loop, 1.0, TraceError, ("truth", "ptir.select")),
    (lambda x: x and 1, X, TraceError, ("truth",)),
    (lambda x: not x, X, TraceError, ("truth",)),
    (lambda x: x in (1, 2), X, TraceError, ("truth",)),
    (lambda x: max(x, x + 1), X, TraceError, ("truth",)),
    (lambda x: sorted(x), X, TraceError, ("truth",)),
    (lambda x: 0 < x < 1, X, TraceError, ("truth",)),
    (lambda x: list(range(x)), 3, TraceError, ("integer", "argument x", "static_argnames")),
    (lambda x: [1, 2, 3][x], 1, TraceError, ("integer", "argument x")),
    (lambda x: int(x), 3, TraceError, ("integer", "argument x", "static_argnames")),
    (lambda x: float(x), 3.0, TraceError, ("number", "argument x")),
    (lambda x: math.sqrt(x), 3.0, TraceError, ("number", "argument x")),
    (lambda x: f"{x:.2f}", 3.0, TraceError, ("argument x", "GPTRS_EAGER=1")),
    (lambda x: x.numpy(), X, TraceError, ("elements", "argument x", "GPTRS_EAGER=1")),
    (lambda x: x.item(), 3.0, TraceError, ("elements", "argument x")),
    (lambda x: x.tolist(), X, TraceError, ("elements", "argument x")),
    (lambda x: list(x), 3.0, TraceError, ("rank 0 has no length", "argument x")),
    (lambda x: len(x), 3.0, TraceError, ("rank 0 has no length", "argument x")),
    (lambda x: np.add(X, x, out=M[0]), X, TraceError, ("add", "argument x", "out=")),
    (lambda x: np.add.reduceat(x, [0, 1]), X, TraceError, ("reduceat", "argument x", "segment")),
    (lambda x: np.isnat(x), X, TraceError, ("isnat", "argument x", "ptir.callback")),
    (lambda x: np.add(x, 1, where=x > 0), X, TraceError, ("add", "argument x", "ptir.where")),
    (lambda x: np.array(x), X, TraceError, ("elements", "argument x")),
    (lambda x: np.array([x, x]), X, TraceError, ("elements", "argument x")),
    (lambda x: np.asarray(x), X, TraceError, ("elements", "argument x")),
    (lambda x: np.from_dlpack(x), X, TraceError, ("elements", "argument x")),
    (write, X, TraceError, ("outside of the traced function is written", "x.copy()")),
    (lambda x: x + HALF, X, DTypeError, ("f32", "f16", "add(x: f32[3] (argument x)", "cast")),
    (lambda x: HALF + x, X, DTypeError, ("f16", "f32", "argument x")),
    (lambda x: x / 2, I, DTypeError, ("/ needs floating", "si64", "//")),
    (lambda x: x + M[:, :2], X, ShapeError, ("[3]", "[2,2]", "axis -1", "add(", "argument x")),
    (lambda x: x @ M, X, ShapeError, ("matmul(", "argument x")),
    (lambda x: x.sum(axis=1), X, ShapeError, ("axis 1", "reduce_sum(x: f32[3] (argument x)")),
    (lambda x: x.reshape(2, 2), X, ShapeError, ("reshape(x: f32[3] (argument x)",)),
    (lambda x: x.permute(0, 0), M, ShapeError, ("transpose(x: f32[2,3] (argument x)",)),
    (lambda x: x[3], X, ShapeError, ("3", "axis 0")),
    (lambda x: x[0, 0], X, ShapeError, ("2 indices",)),
    (lambda x: x[x > 0], X, TraceError, ("x[mask]", "ptir.where(mask, x, 0)")),
    (lambda x: x + "a", X, ArgumentError, ("'a' (str) is no operand", "argument x")),
    (lambda x: x == None, X, PtirError, ("equal(", "argument x")),  # noqa: E711
    (lambda x: ptir.softmax(x, axis=x), 1.0, ArgumentError, ("axis", "known while tracing")),
    (lambda x: SOFTMAX(x, along=0), X, ArgumentError, ("softmax", "along")),
    (lambda x: ptir.take(ptir.tensor(X), x + 7, axis=0), I, ElementError, ("take", "out of range")),
    (lambda x: x // 0, I, ElementError, ("division by zero", "div")),
]  # fmt: skip


@pytest.mark.parametrize(("body", "argument", "kind", "words"), MISTAKES)
def test_a_mistake(
    body: Callable[[Any], Any], argument: Any, kind: type[PtirError], words: tuple[str, ...]
) -> None:
    function = ptir.jit(lambda x: body(x))
    with pytest.raises(kind) as raised:
        function(argument)
    text = str(raised.value)
    assert all(word in text for word in words), text
    where = raised.value.where
    assert where is not None
    assert where.file == __file__
    assert where.line in {line for _, _, line in body.__code__.co_lines()}
    frames = [f.filename for f in traceback.extract_tb(raised.value.__traceback__)]
    inner = [name for name in frames if "/gptrs/" in name and "/tests/" not in name]
    assert len(inner) <= 3, frames
    assert f"{__file__}:{where.line} in " in text
    if kind is not ElementError:  # which comes when the program runs
        shown = "".join(traceback.format_exception(raised.value))
        assert f'"{__file__}", line {where.line}' in shown
    assert function.cache_info().misses <= 1


def test_python_errors_are_the_users_own() -> None:
    def fail(x: Any) -> Any:
        return x.missing

    with pytest.raises(AttributeError, match="missing") as raised:
        ptir.jit(fail)(X)
    names = [f.name for f in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-1] == "fail"
    assert [n for n in names if n in ("trace", "call", "_entry", "_run")] == []


def test_all_frames_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(x: Any) -> Any:
        raise KeyError(x)

    monkeypatch.setenv("GPTRS_TRACEBACK", "1")
    with pytest.raises(KeyError) as raised:
        ptir.jit(fail)(X)
    assert "trace" in [f.name for f in traceback.extract_tb(raised.value.__traceback__)]


def test_iteration_is_unrolled() -> None:
    @ptir.jit
    def function(x: Any) -> Any:
        first, second = x
        total = first * 0
        for row in reversed(list(x)):
            total = total * 10 + row
        return total, [first, second]

    total, rows = function(np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(total.numpy(), [31, 42])
    np.testing.assert_array_equal(rows[1].numpy(), [3, 4])


def test_a_failed_trace_leaves_nothing_behind() -> None:
    state = {"fail": True}

    def function(x: Any) -> Any:
        if state["fail"]:
            raise ValueError("no")
        return x + 1

    jitted = ptir.jit(function)
    with pytest.raises(ValueError, match="no"):
        jitted(X)
    assert jitted.cache_info().currsize == 0
    state["fail"] = False
    np.testing.assert_array_equal(jitted(X).numpy(), X + 1)
    np.testing.assert_array_equal((ptir.tensor(X) + 1).numpy(), X + 1)  # eager again


def leak_into_list(x: Any) -> Any:
    LEAKED.append(x * 2)
    return x


def leak_into_object(x: Any, box: Any) -> Any:
    box.state = x * 2
    return x


LATER: dict[str, Callable[[Any], Any]] = {
    "eager op": lambda t: t + 1,
    "right operand": lambda t: X + t,
    "numpy": lambda t: t.numpy(),
    "array": lambda t: np.asarray(t),
    "truth": lambda t: bool(t),
    "int": lambda t: int(t),
    "print": lambda t: f"{t:.1f}",
    "argument": lambda t: ptir.jit(lambda y: y + 1)(t),
    "other trace": lambda t: ptir.jit(lambda y: y + t)(X),
    "returned": lambda t: ptir.jit(lambda y: (y, t))(X),
    "eager mode": lambda t: _eagerly(t),
    "tensor": lambda t: ptir.tensor(t),
}


def _eagerly(t: Any) -> Any:
    with ptir.eager():
        return ptir.jit(lambda y: y + t)(X)


class Box:
    state: Any = None


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("place", ["list", "object", "closure"])
def test_a_traced_value_that_got_out(name: str, place: str) -> None:
    box = Box()
    kept: list[Any] = []

    def leak_into_closure(x: Any) -> Any:
        kept.append(x * 2)
        return x

    LEAKED.clear()
    if place == "list":
        ptir.jit(leak_into_list)(X)
        tensor = LEAKED[0]
    elif place == "object":
        ptir.jit(leak_into_object)(X, box)
        tensor = box.state
    else:
        ptir.jit(leak_into_closure)(X)
        tensor = kept[0]
    with pytest.raises(TraceError, match=r"outside the function that it was\s+traced in") as raised:
        LATER[name](tensor)
    text = str(raised.value)
    assert "result of mul at line" in text
    assert "return it from the function" in text
    assert raised.value.where is not None
    assert raised.value.where.file == __file__
    assert "traced" in repr(tensor)


def test_donation() -> None:
    @ptir.jit(donate="cache")
    def step(x: Any, cache: Cache) -> Cache:
        return Cache([k + x for k in cache.keys])

    def fresh() -> Cache:
        return Cache([ptir.tensor(X.copy()), ptir.tensor(X.copy())])

    for eager in (False, True):
        with ptir.eager(eager):
            cache = fresh()
            new = step(X, cache)
            np.testing.assert_array_equal(new.keys[0].numpy(), X + X)
            for use in (lambda t: t + 1, lambda t: t.numpy(), lambda t: step(X, Cache([t]))):
                with pytest.raises(
                    DonatedError, match=r"step \(argument cache\.keys\[0\]\)"
                ) as why:
                    use(cache.keys[0])
                assert why.value.where is not None
                assert "the function returned" in str(why.value)
            assert "donated" in repr(cache.keys[0])
            with pytest.raises(DonatedError, match=r"argument cache\.keys\[1\] .* ndarray: only"):
                step(X, Cache([ptir.tensor(X), X]))
            shared = ptir.tensor(X.copy())
            with pytest.raises(DonatedError, match=r"cache\.keys\[0\] and cache\.keys\[1\]"):
                step(X, Cache([shared, shared]))
            with pytest.raises(DonatedError, match=r"x and cache\.keys\[0\]"):
                step(shared, Cache([shared]))
            weight = Parameter(X, "w")
            with pytest.raises(DonatedError, match="parameter w cannot be donated"):
                step(X, Cache([weight]))
            np.testing.assert_array_equal(shared.numpy(), X)
            failing = fresh()
            with pytest.raises(ShapeError):
                step(np.ones(2, np.float32), failing)
            step(X, failing)  # a call that failed took nothing


def test_views_of_one_array_are_not_donated() -> None:
    step = ptir.jit(donate="a")(lambda a, b: a + b)
    whole = np.arange(6, dtype=np.float32)
    with pytest.raises(DonatedError, match="a and b"):
        step(ptir.tensor(whole[:3]), ptir.tensor(whole[1:4]))


def test_arguments_that_do_not_fit() -> None:
    function: Any = ptir.jit(lambda x: x)
    for call in (lambda: function(), lambda: function(X, X), lambda: function(X, z=1)):
        with pytest.raises(ArgumentError, match="it is declared as") as raised:
            call()
        assert raised.value.where is not None
        assert raised.value.where.file == __file__
    with pytest.raises(DTypeError):
        function(np.array(["a"]))
    with pytest.raises(DTypeError):
        function(np.array([object()]))


def test_an_object_of_an_unknown_kind_is_named_where_it_is_used() -> None:
    with pytest.raises(ArgumentError, match=r"is no operand.*\n.*add\(x: f32\[3\] \(argument x\)"):
        ptir.jit(lambda x, y: x + y)(X, Box())
