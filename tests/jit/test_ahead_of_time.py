"""``f.lower(...).compile()``: one program as a function of its own, that never traces."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import events, ptir
from gptrs.debug.lowering import ProgramPlanned, ProgramTraced
from gptrs.errors import ArgumentError, DonatedError, DTypeError, PtirError, ShapeError

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
WEIGHT = ptir.Parameter(np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32), "w")


def layer(x: Any, scale: Any = 2.0, *, mode: str = "add") -> Any:
    y = x @ WEIGHT
    y = y + scale if mode == "add" else y * scale
    return {"y": y, "rows": x.shape[0], "mode": mode}


def test_lowering_traces_and_compiling_plans() -> None:
    function = ptir.jit(layer)
    seen: list[object] = []
    with events.listen(seen.append):
        lowered = function.lower(ptir.Type((3, 4), ptir.f32))
        assert [type(e) for e in seen] == [ProgramTraced]
        compiled = lowered.compile()
        assert [type(e) for e in seen if isinstance(e, ProgramTraced | ProgramPlanned)] == [
            ProgramTraced,
            ProgramPlanned,
        ]
        seen.clear()
        found = compiled(X)
        assert not any(isinstance(e, ProgramTraced) for e in seen)
    assert lowered.program is compiled.program
    assert lowered.as_text() == str(function.program(X)) == str(ptir.parse(lowered.as_text()))
    assert compiled.as_text() == str(function.lowered(X))
    assert repr(lowered) == "<Lowered layer of x: f32[3,4], scale: f64[]>"
    assert repr(compiled) == "<Compiled layer of x: f32[3,4], scale: f64[]>"
    expected = function(X)
    np.testing.assert_array_equal(found["y"].numpy(), expected["y"].numpy())
    assert (found["rows"], found["mode"]) == (3, "add")
    assert "step" in str(compiled.explain())
    memory = compiled.memory()
    assert (memory.arguments, memory.results, memory.parameters) == (3 * 4 * 4 + 8, 3 * 5 * 4, 80)


def test_what_was_captured_stays() -> None:
    table = [np.ones(4, np.float32)]
    function = ptir.jit(lambda x: x + table[0])
    compiled = function.lower(X).compile()
    table[0] = np.zeros(4, np.float32)
    np.testing.assert_array_equal(compiled(X).numpy(), X + 1)
    np.testing.assert_array_equal(function(X).numpy(), X)


@pytest.mark.parametrize("by_option", [True, False])
def test_symbols_take_the_sizes_of_a_call(by_option: bool) -> None:
    def double(pair: Any) -> Any:
        a, b = pair
        return [a + b.sum(), a.shape[0]]

    if by_option:
        function: Any = ptir.jit(dynamic={"pair": {0: "N"}})(double)
        compiled = function.lower((X, X)).compile()
    else:
        kind = ptir.Type.parse("f32[?N,4]")
        compiled = ptir.jit(double).lower((kind, kind)).compile()
    for size in (1, 5, 100):
        a = np.ones((size, 4), np.float32)
        total, rows = compiled((a, a))
        np.testing.assert_array_equal(total.numpy(), a + 4 * size)
        assert rows == size
    assert compiled.memory(N=10).results == 160
    with pytest.raises(ShapeError, match=r"\?N, axis 0, is 3 as before"):
        compiled((X, X[:2]))
    with pytest.raises(ShapeError, match=r"\?N, axis 0, is at least 1"):
        compiled((X[:0], X[:0]))


def test_donated_arguments() -> None:
    function: Any = ptir.jit(donate="x")(lambda x: x * 2)
    compiled = function.lower(ptir.Type((3, 4), ptir.f32)).compile()
    given = ptir.tensor(X.copy())
    np.testing.assert_array_equal(compiled(given).numpy(), X * 2)
    with pytest.raises(DonatedError):
        given.numpy()


def test_options_hold() -> None:
    exact = ptir.jit(precise=True)(lambda x: ptir.exp(x * 0.1 * 0.3))
    with ptir.eager():
        expected = exact(X).numpy()
    np.testing.assert_array_equal(exact.lower(X).compile()(X).numpy(), expected)
    plain = ptir.jit(backend="reference")(lambda x: x.sum())
    assert all(s.kind == "reference" for s in plain.lower(X).compile().explain().report.steps)
    chosen = ptir.jit(overrides={"softmax": "force=portable"})(lambda x: ptir.softmax(x))
    assert "softmax" not in chosen.lower(X).compile().as_text().replace("def ", "")


WRONG: dict[str, tuple[Callable[[Any], Any], type[PtirError], str]] = {
    "shape": (
        lambda f: f(X[:2]),
        ShapeError,
        "layer was compiled for f32[3,4] as argument x, found f32[2,4]",
    ),
    "rank": (lambda f: f(X[0]), ShapeError, "as argument x, found f32[4]"),
    "dtype": (
        lambda f: f(X.astype(np.float64)),
        DTypeError,
        "as argument x, found f64[3,4]",
    ),
    "value": (
        lambda f: f(X, mode="mul"),
        ArgumentError,
        "layer was compiled for the value 'add' of argument mode, found 'mul'",
    ),
    "array": (
        lambda f: f(X, mode=X),
        ArgumentError,
        "for the value 'add' of argument mode, found f32[3,4]",
    ),
    "none": (lambda f: f(None), ArgumentError, "for f32[3,4] as argument x, found None"),
    "container": (lambda f: f([X]), ArgumentError, "for (x: f32[3,4], scale: f64[], mode: 'add')"),
    "missing": (lambda f: f(), ArgumentError, "missing a required argument: 'x'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_arguments_are_errors(name: str) -> None:
    call, kind, words = WRONG[name]
    compiled = ptir.jit(layer).lower(X).compile()
    with pytest.raises(kind) as raised:
        call(compiled)
    assert words in str(raised.value)
    assert "test_ahead_of_time.py" in str(raised.value)


def test_types_that_are_no_shapes() -> None:
    with pytest.raises(ShapeError, match="expected numbers and symbols"):
        ptir.jit(layer).lower(ptir.Type.parse("f32[2*?N,4]"))
    with pytest.raises(ArgumentError, match="missing a required argument"):
        ptir.jit(layer).lower()
