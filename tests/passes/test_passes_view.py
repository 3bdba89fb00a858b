"""`fn.passes`: what each pass did, as diffs in which values keep their names."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.debug.diff import changes
from gptrs.debug.passes import counted
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.rewrite import Fuel
from gptrs.passes.base import PassRan
from tests.support.html_pages import Page

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


@ptir.jit(backend="faer")
def mixed(x: Any, y: Any) -> Any:
    """Every stage of the passes changes its program."""
    return ptir.softmax(ptir.neg(-x) @ y) + ptir.softmax(x @ y)


def test_the_passes_in_order() -> None:
    passes = mixed.passes(X, X.T.copy())
    assert len(passes) == len(passes.ran) > 5
    assert all(isinstance(ran, PassRan) for ran in passes)
    assert (passes[0].name, passes[-1].name) == (passes.ran[0].name, passes.ran[-1].name)
    assert passes[0].before is mixed.program(X, X.T.copy())
    assert str(passes[-1].after) == str(mixed.lowered(X, X.T.copy()))
    for before, after in pairwise(passes):
        assert after.before is before.after
    assert "cancel_negations" in passes[0].rewrites
    assert passes.programs[0] is passes[0].before
    assert passes.programs[1:] == tuple(ran.after for ran in passes.changed)
    assert len({str(program) for program in passes.programs}) == len(passes.programs)


def test_nothing_is_spent_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTRS_FUEL", "0")

    @ptir.jit(backend="reference")
    def twice(x: Any) -> Any:
        return ptir.neg(-x)

    assert twice.passes(X)[0].rewrites == ("cancel_negations",)
    assert len(twice.lowered(X).body) == 2
    assert twice.cache_info().currsize == 1
    assert len(twice.retraces()) == 1


def test_the_text_has_a_diff_for_each_change() -> None:
    passes = mixed.passes(X, X.T.copy())
    text = str(passes)
    head, *parts = re.split(r"\n\n(?=--- )", text)
    changed = len(passes.changed)
    assert re.fullmatch(
        rf"mixed: {changed} of {len(passes)} passes changed the program \([\d.]+ ms\)", head
    )
    assert len(parts) == changed
    for ran, part in zip(passes.changed, parts, strict=True):
        title, *lines = part.splitlines()
        assert ran.name in title
        assert f"{len(ran.before.body)} → {len(ran.after.body)} instructions" in title
        assert all(rewrite in title for rewrite in ran.rewrites)
        assert any(line.startswith(("+", "-")) for line in lines)
        assert all(line.startswith(("@", "+", "-", " ")) for line in lines)
    assert repr(passes) == text


def test_notebooks_show_a_part_that_opens_for_each_change() -> None:
    passes = mixed.passes(X, X.T.copy())
    html = passes._repr_html_()  # pyright: ignore[reportPrivateUsage]
    page = Page(html)
    assert page.count["details"] == page.count["summary"] == len(passes.changed)
    assert "x: &quot;f32[4,6]&quot;" in html
    assert {"plus", "minus", "place"} <= page.classes


def test_mistakes_read_as_in_a_call() -> None:
    with pytest.raises(ShapeError, match="contracted axes differ") as raised:
        mixed.passes(X, X)
    assert raised.value.where is not None
    assert raised.value.where.file == __file__
    with pytest.raises(ArgumentError):
        mixed.passes(X)  # pyright: ignore[reportCallIssue]


def test_values_made_alike_are_called_alike() -> None:
    passes = mixed.passes(X, X.T.copy())
    ran = next(ran for ran in passes if ran.name == "legalize")
    once, again = ran.again(Fuel()), ran.again(Fuel())
    assert once.body != again.body
    (change,) = changes(once, again)
    assert str(change) == ""


def test_one_rewrite_is_one_change() -> None:
    ran = mixed.passes(X, X.T.copy())[0]
    change, _ = changes(ran.again(Fuel(0)), ran.again(Fuel(1)), ran.after)
    lines = [line for line in change.lines() if line[0] in "+-"]
    assert lines == [
        "-    v1 = ptir.neg(v0)  # f32[4,6]",
        "-    v2 = ptir.matmul(v1, y)  # f32[4,4]",
        "+    v2 = ptir.matmul(x, y)  # f32[4,4]",
    ]


def test_a_changed_line_knows_where_it_comes_from() -> None:
    (ran, *_) = mixed.passes(X, X.T.copy())
    (change,) = changes(ran.before, ran.after)
    assert change.where is not None
    assert change.where.file == __file__
    (none,) = changes(ran.before, ran.before)
    assert (str(none), none.where) == ("", None)


def test_long_arrays_are_cut_in_diffs() -> None:
    large = np.arange(4000, dtype=np.float32)
    passes = ptir.jit(backend="reference")(lambda x: ptir.neg(-x) * large).passes(large)  # pyright: ignore
    assert max(map(len, str(passes).splitlines())) < 200
    assert len(str(passes.program)) > 10_000


def test_names_counted() -> None:
    assert counted(()) == ""
    assert counted(("a", "b", "a")) == "a ×2, b"
