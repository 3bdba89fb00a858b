"""Models by their names on huggingface.co; nothing here is fetched from there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import gptrs
from gptrs.errors import ArgumentError, LoadError
from gptrs.loading.hub import is_hub_id
from tests.support.cli import in_process
from tests.support.models import random_tokens, tiny_gpt2

NAME = "openai-community/gpt2"


class Hub:
    """What stands for the library: it gives ``answer``, and notes what it was asked for."""

    def __init__(self, answer: Callable[[], str]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def snapshot_download(self, name: str, **options: Any) -> str:
        self.asked.append((name, options))
        return self.answer()

    def put(self, monkeypatch: pytest.MonkeyPatch) -> Hub:
        fake = SimpleNamespace(snapshot_download=self.snapshot_download)
        monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
        return self


def failing(error: Exception) -> Callable[[], str]:
    def answer() -> str:
        raise error

    return answer


def test_a_model_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tiny_gpt2(tmp_path / "snapshot")
    hub = Hub(lambda: str(directory)).put(monkeypatch)
    model = gptrs.load(NAME)
    tokens = random_tokens(5)
    expected = gptrs.load(directory).forward(tokens).numpy()
    assert model.forward(tokens).numpy().tobytes() == expected.tobytes()
    assert model.directory == directory
    ((name, options),) = hub.asked
    assert name == NAME
    assert "*.safetensors" in options["allow_patterns"]
    assert not any("bin" in pattern or pattern == "*" for pattern in options["allow_patterns"])


def test_which_files_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(lambda: str(tiny_gpt2(tmp_path / "snapshot"))).put(monkeypatch)
    gptrs.load(NAME)
    ((_, options),) = hub.asked

    def is_fetched(file: str) -> bool:
        """As ``huggingface_hub`` filters."""
        wanted, refused = (
            any(fnmatch(file, pattern) for pattern in options[which])
            for which in ("allow_patterns", "ignore_patterns")
        )
        return wanted and not refused

    fetched = (
        *("config.json", "model-1.safetensors", "merges.txt", "chat_template.jinja"),
        "additional_chat_templates/tool_use.jinja",
    )
    assert all(map(is_fetched, fetched))
    left = ("pytorch_model.bin", "onnx/config.json", "original/x.safetensors", "a/tokenizer.json")
    assert not any(map(is_fetched, left))


def test_a_fetched_model_is_converted_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tiny_gpt2(tmp_path / "snapshot")
    hub = Hub(lambda: str(directory)).put(monkeypatch)
    cli = in_process(monkeypatch, capsys)
    assert cli("convert", NAME, str(tmp_path / "x.gchk")).code == 0
    assert (tmp_path / "x.gchk").exists()
    done = cli("info", NAME)
    assert (done.code, done.err) == (0, "")
    assert "transformer.wte.weight" in done.out
    assert [name for name, _ in hub.asked] == [NAME, NAME]


def test_what_is_no_path() -> None:
    for use in (gptrs.load, gptrs.estimate_memory):
        with pytest.raises(ArgumentError, match="the model is a float, expected a path or a name"):
            use(cast("Any", 1.5))


def test_a_fetched_model_that_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Hub(lambda: str(tmp_path)).put(monkeypatch)
    with pytest.raises(LoadError, match=r"config\.json does not exist") as raised:
        gptrs.load(NAME)
    assert str(tmp_path) in raised.value.problem


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("Got: no such host\nCheck your connection."), "Got: no such host"),
        (FileNotFoundError("404 Client Error.\n\nRepository Not Found"), "404 Client Error."),
        (ValueError(), "ValueError"),
        (RuntimeError("\n  gated  \n"), "gated"),
    ],
    ids=["network", "name", "empty", "gated"],
)
def test_what_cannot_be_fetched(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    Hub(failing(error)).put(monkeypatch)
    with pytest.raises(LoadError) as raised:
        gptrs.load(NAME)
    assert raised.value.problem == (
        f"there is no model directory {NAME!r}, and it cannot be fetched from huggingface.co:"
        f" {said}"
    )
    assert raised.value.__cause__ is None


def test_the_library_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(LoadError, match="huggingface_hub, which is not installed") as raised:
        gptrs.load(NAME)
    assert raised.value.fix == "pip install 'gptrs[hub]', or give the path of a directory"


def test_no_network_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(LoadError, match=r"cannot be fetched from huggingface\.co: "):
        gptrs.load("openai-community/no-such-model-of-these-tests")


@pytest.mark.parametrize("path", [NAME, "a/b", "Qwen/Qwen2.5-0.5B", "x/y_z.w"])
def test_names(path: str) -> None:
    assert is_hub_id(path)


@pytest.mark.parametrize(
    "path",
    [
        *("stories", "gpt2", "/a/b", "./a/b", "../b", "a/../b", "a/b/c", "a/", "/a", "", "a b/c"),
        *("a/x.safetensors", "a/x.gchk", "a/x.gten", "a\\b/c", "é/a", "a/b\n", "~/a", "a//b"),
    ],
)
def test_what_are_no_names(path: str) -> None:
    assert not is_hub_id(path)


def test_a_directory_counts_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(lambda: "nowhere").put(monkeypatch)
    tiny_gpt2(tmp_path / "openai-community" / "gpt2")
    monkeypatch.chdir(tmp_path)
    assert gptrs.load(NAME).kind == gptrs.load(Path(NAME)).kind == "gpt2"
    assert hub.asked == []
