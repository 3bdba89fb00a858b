"""The magics of ``%load_ext gptrs``: what they show, and what they say of mistakes."""

from __future__ import annotations

import re

import pytest

from tests.support.html_pages import Page
from tests.support.ipython_kernel import Kernel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded(kernel: Kernel) -> None:
    found = kernel.run(
        "%load_ext gptrs\n@ptir.jit\ndef sum_of(x):\n    return ptir.exp(x.T.T).sum()"
    )
    assert found.traceback == found.errors == ""


def test_ptir_shows_what_was_compiled(kernel: Kernel) -> None:
    found = kernel.run(
        "%%ptir\n@ptir.jit\ndef twice(x):\n    return x.T.T * 2\ntwice(X)\ntwice(X)\ntwice(X[:2])"
    )
    shown, value = found.html
    page = Page(shown)
    assert page.text.count("twice") >= 2
    for words in ("the first call", "argument x: axis 0: 3 → 2", "3 → 1", "how twice runs"):
        assert words in page.text
    assert page.count["details"] >= 2
    assert re.search(r"\d compiled, \d loaded", page.text)
    assert "f32" in value
    assert "Tensor([2., 2.]" in found.plain[-1]
    again = kernel.run("%%ptir\ntwice(X);")
    assert Page(again.html[0]).text == "nothing was compiled"
    assert again.html[1:] == []


def test_lines_below_a_magic_are_those_of_the_cell(kernel: Kernel) -> None:
    found = kernel.run("%%ptir\n\n@ptir.jit\ndef g(x):\n    return x @ x[:, None].T\n\ng(X)")
    cell = f"Cell In[{kernel.count}], line"
    assert re.findall(r"^Cell In.*", found.traceback, re.M) == [f"{cell} 7", f"{cell} 5, in g(x)"]
    assert f"at {cell} 5 in g" in found.traceback
    assert "run_cell_magic" not in found.traceback
    assert "failed" in Page(found.html[0]).text


def test_names_stay_and_statements_run(kernel: Kernel) -> None:
    found = kernel.run("%%ptir\nkept = 3\nif kept:\n    print(kept)")
    assert found.text == "3\n"
    assert len(found.html) == 1
    assert kernel.run("print(kept)").text == "3\n"


@pytest.mark.parametrize(
    "cell", ["%gptrs_profile sum_of(X)", "%%gptrs_profile\nfor _ in range(3):\n    sum_of(X)"]
)
def test_profile(kernel: Kernel, cell: str) -> None:
    kernel.run("sum_of(X)")
    found = kernel.run(cell)
    page = Page(found.html[0])
    assert "by line" in page.text
    assert "GFLOP/s" in page.text
    assert ("Tensor(" in found.plain[-1]) is ("for" not in cell)


def test_view(kernel: Kernel) -> None:
    found = kernel.run("%gptrs_view sum_of(X)")
    assert found.html[0].startswith("<iframe srcdoc=")
    assert "View of sum_of" in found.plain[0]


MISTAKES = {
    "%gptrs_view sum_of": "%gptrs_view needs one call, such as f(x); found 'sum_of'",
    "%gptrs_view sum_of(": "%gptrs_view needs one call, such as f(x); found 'sum_of('",
    "%gptrs_view print(X)": "print is a builtin_function_or_method, expected a function of",
    "%gptrs_profile": "%gptrs_profile needs a statement: %gptrs_profile f(x)",
    "%%gptrs_profile 3\nX": "%%gptrs_profile takes nothing on its line, found '3'",
    "%%ptir -v\nX": "%%ptir takes nothing on its line, found '-v'",
    "with gptrs.profile():\n    get_ipython().run_line_magic('gptrs_profile', 'X')": (
        "%gptrs_profile: a profile is running already; end it first"
    ),
}


@pytest.mark.parametrize(("cell", "said"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_mistakes_are_one_message(kernel: Kernel, cell: str, said: str) -> None:
    found = kernel.run(cell)
    told = found.errors + found.traceback
    assert "UsageError" in told
    assert said in told
    assert "magics.py" not in told


@pytest.mark.parametrize("cell", ["%gptrs_view missing(X)", "%gptrs_profile missing(X)"])
def test_errors_of_the_code_are_its_own(kernel: Kernel, cell: str) -> None:
    found = kernel.run(cell)
    assert found.traceback.rstrip().endswith("NameError: name 'missing' is not defined")
    assert "magics.py" not in found.traceback


def test_help(kernel: Kernel) -> None:
    for name in ("%%ptir", "%gptrs_profile", "%gptrs_view"):
        found = kernel.run(
            f"print(get_ipython().find_magic('{name.strip('%')}', "
            f"'{'cell' if name.startswith('%%') else 'line'}').__doc__)"
        )
        assert f"{name}" in found.text
        assert found.text.strip().split(".")[0].startswith(("Run ", "Show "))
