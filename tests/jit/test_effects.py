"""print, callback and check inside jitted functions: once each, in program order, in every mode."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, CheckError, DTypeError, ShapeError
from tests.support.jitted import X, equal

MODES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "faer": nullcontext,
    "reference": lambda: ptir.backend("reference"),
    "eager": lambda: ptir.eager(),
}
each_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())


def prints(x: Any) -> Any:
    ptir.print("a {} {:.1f} {k} {{}}", x, x[1], k=(x[0], "s"))
    ptir.print("a {} {:.1f} {k} {{}}", x, x[1], k=(x[0], "s"))  # equal ones are two
    ptir.print(x * 2, x.shape)

    def body(total: Any, row: Any) -> Any:
        ptir.print("row {}", row)
        ptir.cond(row > 0, lambda: ptir.print("positive"), lambda: None)
        return total + row, None

    total, _ = ptir.scan(body, 0.0, x)
    ptir.scan(lambda c, row: (c, ptir.print("alone {}", row)), (), x)
    ptir.while_loop(lambda n: n < 2, lambda n: (ptir.print("n {}", n), n + 1)[1], 0)
    ptir.print("end")
    return total


@each_mode
def test_prints_come_in_order_and_once(mode: Any, capsys: pytest.CaptureFixture[str]) -> None:
    function = ptir.jit(prints)
    line = "a [0. 1. 2.] 1.0 (0.0, s) {}"
    rows = ["row 0.0", "row 1.0", "positive", "row 2.0", "positive"]
    alone = [f"alone {n}.0" for n in range(3)]
    expected = [line, line, "[0. 2. 4.] (3,)", *rows, *alone, "n 0", "n 1", "end"]
    for _ in range(3):
        with mode():
            equal(function(X), 3)
        assert capsys.readouterr().out.splitlines() == expected


@each_mode
def test_callbacks_are_called_and_give_tensors(mode: Any) -> None:
    seen: list[Any] = []

    def double(pair: Any) -> Any:
        assert isinstance(pair["x"], np.ndarray)
        seen.append(pair["x"].copy())
        pair["x"][:] = -1  # its own copy
        return {"y": seen[-1] * 2, "n": 3}

    def function(x: Any) -> Any:
        made = ptir.callback(double, {"x": x + 1}, result={"y": x, "n": "si64[]"})
        ptir.callback(seen.append, made["n"])
        return made["y"] + x, made["n"]

    jitted = ptir.jit(function)
    for _ in range(3):
        seen.clear()
        with mode():
            y, n = jitted(X)
        equal(y, (X + 1) * 2 + X)
        assert n.item() == 3
        np.testing.assert_array_equal(seen[0], X + 1)
        assert len(seen) == 2


@each_mode
def test_exceptions_of_callbacks_reach_the_caller(mode: Any) -> None:
    def boom(_: object) -> None:
        raise KeyboardInterrupt if stops else KeyError("boom")

    stops = False
    function = ptir.jit(lambda x: (ptir.callback(boom, x), x)[1])
    with mode(), pytest.raises(KeyError, match="boom") as error:
        function(X)
    if mode is not MODES["eager"]:
        assert "test_effects.py" in "".join(error.value.__notes__)
    stops = True
    with mode(), pytest.raises(KeyboardInterrupt):
        function(X)


@pytest.mark.parametrize(
    ("made", "error", "text"),
    [
        (lambda x: x[:2], ShapeError, "f32[2], and result= says f32[3]"),
        (lambda x: x.astype(np.float64), DTypeError, "f64[3], and result= says f32[3]"),
        (lambda x: (x, x), ArgumentError, "another structure"),
    ],
)
def test_other_results_than_promised(made: Any, error: Any, text: str) -> None:
    function = ptir.jit(lambda x: ptir.callback(made, x, result="f32[3]"))
    with pytest.raises(error) as found:
        function(X)
    assert text in str(found.value)


@each_mode
def test_checks_raise_with_the_line_and_the_values(mode: Any) -> None:
    function = ptir.jit(lambda x: (ptir.check(x < 3, "found {}", x), x + 1)[1])
    with mode():
        for _ in range(6):  # by native calls too
            equal(function(X), X + 1)
        for _ in range(2):
            with pytest.raises(CheckError, match=r"found \[1. 2. 3.\]") as error:
                function(X + 1)
            assert "test_effects.py" in str(error.value)
        equal(function(X), X + 1)


@each_mode
def test_checks_in_loops(mode: Any) -> None:
    def body(total: Any, x: Any) -> Any:
        ptir.check(total < 100, "total {}", total)
        ptir.check(total + x < 3, "{} and {}", total, x)
        return total + x, total

    function = ptir.jit(lambda x: ptir.scan(body, 0.0, x)[0])
    with mode():
        equal(function(X * 0.5), 1.5)
        with pytest.raises(CheckError, match=r"1\.0 and 2\.0"):
            function(X)
    large = ptir.jit(lambda s, x: ptir.scan(lambda c, v: (_checked(c, v), None), s, x)[0])
    rows = np.ones((4, 20000), np.float32)
    with mode(), pytest.raises(CheckError, match="greatest 3"):
        large(rows[0] * 0, rows)


def _checked(state: Any, row: Any) -> Any:
    after = ptir.tanh(state) * 0 + state + row
    greatest = ptir.reduce_max(after)
    ptir.check(greatest < 3, "greatest {}", greatest)
    return after


def test_a_native_loop_has_its_checks_inside() -> None:
    def body(total: Any, x: Any) -> Any:
        ptir.check(x >= 0, "x {}", x)
        return total + x, None

    explained = ptir.jit(lambda x: ptir.scan(body, 0.0, x)[0]).explain(X)
    assert [s.kind for s in explained.report.steps if s.kind not in ("region", "view")] == ["loop"]


def test_effects_on_constants_and_dead_branches(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: Any) -> Any:
        ptir.print("{}", ptir.tensor(X) * 2)
        ptir.cond(False, lambda: ptir.print("never"), lambda: ptir.print("always"))
        return x

    jitted = ptir.jit(function)
    assert jitted.program(X).has_effects
    assert jitted.lowered(X).has_effects
    assert capsys.readouterr().out == ""
    jitted(X)
    assert capsys.readouterr().out.splitlines() == ["[0. 2. 4.]", "always"]


@pytest.mark.parametrize("text", ["{} {}", "none", "{x}", "{"])
def test_texts_that_do_not_fit(text: str) -> None:
    with pytest.raises(ArgumentError, match="the text"):
        ptir.jit(lambda x: ptir.print(text, x))(X)


def test_a_batch_has_the_effects_of_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    def halved(x: Any) -> Any:
        ptir.print("x = {}", x)
        ptir.check(x > 0, "x is {}", x)
        return x / 2

    batch = ptir.jit(ptir.vmap(halved))
    assert batch(np.array([1, 2, 3], np.float32)).numpy().tolist() == [0.5, 1.0, 1.5]
    assert capsys.readouterr().out == "x = 1.0\nx = 2.0\nx = 3.0\n"
    with pytest.raises(CheckError, match="x is -2"):
        batch(np.array([1, -2, 3], np.float32))
