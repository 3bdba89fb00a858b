"""The document of ``fn.view``: stages, groups, plan, and what there was when something failed."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import gzip
import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import nn, ptir
from gptrs.debug.view.view import View
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.dispatch import OPS

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


def scaled(x: Any) -> Any:
    return x / (1 + ptir.abs(x).max(-1, keepdims=True))


@ptir.jit
def model(x: Any, w: Any) -> Any:
    h = scaled(ptir.relu(x @ w))
    total, rows = ptir.scan(lambda c, row: (c + row, c * row), h[0], h)
    return scaled(h) + total, rows


def labels(document: dict[str, Any]) -> list[str]:
    return [group["label"] for group in document["groups"]]


def body(document: dict[str, Any], stage: int) -> list[dict[str, Any]]:
    return [document["instructions"][number] for number in document["stages"][stage]["body"]]


def test_stages_are_the_programs_of_the_passes() -> None:
    w = X.T.copy()
    found = model.view(X, w)
    document = found.document
    first, last = document["stages"][0], document["stages"][-1]
    assert first["name"] == "traced"
    assert len(first["body"]) == len(model.program(X, w).body)
    assert len(last["body"]) == len(model.lowered(X, w).body)
    assert {entry["op"] for entry in body(document, 0)} <= set(OPS)
    made = {value for entry in document["instructions"] for value in entry["out"]}
    params = {value for stage in document["stages"] for value in stage["params"]}
    inner = {
        value
        for entry in document["instructions"]
        for region in entry.get("regions", ())
        for value in region["params"]
    }
    assert {v for entry in document["instructions"] for v in entry["in"]} <= made | params | inner


def test_instructions_have_their_line_and_their_calls() -> None:
    document = model.view(X, X.T.copy()).document
    assert set(labels(document)) == {"model", "scaled", "<lambda>", "scaled #2"}
    (product,) = (entry for entry in body(document, 0) if entry["op"] == "matmul")
    lines = document["files"][product["file"]]["text"].splitlines()
    assert "x @ w" in lines[product["line"] - 1]
    assert product["flops"] == 2 * 4 * 6 * 4
    assert product["read"] == 2 * X.nbytes
    assert product["written"] == 4 * 4 * 4
    (division, *_) = (entry for entry in body(document, 0) if entry["op"] == "div")
    assert labels(document)[division["group"]] == "scaled"


def test_the_plan_has_steps_memory_and_code() -> None:
    plan = model.view(X, X.T.copy()).document["plan"]
    explained = model.explain(X, X.T.copy()).report
    assert [step["name"] for step in plan["steps"]] == [step.name for step in explained.steps]
    assert plan["arena_bytes"] == explained.arena_bytes
    for array in plan["arena"]:
        assert 0 <= array["first"] <= array["last"] < len(plan["steps"])
        assert array["offset"] + array["bytes"] <= plan["arena_bytes"]
    assert all(step["ns"] >= 0 for step in plan["steps"])
    kernels = [plan["kernels"][n] for step in plan["steps"] for n in step["kernels"]]
    assert kernels
    assert all("define" in kernel["llvm"] and kernel["assembly"] for kernel in kernels)


def test_modules_are_named_by_their_paths() -> None:
    document = gptrs.load("stories").view(tokens=8).document
    assert document["groups"][0]["class"] == "GPT2"
    assert {"wte", "h.0", "h.0.attn", "h.0.mlp", "ln_f"} <= set(labels(document))
    attention = next(group for group in document["groups"] if group["label"] == "h.0.attn")
    assert document["groups"][attention["parent"]]["label"] == "h.0"
    assert attention["class"] == "Attention"


@pytest.mark.slow
def test_a_step_of_decoding(good: Path) -> None:
    handle = gptrs.load(good)
    document = handle.view(tokens=5, batch=2, decode=True).document
    assert document["sizes"] == {"B": 2, "S": 1, "C": 6}
    with pytest.raises(ArgumentError, match="tokens is 48, expected 1 to 47"):
        handle.view(tokens=48, decode=True)
    with pytest.raises(ArgumentError, match="batch is 0"):
        handle.view(batch=0)


def test_a_trace_that_fails_is_drawn_up_to_there() -> None:
    @ptir.jit
    def failing(x: Any) -> Any:
        y = ptir.relu(x @ x.T)
        return y @ x.T

    found = failing.view(X)
    assert isinstance(found.error, ShapeError)
    document = found.document
    (stage,) = document["stages"]
    assert stage["partial"]
    assert [entry["op"] for entry in body(document, 0)][-2:] == ["relu", "transpose"]
    assert document["plan"] is None
    assert document["error"]["type"] == "ShapeError"
    lines = document["files"][document["error"]["file"]]["text"].splitlines()
    assert "return y @ x.T" in lines[document["error"]["line"] - 1]
    assert "ended by ShapeError" in repr(found)


def test_any_exception_of_the_function_is_drawn() -> None:
    @ptir.jit
    def failing(x: Any) -> Any:
        y = x + 1
        raise KeyError(y.shape)

    document = failing.view(X).document
    assert document["error"]["type"] == "KeyError"
    assert len(document["stages"][0]["body"]) == 1


def read(page: str) -> dict[str, Any]:
    """The document in a page."""
    found = re.search(r'<script id="document"[^>]*>([^<]*)</script>', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_the_page_has_all_of_it_and_loads_nothing(tmp_path: Path) -> None:
    found = model.view(X, X.T.copy())
    path = found.save(tmp_path / "page.html")
    page = path.read_text(encoding="utf-8")
    assert read(page) == json.loads(json.dumps(found.document))
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "default-src 'none'" in page
    assert page.count("</script>") == 2
    notebook = found._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert notebook.startswith("<iframe srcdoc=")
    assert notebook.count('"') == 6


def test_text_of_users_stays_text() -> None:
    namespace: dict[str, Any] = {"ptir": ptir}
    exec("def f(x):\n    return ptir.relu(x)  # </script><b>", namespace)
    made: Any = ptir.jit(name="<b>&amp;</b>")(namespace["f"])
    page = made.view(X).html
    assert "<title>&lt;b&gt;&amp;amp;&lt;/b&gt; · gptrs</title>" in page
    assert page.count("</script>") == 2


def test_a_view_neither_runs_nor_counts_as_a_call() -> None:
    ran: list[float] = []

    @ptir.jit
    def calling(x: Any) -> Any:
        return ptir.callback(lambda t: ran.append(float(t.sum())) or t, x, result="f32[4,6]")

    assert isinstance(calling.view(X), View)
    assert not ran
    assert calling.cache_info().misses == 0


def test_every_shared_module_has_one_place() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(
                ptir.Parameter(np.ones((6, 6), np.float32), "w"),
                ptir.Parameter(np.ones(6, np.float32), "b"),
            )

        @ptir.jit
        def __call__(self, x: Any) -> Any:
            return self.inner(self.inner(x))

    twice = Twice()
    document = Twice.__call__.view(twice, X).document
    assert labels(document)[1:] == ["inner", "inner #2"]


def test_licences_of_the_bundled_libraries_are_there() -> None:
    folder = Path(inspect.getfile(View)).parent
    wanted = json.loads((folder / "web/package.json").read_text())["dependencies"]
    licences = (folder / "assets/LICENSES.txt").read_text(encoding="utf-8")
    for name, version in wanted.items():
        assert f"{name} {version} (" in licences
