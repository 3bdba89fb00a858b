"""cond, while_loop and scan: types that do not fit, leaked tracers, errors in a body."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# The types of the ops are those of the form that takes functions.
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import (
    ArgumentError,
    CaptureWarning,
    DTypeError,
    ElementError,
    PtirError,
    ShapeError,
    TraceError,
)
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.types import Type
from tests.cases.programs import record

pytestmark = pytest.mark.usefixtures("strict_dtypes")  # which keeps these errors

X = np.array([1, 2, 3], np.float32)


def forever(x: Any) -> Any:
    return x.sum() < 1e9


# What is done to x, the kind of error, and words that its text must have.
MISTAKES: list[tuple[Callable[[Any], Any], type[PtirError], tuple[str, ...]]] = [
    (
        lambda x: ptir.cond(x, lambda: x, lambda: x),
        ShapeError,
        ("pred is f32[3], expected one truth value, i1[]", "x > 0", "cond(pred: f32[3]"),
    ),
    (
        lambda x: ptir.cond((x > 0,), lambda: x, lambda: x),
        ArgumentError,
        ("pred is (i1[3]", "expected one truth value"),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: (x, x), lambda: (x, x[:2])),
        ShapeError,
        ("result[1] is f32[3] in then, and f32[2] in otherwise",),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: {"a": x}, lambda: {"a": x.astype("f16")}),
        DTypeError,
        ("result['a'] is f32[3] in then, and f16[3] in otherwise", "x.astype('f32')"),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: {"a": (x, x)}, lambda: {"a": x}),
        ArgumentError,
        ("result['a'] is a tuple of 2 in then, and one value in otherwise",),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: {"a": x}, lambda: {"b": x}),
        ArgumentError,
        ("result is a dict (a) in then, and a dict (b) in otherwise",),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: None, lambda: x),
        ArgumentError,
        ("result is None in then, and f32[3] in otherwise",),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, lambda: (x, "a"), lambda: (x, "b")),
        ArgumentError,
        ("result[1] is 'a' in then, and 'b' in otherwise",),
    ),
    (
        lambda x: ptir.while_loop(forever, lambda s: ptir.concat((s, s)), x),
        ShapeError,
        ("state is f32[3] before a step, and f32[6] after it", "keeps its shapes and dtypes"),
    ),
    (
        lambda x: ptir.while_loop(
            lambda s: forever(s["x"][0]), lambda s: {"x": [s["x"][0] > 0]}, {"x": [x]}
        ),
        DTypeError,
        ("state['x'][0] is f32[3] before a step, and i1[3] after it", "x.astype('f32')"),
    ),
    (
        lambda x: ptir.while_loop(lambda s: forever(s[0]), lambda s: s[0], (x, 0)),
        ArgumentError,
        ("state is a tuple of 2 before a step, and one value after it",),
    ),
    (
        lambda x: ptir.while_loop(lambda s: s > 0, lambda s: s, x),
        ShapeError,
        ("condition is i1[3], expected one truth value, i1[]", "ptir.reduce_any"),
    ),
    (
        lambda x: ptir.while_loop(lambda s: None, lambda s: s, x),
        ArgumentError,
        ("condition is None, expected one truth value",),
    ),
    (
        lambda x: ptir.while_loop(lambda s: forever(x) & s, lambda s: 1, True),
        DTypeError,
        ("state is i1[] before a step, and si64[] after it",),
    ),
    (
        lambda x: ptir.while_loop(forever, lambda s: s + 1, 1 << 70),
        ArgumentError,
        ("state is 1180591620717411303424, which does not fit 64 bits",),
    ),
    (
        lambda x: ptir.scan(lambda s, r: s + r, 0, x),
        ArgumentError,
        ("body returned f32[]", "expected (state, y)", "return state, None"),
    ),
    (
        lambda x: ptir.scan(lambda s, r: (s, r), 0, {"a": x, "b": x[:2]}),
        ShapeError,
        ("xs['b'] is f32[2], expected 3 along its first axis",),
    ),
    (
        lambda x: ptir.scan(lambda s, r: (s, r), 0, (x, x.sum())),
        ShapeError,
        ("xs[1] is f32[], which has no first axis",),
    ),
    (
        lambda x: ptir.scan(lambda s, r: (s, r), x, x, length=4),
        ShapeError,
        ("xs is f32[3], expected 4 along its first axis",),
    ),
    (lambda x: ptir.scan(lambda s, r: (s, r), x), ArgumentError, ("neither xs nor a length",)),
    (
        lambda x: ptir.scan(lambda s, r: (s, r), x, length=-1),
        ArgumentError,
        ("length is -1, expected at least 0",),
    ),
    (
        lambda x: ptir.scan(lambda s, r: (s, r), x, length=x.sum()),
        ArgumentError,
        ("length is f32[]", "expected an integer"),
    ),
    (
        lambda x: ptir.scan(lambda s, r: (s[:1], r), x, x),
        ShapeError,
        ("state is f32[3] before a step, and f32[1] after it",),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, (x,), lambda a: a, lambda a: -a),
        ArgumentError,
        ("cond: ", "call it as cond"),
    ),
    (
        lambda x: ptir.cond(x.sum() > 0, (x,), then=lambda a: a, otherwise=lambda a: -a),
        ArgumentError,
        ("whose arguments have no types", "cond(pred:", "*operands"),
    ),
    (
        lambda x: ptir.while_loop(forever, lambda s: s + X[:2], x),
        ShapeError,
        ("[3]", "[2]", "add(", "in while_loop(condition: forever, body: "),
    ),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
@pytest.mark.parametrize("mode", ["plain", "eager", "traced"])
def test_a_mistake(number: int, mode: str) -> None:
    body, kind, words = MISTAKES[number]
    function = body if mode == "plain" else ptir.jit(body)
    with ptir.eager(mode == "eager"), pytest.raises(kind) as raised:
        function(ptir.tensor(X))
    text = str(raised.value)
    for word in words:
        assert word in text, text
    assert raised.value.where is not None
    assert raised.value.where.file == __file__


def test_a_program_with_regions_that_do_not_fit() -> None:
    branch, other = record(lambda x: x, "f32[3]"), record(lambda x: x + 1, "f32[2]")
    holds = record(lambda x: x.sum() > 0, "f32[3]")
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (
            lambda x: ptir.cond(x.sum() > 0, (x,), then=branch, otherwise=other),
            "otherwise takes (f32[2]), found (f32[3])",
        ),
        (
            lambda x: ptir.cond(x.sum() > 0, (x,), then=branch, otherwise=holds),
            "result 0 of then is f32[3], of otherwise i1[]",
        ),
        (
            lambda x: ptir.while_loop((x,), condition=branch, body=branch),
            "result 0 of condition is f32[3], of a loop i1[]",
        ),
        (
            lambda x: ptir.while_loop((x,), condition=holds, body=holds),
            "result 0 of body is i1[], of the state f32[3]",
        ),
        (lambda x: ptir.while_loop((1,), condition=holds, body=branch), "state[0] is 1"),
        (
            lambda x: ptir.scan((x,), (x,), body=branch),
            "body takes (f32[3]), found (f32[3], f32[])",
        ),
        (lambda x: ptir.scan((x,), body=branch), "length is not given"),
    ]
    recorder = Recorder("f")
    x = recorder.input(Type.parse("f32[3]"), "x")
    for call, text in cases:
        with interpreter(recorder), pytest.raises(PtirError) as raised:
            call(x)
        assert text in str(raised.value)


def test_a_value_that_leaks_out_of_a_branch() -> None:
    kept: list[Any] = []

    def keep(value: Any) -> Any:
        kept.append(value * 2)
        return value

    @ptir.jit
    def function(x: Any) -> Any:
        ptir.cond(x.sum() > 0, lambda: keep(x), lambda: x)
        return kept[-1] + 1

    @ptir.jit
    def other_branch(x: Any) -> Any:
        return ptir.cond(x.sum() > 0, lambda: keep(x), lambda: kept[-1])

    for leaking in (function, other_branch):
        with pytest.raises(TraceError, match="outside the function") as raised:
            leaking(X)
        assert "result of mul at line" in str(raised.value)
        assert raised.value.where is not None
        assert raised.value.where.file == __file__


@pytest.mark.parametrize("captured", [True, False])
def test_the_truth_of_a_traced_value_in_a_branch(captured: bool) -> None:
    @ptir.jit
    def function(x: Any) -> Any:
        total = x.sum()
        return ptir.cond(
            total > 0, lambda y: x if (total if captured else y) else -x, lambda y: y, x
        )

    with pytest.raises(TraceError, match="the truth of a traced value") as raised:
        function(X)
    assert "ptir.cond instead of `if`, ptir.while_loop instead of `while`" in str(raised.value)


@pytest.mark.parametrize("backend", ["reference", "faer"])
def test_an_element_without_a_result_names_the_line_in_the_body(backend: str) -> None:
    def rows(i: Any) -> Any:
        return ptir.take(ptir.tensor(X), i, axis=0)

    @ptir.jit(backend=backend)
    def function(i: Any) -> Any:
        return ptir.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, rows(s[0])), (i, X[0]))

    with pytest.raises(ElementError, match="out of range") as raised:
        function(np.array(0))
    assert raised.value.context[-1] == "while_loop"
    assert raised.value.where is not None
    assert raised.value.where.function.endswith("rows")


def test_a_large_array_read_in_a_branch_is_warned_of() -> None:
    large = np.zeros(1 << 20, np.float32)
    function = ptir.jit(
        lambda x: ptir.cond(x.sum() > 0, lambda: x + ptir.tensor(large)[:3], lambda: x)
    )
    with pytest.warns(CaptureWarning, match=r"4\.2 MB"):
        function(X)


@pytest.mark.parametrize("backend", ["reference", "faer"])
def test_a_window_that_does_not_fit_is_the_error_of_the_first_step(backend: str) -> None:
    def pooled(state: Any, x: Any) -> Any:
        return state, ptir.reduce_window(x, reduce="add", window=(3,), dilation=(2,))

    @ptir.jit(backend=backend, dynamic={"xs": {2: "S"}})
    def function(xs: Any) -> Any:
        return ptir.scan(pooled, X, xs)[1]

    assert function(np.ones((2, 1, 9, 1), np.float32)).shape == (2, 1, 5, 1)
    with pytest.raises(ElementError, match="window"):
        function(np.ones((2, 1, 1, 1), np.float32))
