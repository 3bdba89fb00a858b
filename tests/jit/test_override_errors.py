"""Invalid override policies are refused where they are given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, LoadError, PtirError, SettingError, TraceError
from tests.support.models import tiny_gpt2
from tests.support.overriding import ENVIRONMENT, X, softmax_function

pytestmark = pytest.mark.usefixtures("own_implementations")

WRONG: list[tuple[Any, str]] = [
    ({"sofmax": "force=portable"}, "no composite 'sofmax'.*did you mean softmax.*use one of: att"),
    ({"exp": "force=portable"}, "no composite 'exp'"),
    (
        {"softmax": "force=two_pas"},
        "softmax has no implementation 'two_pas'.*did you mean two_pass",
    ),
    ({"softmax": "force=blocked"}, "use one of: kernel, online, portable, two_pass"),
    ({"softmax": "force="}, "softmax: found 'force=', expected 'force=<implementation>'"),
    ({"softmax": "two_pass"}, "found 'two_pass', expected"),
    ({"softmax": "benchmark(cache=0)"}, r"found 'benchmark\(cache=0\)', expected"),
    ({"softmax": "benchmark(size=3)"}, r"found 'benchmark\(size=3\)', expected"),
    ({"softmax": 1}, "'softmax': 1 is no pair of strings"),
    ([("softmax", "force=portable")], "expected policies by the name of a composite"),
]


@pytest.mark.parametrize(("policies", "message"), WRONG)
def test_what_is_refused(policies: Any, message: str, tmp_path: Path) -> None:
    def in_context() -> None:
        with ptir.overrides(policies):
            raise AssertionError

    def in_checkpoint() -> None:
        gptrs.load(tiny_gpt2(tmp_path, runtime={"functional_overrides": policies}))

    places: list[tuple[Callable[[], Any], type[PtirError], str]] = [
        (in_context, ArgumentError, "ptir.overrides: "),
        (lambda: ptir.jit(overrides=policies), ArgumentError, r"ptir.jit\(overrides=...\): "),
    ]
    if isinstance(policies, dict):  # JSON knows no tuples
        file = f"{tmp_path / 'config.json'}: runtime.functional_overrides: "
        places.append((in_checkpoint, LoadError, file))
    for call, kind, place in places:
        with pytest.raises(kind, match=f"(?s){place}.*{message}"):
            call()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softmax", "'softmax' is no pair of composite and policy"),
        ("softmax: force=portable; softmax: benchmark", "'softmax' is named twice"),
        ("softmax=force: portable", "no composite 'softmax=force'"),
        ("softmax: force=other", "GPTRS_OVERRIDES: softmax has no implementation 'other'"),
        ("softmax: force=portable, gelu: benchmark", "found 'force=portable, gelu: benchmark'"),
    ],
)
def test_a_variable_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    function = softmax_function()
    function(X)
    monkeypatch.setenv(ENVIRONMENT, text)
    for eager in (False, True):
        with ptir.eager(eager), pytest.raises(SettingError, match=message):
            function(X)
    monkeypatch.setenv(ENVIRONMENT, " ; ")
    function(X)
    assert len(function.retraces()) == 1


def test_inside_of_a_traced_function_it_is_an_error() -> None:
    @ptir.jit
    def f(x: Any) -> Any:
        with ptir.overrides({"softmax": "force=portable"}):
            return ptir.softmax(x)

    with pytest.raises(TraceError, match="put it around the call"):
        f(X)


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        (3, "runtime is 3, expected an object"),
        ({"functional_overrides": ["softmax"]}, "functional_overrides: found .*softmax"),
        ({"functional_overrides": {"softmax": "fast"}}, "found 'fast', expected"),
    ],
)
def test_a_checkpoint_with_wrong_overrides(tmp_path: Path, runtime: Any, message: str) -> None:
    directory = tiny_gpt2(tmp_path, runtime=runtime)
    with pytest.raises(LoadError, match=message) as raised:
        gptrs.load(directory)
    assert str(directory / "config.json") in str(raised.value)
    data = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**data, "runtime": {"threads": 2}}))
    assert gptrs.load(directory).forward([1, 2]).shape[0] == 2
