"""The page of ``fn.view`` in a browser: clicks, keys, search, code, and no network.

They run where Playwright and a Chromium are installed: Debian's, or the one that
``playwright install chromium`` brings.
"""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gptrs
from gptrs import ptir

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


@ptir.jit
def model(x: Any, w: Any) -> Any:
    h = ptir.gelu(x @ w)
    total, rows = ptir.scan(lambda c, row: (c + row, c * row), h[0], h)
    return ptir.softmax(h - h.mean(-1, keepdims=True)) + total, rows


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
        path = next((each for each in found if each), playwright.chromium.executable_path)
        if not Path(path).exists():
            pytest.skip("no Chromium is installed")
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


class Opened:
    """A view in a tab, with what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def nodes(self) -> list[str]:
        return self.page.locator(".node text:first-of-type").all_inner_texts()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Generator[Any]:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="light")
    tabs: list[Opened] = []

    def open_view(view: Any) -> Opened:
        tab = Opened(context.new_page())
        tabs.append(tab)
        path = view.save(tmp_path / f"{len(tabs)}.html")
        tab.page.goto(path.as_uri())
        tab.page.wait_for_selector("body[data-ready]")
        return tab

    yield open_view
    context.close()
    for tab in tabs:
        assert not tab.errors
        assert all(url.startswith(("file:", "data:", "blob:")) for url in tab.requests)


def test_a_click_tells_all_of_an_instruction(opened: Any) -> None:
    tab = opened(model.view(X, X.T.copy()))
    assert tab.text("h1") == "model"
    tab.page.locator(".node", has_text="matmul").click()
    told = tab.text(".inspector")
    for words in ("ptir.matmul(x, w)", "f32[4,4]", "192 FLOP", "h = ptir.gelu(x @ w)"):
        assert words in told, told
    tab.page.keyboard.press("Escape")
    assert "ptir.matmul(x, w)" not in tab.text(".inspector")


def test_loops_open_and_close(opened: Any) -> None:
    tab = opened(model.view(X, X.T.copy()))
    assert (
        tab.count(
            ".node.op",
        )
        >= 10
    )
    before = tab.count(".node")
    tab.page.keyboard.press("c")
    tab.page.wait_for_timeout(300)
    assert tab.count(".node") < before
    tab.page.keyboard.press("e")
    tab.page.wait_for_timeout(300)
    assert tab.count(".node") == before


def test_passes_show_before_and_after(opened: Any) -> None:
    view = model.view(X, X.T.copy())
    tab = opened(view)
    tab.page.keyboard.press("2")
    assert tab.count(".pass-list button") == len(view.document["stages"])
    assert "as traced" in tab.text(".diff")
    tab.page.keyboard.press("]")
    assert "before" in tab.text(".diff")
    assert "after" in tab.text(".diff")


def test_steps_show_their_code(opened: Any) -> None:
    view = model.view(X, X.T.copy())
    tab = opened(view)
    tab.page.get_by_role("tab", name="timeline").click()
    rows = tab.page.locator(".timeline-panel .step-row")
    steps = view.document["plan"]["steps"]
    assert rows.count() == len(steps)
    number = next(n for n, step in enumerate(steps) if step["kind"] == "region")
    rows.nth(number).click()
    assert steps[number]["name"] in tab.text(".inspector")
    tab.page.locator(".inspector button", has_text="source").first.click()
    assert "def " in tab.text(".listing pre")
    tab.page.locator(".listing").get_by_role("tab", name="assembly").click()
    assert "ret" in tab.text(".listing pre")
    tab.page.locator(".listing").get_by_role("tab", name="LLVM").click()
    assert "define" in tab.text(".listing pre")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator(".listing").is_hidden()


def test_memory_is_drawn(opened: Any) -> None:
    view = model.view(X, X.T.copy())
    tab = opened(view)
    tab.page.keyboard.press("4")
    assert tab.count(".memory-panel svg rect") >= len(view.document["plan"]["arena"])


def test_search_finds_lines_and_modules(opened: Any) -> None:
    tab = opened(gptrs.load("stories").view(tokens=8))
    assert "h.0" in tab.text(".outline")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("h.1.mlp")
    tab.page.keyboard.press("Enter")
    assert tab.text(".inspector").startswith("h.1.mlp")
    tab.page.keyboard.press("Escape")
    tab.page.locator(".search input").fill("nothing has this name")
    assert "Nothing matches" in tab.text(".search")


def test_dark_and_light(opened: Any) -> None:
    tab = opened(model.view(X, X.T.copy()))
    colour = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(colour)
    tab.page.keyboard.press("t")
    assert tab.page.evaluate(colour) != light
    tab.page.keyboard.press("t")
    assert tab.page.evaluate(colour) == light


def test_a_failure_is_shown_with_its_line(opened: Any) -> None:
    @ptir.jit
    def failing(x: Any) -> Any:
        y = ptir.relu(x @ x.T)
        return y @ x.T

    tab = opened(failing.view(X))
    assert "ShapeError" in tab.text(".banner")
    assert "return y @ x.T" in tab.text(".inspector")
    assert tab.page.locator(".node", has_text="relu").count() == 1
    tab.page.keyboard.press("3")
    assert "There is no plan" in tab.text(".timeline-panel")


def test_thousands_of_instructions(opened: Any) -> None:
    @ptir.jit
    def long(x: Any) -> Any:
        for k in range(2500):
            x = x * 1.01 + k
        return x

    tab = opened(long.view(X))
    assert "5,000 instructions" in tab.text(".inspector")
    assert tab.count(".node") < 200
    tab.page.locator(".node.chunk").first.click()
    tab.page.wait_for_timeout(300)
    assert 5 < tab.count(".node") < 400
