"""Notebooks: what ``_repr_html_`` of programs, plans, tensors, models and records shows."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gptrs
from gptrs import html_tables, nn, ptir
from gptrs.ir import tensor_html
from gptrs.ir.parameter import Parameter
from gptrs.memory.estimate import MemoryEstimate
from tests.support.html_pages import Page

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
HOSTILE = "<script>alert(1)</script>&"


@ptir.jit(backend="faer")
def shown(x: Any, label: str = "") -> Any:
    ptir.check(x < 3, "too large: {} " + label, x)
    total, _ = ptir.scan(lambda c, row: (c + row, None), x[0], x)
    return ptir.softmax(x.T.T) * 2 + ptir.softmax(x) + total


class Pair(nn.Module):
    first: Parameter
    second: tuple[Any, ...]


def page(value: Any) -> Page:
    html = value._repr_html_()
    assert "http:" not in html
    assert "https:" not in html
    return Page(html)


def estimate() -> MemoryEstimate:
    return MemoryEstimate(3_000_000, 1_000_000, 500_000, 500_000, 0, 5_000_000, 64, 1, 2)


def module() -> Pair:
    weight = Parameter(np.ones((2, 3), np.float32), HOSTILE)
    inner = Pair(weight, ())
    return Pair(weight, (inner, Pair(Parameter(np.ones(5, np.float16)), ())))


def retraces() -> Any:
    function = ptir.jit(lambda x, n: x * len(n), static_argnames=("n",), backend="reference")
    function(X, "first")
    function(X, HOSTILE)
    return function.retraces()


KINDS: list[tuple[str, Callable[[], Any], tuple[str, ...]]] = [
    ("program", lambda: shown.program(X, HOSTILE), ("def shown(", "ptir.softmax", "# f32[4,6]")),
    ("explanation", lambda: shown.explain(X, HOSTILE), ("softmax", "native steps", "def ")),
    ("passes", lambda: shown.passes(X, HOSTILE), ("passes changed", "→")),
    ("profile", lambda: shown.profile(X, HOSTILE), ("by line", "GFLOP/s", Path(__file__).name)),
    ("retraces", retraces, (f"static argument n: 'first' → {HOSTILE!r}", "the first call")),
    ("cache", lambda: shown.cache_info(), ("hits", "misses", "maxsize", "currsize", "128")),
    ("tensor", lambda: ptir.tensor(X), ("4 × 6", "f32", "96 B", "-2, 0, 2", "NaN", "std1.2039")),
    ("parameter", lambda: Parameter(X, HOSTILE), (HOSTILE, "4 × 6")),
    ("module", module, ("first", "f32[2,3]", "11 parameters, 34 B f32 f16", "shared")),
    ("estimate", estimate, ("weights", "3.0 MB", "total", "10.0 MB", "context 64, batch 1")),
]


@pytest.mark.parametrize(
    ("make", "words"), [(make, words) for _, make, words in KINDS], ids=[n for n, _, _ in KINDS]
)
def test_every_kind(make: Callable[[], Any], words: tuple[str, ...]) -> None:
    found = page(make())
    assert [word for word in words if word not in found.text] == []
    assert "script" not in found.count


def test_text_is_escaped_once() -> None:
    once = html_tables.escaped("<a>")
    assert once == html_tables.escaped(once) == html_tables.joined([once]) == "&lt;a&gt;"
    assert Page(html_tables.block("<a>", title='"<b>"')).titles == ['"<b>"']


def test_colours_fit_light_and_dark_pages() -> None:
    """Of text they are of middle brightness, of what is behind it translucent."""
    html = html_tables.fragment()
    colours = re.findall(r"(?:[{;]color|background|fill)[:=]\"?([^;}\"]+)", html)
    colours += re.findall(r'fill="([^"]+)"', html_tables.histogram([1], ""))
    for colour in colours:
        digits = colour.removeprefix("#")
        red, green, blue = (
            (int(digits[n : n + 2], 16) for n in (0, 2, 4)) if len(digits) == 6 else (128,) * 3
        )
        assert colour in ("inherit", "none") or len(digits) in (4, 6, 8)
        assert 80 < 0.3 * red + 0.59 * green + 0.11 * blue < 180, colour
    assert len(colours) > 10


class TestProgram:
    def test_each_line_has_the_line_of_the_user_as_its_title(self) -> None:
        program = shown.program(X, HOSTILE)
        lines, first = inspect.getsourcelines(shown.__wrapped__)  # pyright: ignore
        (number,) = [n for n, line in enumerate(lines, first) if "ptir.scan" in line]
        found = page(program)
        assert f"{__file__}:{number} in shown.<locals>.<lambda>" in found.titles, (
            "of the loop's body"
        )
        assert f"{__file__}:{number + 1} in shown" in found.titles
        assert len(found.titles) == str(program).count(" = ptir.")

    def test_the_repr_is_the_text(self) -> None:
        program = shown.program(X, HOSTILE)
        assert repr(program) == str(program)

    def test_large_arrays_are_cut(self) -> None:
        large = np.arange(2000, dtype=np.float32)
        program = ptir.jit(lambda x: x + large, backend="reference").program(1.0)
        assert len(str(program)) > 8000 > len(page(program).text)


def test_sources_of_fused_loops_open() -> None:
    found = shown.explain(X, HOSTILE)
    steps = [step for step in found.report.steps if step.source]
    assert page(found).count["details"] == len(steps) > 0


def test_never_traced() -> None:
    function = ptir.jit(lambda x: x)
    assert str(function.retraces()) == "never traced"
    assert page(function.retraces()).text == "never traced"


TENSORS: list[tuple[Any, tuple[str, ...]]] = [
    (np.float32(2.5), ("scalar", "2.5")),
    (np.zeros((0, 3), np.float32), ("0 × 3", "0 B")),
    (np.array([1.0, np.nan, np.inf, -np.inf, 3.0]), ("1, 2, 3", "NaN1", "infinite2")),
    (np.full(3, np.nan, np.float32), ("NaN3", "infinite0")),
    (np.array([-1e308, 1e308]), ("-1e+308, 0, 1e+308", "from -1e+308 to 1e+308")),
    (np.array([True, False, True, True]), ("true", "75 %")),
    (np.array([3 + 4j, 0j]), ("|x| min", "0, 2.5, 5")),
    (np.array([2**63, 1], np.uint64), ("1, 4.6117e+18, 9.2234e+18",)),
    (np.array([1.5, -2], ml_dtypes.bfloat16), ("bf16", "-2, -0.25, 1.5")),
    (np.array([-8, 7], ml_dtypes.int4), ("si4", "-8, -0.5, 7")),
    (np.array([5, 5, 5], np.int32), ("5, 5, 5", "std0")),
]


@pytest.mark.parametrize(("array", "words"), TENSORS, ids=range(len(TENSORS)))
def test_tensors(array: Any, words: tuple[str, ...]) -> None:
    found = page(ptir.tensor(array))
    assert [word for word in words if word not in found.text] == []


def test_a_sample_of_a_large_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_html, "_BLOCKS", 4)
    monkeypatch.setattr(tensor_html, "_MOST", 4 * 4096)
    wide = np.arange(2 * 3 * 10**6, dtype=np.float32).reshape(2, -1)
    wide[0, 20_000] = np.nan  # between the blocks
    for array in (wide, wide.T, np.broadcast_to(np.float32(2), (10**6, 10**6))):
        found = page(ptir.Tensor.of_array(array))
        assert f"of a sample of 16,384 of {array.size:,} elements" in found.text
        assert "NaN0" in found.text


def test_what_has_no_elements_is_not_computed(good: Path) -> None:
    model = gptrs.load(good)
    for weight in (parameters := model.parameters()).values():
        assert "not in memory" in page(weight).text
    found = page(model)
    assert found.text.count("not in memory") == len(parameters)
    assert "GPT2" in found.text
    assert str(good) in found.text
    assert not any(weight.in_memory for weight in parameters.values())

    seen: list[str] = []

    def traced(x: Any) -> Any:
        seen.append(page(x).text)
        return x

    ptir.jit(traced)(X)
    given = ptir.tensor(X)
    given.donate("another")
    assert "traced" in seen[0]
    assert "donated" in page(given).text
