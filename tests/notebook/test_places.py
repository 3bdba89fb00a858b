"""Notebooks: cells have their names in messages, and tracebacks end in the user's cell."""

from __future__ import annotations

import re
import sys
from textwrap import dedent
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from gptrs.cell_names import cell_name, running_shell
from gptrs.errors import Location
from tests.support.ipython_kernel import Kernel, Outputs

in_a_kernel = pytest.mark.slow


def run(kernel: Kernel, cell: str) -> Outputs:
    return kernel.run(dedent(cell).strip())


def test_without_ipython_nothing_changes() -> None:
    assert running_shell() is None
    assert cell_name("/tmp/ipykernel_7/12.py") is None
    assert str(Location("a.py", 3, "<module>")) == "a.py:3 in <module>"


def test_an_ipython_that_knows_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, SimpleNamespace(), SimpleNamespace(compile=compile)):
        monkeypatch.setitem(
            sys.modules, "IPython", SimpleNamespace(get_ipython=Mock(return_value=shell))
        )
        assert cell_name("/tmp/ipykernel_7/12.py") is None


@in_a_kernel
def test_messages_name_the_cell(kernel: Kernel) -> None:
    found = run(
        kernel,
        """
        @ptir.jit
        def f(x):
            return x + 1
        f(X)
        print(f.retraces()[0].where)
        print(f.program(X).body[0].where)
        print(f.profile(X).rows("line")[0].name)
        print(f.view(X).document["files"][0]["path"])
        """,
    )
    cell = f"Cell In[{kernel.count}]"
    assert found.text.splitlines() == [
        f"{cell}, line 4",
        f"{cell}, line 3 in f",
        f"{cell}, line 3",
        cell,
    ]


FUNCTION = """
@ptir.jit
def f(x, y=None):
    {}[y] if y else 0
    return x @ X.reshape(3, 1) @ x

%s
"""
ERRORS = {
    "an argument": ("f()", [6], "ArgumentError: f: missing a required argument: 'x'"),
    "an op in a function": ("f(X.reshape(3, 1))", [6, 4], "ShapeError: contracted axes differ"),
    "an error of the user": ("f(X, 'no')", [6, 3], "KeyError: 'no'"),
    "an op": ("ptir.ops.matmul(X, 3)", [6], "ArgumentError: y is 3, expected a Tensor"),
    "a function": ("ptir.tensor(object())", [6], "DTypeError: elements of type object"),
}


@in_a_kernel
@pytest.mark.parametrize(("call", "lines", "text"), ERRORS.values(), ids=ERRORS)
def test_tracebacks_end_in_the_cell(kernel: Kernel, call: str, lines: list[int], text: str) -> None:
    found = run(kernel, FUNCTION % call)
    where = re.findall(r"^(?:Cell In\[\d+\], line|File ).*", found.traceback, re.M)
    assert [int(re.findall(r"line (\d+)", each)[0]) for each in where] == lines
    assert all(each.startswith(f"Cell In[{kernel.count}]") for each in where)
    *_, message = found.traceback.split("\n\n")
    assert message.startswith(text)
    assert "hidden" not in found.traceback


@in_a_kernel
def test_errors_that_led_to_an_error(kernel: Kernel) -> None:
    found = run(
        kernel,
        """
        try:
            ptir.ops.matmul(X, 3)
        except gptrs.PtirError as error:
            raise ValueError("mine") from error
        """,
    )
    assert "ArgumentError: y is 3" in found.traceback
    assert found.traceback.rstrip().endswith("ValueError: mine")
    assert "gptrs/" not in found.traceback


@in_a_kernel
def test_all_frames_on_request(kernel: Kernel) -> None:
    found = run(kernel, "%env GPTRS_TRACEBACK=1\nptir.ops.matmul(X, 3)")
    run(kernel, "%env GPTRS_TRACEBACK=")
    assert "gptrs/ir/op.py" in found.traceback


@in_a_kernel
def test_a_helper_that_was_defined_again_is_named(kernel: Kernel) -> None:
    run(kernel, "def helper(x):\n    return x * 2")
    run(kernel, "@ptir.jit(backend='reference')\ndef g(x):\n    return helper(x)\ng(X)")
    before = kernel.count - 1
    for _ in range(2):
        found = run(
            kernel, "\ndef helper(x):\n    return x * 3\ng(X)\nprint(g.retraces()[-1].reason)"
        )
        now = f"Cell In[{kernel.count}], line 1"
        if before:
            assert found.text == f"code of global helper: Cell In[{before}], line 1 → {now}\n"
        else:
            assert found.text == f"code of global helper: defined again at {now}\n"
        before = 0


RUNNING = """
@ptir.jit
def long(x):
    condition, body = lambda s: s[0] < 1e30, lambda s: (s[0] + 0.0, s[1])
    return ptir.while_loop(condition, body, (x[0], x))

long.explain(X)
print("ready")
long(X)
"""


@in_a_kernel
def test_an_interrupt_ends_in_the_cell(kernel: Kernel) -> None:
    found = kernel.run(RUNNING, interrupt_at="stream")
    last = len(RUNNING.strip("\n").split("\n"))
    where = re.findall(r"^(?:Cell In\[\d+\], line|File ).*", found.traceback, re.M)
    assert where == [f"Cell In[{kernel.count}], line {last}"], found.traceback
    assert found.traceback.rstrip().endswith("KeyboardInterrupt:")
    again = kernel.run("print(ptir.jit(lambda x: ptir.exp(x * 2).sum())(X))")
    assert again.text.startswith("Tensor(22.1")
