"""``gptrs view`` in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Cli, in_process
from tests.support.image_models import RESNET


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys, "view")


@pytest.mark.slow
def test_a_page(cli: Cli, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli(str(good), "--tokens", "5", "--decode")
    assert (done.code, done.err) == (0, "")
    name = f"{good.stem}.html"
    assert done.out.startswith(f"{name}: ")
    assert "<title>gpt2 · gptrs</title>" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_random_weights_and_json(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "resnet.json"
    config.write_text(json.dumps({"model_type": "resnet"} | RESNET))
    out = tmp_path / "page.html"
    done = cli("--random", str(config), "--batch", "2", "--json", "-o", str(out))
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    assert (said["file"], said["bytes"], said["error"]) == (str(out), out.stat().st_size, None)
    assert said["instructions"][-1] <= said["instructions"][0]
    assert said["steps"] > 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tokens", "500"], "tokens is 500, expected 1 to"),
        (["--out", "/nowhere/page.html"], "/nowhere is no folder"),
        (["--random", "x.json"], "give MODEL or --random"),
    ],
)
def test_bad_options(cli: Cli, good: Path, arguments: list[str], words: str) -> None:
    done = cli(str(good), *arguments)
    assert done.code == 2
    assert words in done.err
    assert not list(Path.cwd().glob("*.html"))
