"""Every ``GPTRS_*`` variable: read when asked for, checked, described."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs import ptir, settings
from gptrs.errors import ArgumentError, SettingError, SettingWarning

# A text for each variable, and what it means; then texts that mean nothing.
GOOD: list[tuple[str, str, Any]] = [
    ("GPTRS_EAGER", "1", True),
    ("GPTRS_EAGER", " True ", True),
    ("GPTRS_EAGER", "no", False),
    ("GPTRS_VERIFY", "0", False),
    ("GPTRS_TRACEBACK", "yes", True),
    ("GPTRS_BACKEND", "other", "other"),
    ("GPTRS_CACHE_SIZE", "7", 7),
    ("GPTRS_NUM_THREADS", "0", 0),
    ("GPTRS_WINOGRAD", "0", False),
    ("GPTRS_COMPRESSED_WEIGHTS", "0", False),
]
BAD = [
    ("GPTRS_EAGER", "maybe"),
    ("GPTRS_VERIFY", "2"),
    ("GPTRS_CACHE_SIZE", "0"),
    ("GPTRS_CACHE_SIZE", "many"),
    ("GPTRS_NUM_THREADS", "-1"),
    ("GPTRS_NUM_THREADS", "1.5"),
    ("GPTRS_WINOGRAD", "3"),
]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_a_text_that_is_read(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any
) -> None:
    setting = settings.SETTINGS[name]
    monkeypatch.delenv(name, raising=False)
    assert setting() == setting.default
    monkeypatch.setenv(name, text)
    assert setting() == value
    monkeypatch.setenv(name, "")
    assert setting() == setting.default


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_text_that_is_not(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(SettingError, match=f"{name}='{re.escape(text)}': expected ") as raised:
        settings.SETTINGS[name]()
    assert name in raised.value.fix


def test_each_is_described_once() -> None:
    assert {name for name, *_ in GOOD} <= settings.SETTINGS.keys()
    for name, setting in settings.SETTINGS.items():
        assert name == setting.name
        assert re.fullmatch(r"GPTRS_[A-Z][A-Z0-9_]+", name)
        assert setting.help
        assert setting.help[0].islower()
        assert setting.expected


def test_no_other_file_reads_the_environment() -> None:
    package = Path(settings.__file__).parent
    readers = re.compile(r"os\.(environ|getenv)[^\n]*GPTRS_|GPTRS_\w+[\"']\s*\]|getenv\(\"GPTRS_")
    found = [f.name for f in package.rglob("*.py") if readers.search(f.read_text())]
    assert set(found) <= {"settings.py"}


@pytest.fixture
def misspelt(monkeypatch: pytest.MonkeyPatch) -> str:
    """A variable that is no setting, of which nothing was said yet."""
    monkeypatch.setattr(settings, "_told", set[str]())
    monkeypatch.setenv("GPTRS_EAGR", "1")
    monkeypatch.setenv("GPTRS_EAGER", "0")
    return "GPTRS_EAGR is no setting of gptrs; GPTRS_EAGER is one"


def test_misspelt_variables_are_told_once(misspelt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.complaints() == [(misspelt, SettingWarning)]
    monkeypatch.setenv("GPTRS_QQQQ", "")
    assert settings.complaints() == [("GPTRS_QQQQ is no setting of gptrs", SettingWarning)]
    assert settings.complaints() == []


def test_an_old_name_is_read_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = "GPTRS_CODED_WEIGHTS", "GPTRS_COMPRESSED_WEIGHTS"
    monkeypatch.setattr(settings, "_told", set[str]())
    monkeypatch.delenv(new, raising=False)
    monkeypatch.setenv(old, "0")
    assert not settings.compressed_weights()
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now; the old name goes"):
        traced()
    traced()  # a warning would be an error
    monkeypatch.setenv(old, "never")
    with pytest.raises(SettingError, match=f"{old}='never'"):
        settings.compressed_weights()
    monkeypatch.setenv(new, "1")
    assert settings.compressed_weights()


def traced() -> None:
    function = ptir.jit(lambda x: x + 1)
    function(1.0)
    function(1)


@pytest.mark.parametrize("use", [traced, lambda: gptrs.load("stories")])
def test_misspelt_variables_warn(use: Callable[[], object], misspelt: str) -> None:
    with pytest.warns(SettingWarning) as found:
        use()
    use()  # a warning would be an error
    (warning,) = found
    assert str(warning.message) == misspelt
    assert warning.filename == __file__


def test_they_reach_the_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    function = ptir.jit(lambda x: x)
    monkeypatch.setenv("GPTRS_CACHE_SIZE", "5")
    assert function.cache_info().maxsize == 5
    monkeypatch.setenv("GPTRS_BACKEND", "nothing")
    with pytest.raises(ArgumentError, match="no backend 'nothing'"):
        function(1.0)
    with pytest.raises(ArgumentError, match="no backend 'neither'"), ptir.backend("neither"):
        pass
    with ptir.backend("reference"):
        assert function(1.0).item() == 1
    monkeypatch.setenv("GPTRS_EAGER", "x")
    with pytest.raises(SettingError):
        function(1.0)
