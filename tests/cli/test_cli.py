"""The command line: text and errors in this process, pipes in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, cast

import pytest

import gptrs
from gptrs import __version__
from gptrs.cli.app import run
from gptrs.loading.language_model import LanguageModel
from gptrs.loading.threads import limit_threads
from tests.support.cli import COMMAND, PATIENCE, Cli, Done, in_process


@pytest.fixture(scope="module")
def model(good: Path) -> LanguageModel:
    return gptrs.load(good)


@pytest.fixture
def cli(good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``gptrs generate`` on the tiny model, in this process."""
    return in_process(monkeypatch, capsys, "generate", "--model", str(good))


@pytest.mark.slow
def test_the_installed_command_continues_a_text(good: Path, model: LanguageModel) -> None:
    command = [COMMAND, "generate", "été", "--model", str(good), "--max-tokens", "8"]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout.decode() == "été" + model.generate("été", max_tokens=8) + "\n"
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_every_option_counts(cli: Cli, model: LanguageModel) -> None:
    options = ["--temperature", "2", "--top-k", "40", "--top-p", "0.9", "--seed", "3"]
    done = cli("once", "--max-tokens", "20", *options)
    text = model.generate("once", max_tokens=20, temperature=2, top_k=40, top_p=0.9, seed=3)
    assert done == Done(0, f"once{text}\n", "")
    stops = ["--stop", text[9:11], "--stop", text[5:7], "--backend", "reference", "--threads", "1"]
    cut = min(text.index(text[9:11]), text.index(text[5:7]))
    assert cli("once", "--max-tokens", "20", *options, *stops).out == f"once{text[:cut]}\n"


@pytest.mark.parametrize("prompt", [[], [""]])
def test_no_prompt_begins_a_text(cli: Cli, model: LanguageModel, prompt: list[str]) -> None:
    assert cli(*prompt, "--max-tokens", "9").out == model.generate("", max_tokens=9) + "\n"


@pytest.mark.slow
def test_eager_mode_gives_the_same_text(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = cli("once", "--max-tokens", "9")
    monkeypatch.setenv("GPTRS_EAGER", "1")
    assert cli("once", "--max-tokens", "9") == traced


def test_json(cli: Cli, model: LanguageModel) -> None:
    done = cli("été", "--max-tokens", "9", "--json")
    text = model.generate("été", max_tokens=9)
    assert json.loads(done.out) == {"prompt": "été", "text": text, "finish_reason": "length"}
    assert done.out.count("\n") == 1
    stats = json.loads(cli("été", "--max-tokens", "9", "--json", "--stats").out)["stats"]
    assert stats["prefill_tokens"] == len(model.tokenizer.encode("été"))
    assert stats["decode_tokens"] == 8
    assert stats["load_seconds"] > 0
    assert stats["decode_rate"] == pytest.approx(8 / stats["decode_seconds"])


@pytest.mark.slow
def test_stats_go_to_stderr(cli: Cli) -> None:
    plain = cli("once", "--max-tokens", "9")
    done = cli("once", "--max-tokens", "9", "--stats")
    assert done.out == plain.out
    rows = {line.split()[0]: line.split()[1:] for line in done.err.splitlines()}
    assert list(rows) == ["step", "load", "compile", "prefill", "decode"]
    assert rows["step"] == ["seconds", "tokens", "tokens/s"]
    seconds, tokens, rate = map(float, rows["decode"])
    assert seconds > 0
    assert tokens == 8
    assert rate > 0


def standard_input(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text)))


@pytest.mark.parametrize("text", ["the\nfox\n", "the\nfox"])
def test_a_prompt_from_standard_input(
    cli: Cli, model: LanguageModel, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    standard_input(monkeypatch, text.encode())
    expected = "the\nfox" + model.generate("the\nfox", max_tokens=5)
    assert cli("-", "--max-tokens", "5").out == expected + "\n"


@pytest.mark.slow
def test_what_is_piped_is_the_prompt(
    cli: Cli, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "once" + model.generate("once", max_tokens=5) + "\n"
    standard_input(monkeypatch, b"once\n")
    assert cli("--max-tokens", "5").out == expected
    standard_input(monkeypatch, b"something else")
    assert cli("once", "--max-tokens", "5").out == expected
    standard_input(monkeypatch, b"\xff")
    assert "standard input is no UTF-8 text" in cli("--max-tokens", "5").err


@pytest.mark.parametrize("stdin", ["empty", "closed", "terminal"])
def test_without_a_prompt_the_text_begins_empty(
    cli: Cli, model: LanguageModel, monkeypatch: pytest.MonkeyPatch, stdin: str
) -> None:
    standard_input(monkeypatch, b"")
    if stdin == "closed":
        monkeypatch.setattr("sys.stdin", None)
    if stdin == "terminal":
        standard_input(monkeypatch, b"typed later")
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert cli("--max-tokens", "5").out == model.generate("", max_tokens=5) + "\n"


def test_an_empty_prompt_is_a_prompt(
    cli: Cli, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"once")
    assert cli("", "--max-tokens", "5").out == model.generate("", max_tokens=5) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "prompt"), [("printf 'once' |", "once"), ("", ""), ("<&-", "")]
)
def test_pipes_of_a_shell(good: Path, model: LanguageModel, redirected: str, prompt: str) -> None:
    command = f"{sys.executable} -m gptrs generate --max-tokens 5 --model {good}"
    command = f"{redirected} {command}" if "|" in redirected else f"{command} {redirected}"
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    done = subprocess.run(["sh", "-c", command], stdin=null, stdout=pipe, timeout=PATIENCE)
    assert done.stdout.decode() == prompt + model.generate(prompt, max_tokens=5) + "\n"


@pytest.mark.slow
def test_what_the_output_cannot_hold_is_replaced(good: Path) -> None:
    command = [COMMAND, "generate", "é", "--model", str(good), "--max-tokens", "0"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=ascii_only, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"?\n", b"")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--top-k", "0"], "--top-k"),
        (["--top-p", "1.5"], "top_p"),
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "nan"], "temperature"),
        (["--temperature", "hot"], "--temperature"),
        (["--max-tokens", "-1"], "--max-tokens"),
        (["--seed", "-1"], "seed"),
        (["--stop", ""], "stop"),
        (["--threads", "-1"], "--threads"),
        (["--backend", "abacus"], "abacus"),
        (["--wrong"], "--wrong"),
        (["one", "two"], "two"),
    ],
    ids=lambda value: " ".join(value),
)
def test_wrong_usage(cli: Cli, arguments: list[str], named: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["once", "--model", "/no/where"], "no model directory '/no/where'"),
        (["once", "--max-tokens", "900"], "expected at most 48"),
        (["\udcff"], "lone surrogate"),
        (["-"], "standard input is no UTF-8 text"),
    ],
    ids=["model", "context", "argument", "input"],
)
def test_errors(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str
) -> None:
    standard_input(monkeypatch, b"\xff")
    done = cli(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("GPTRS_BACKEND", "abacus", "'abacus'"),
        ("GPTRS_NUM_THREADS", "many", "GPTRS_NUM_THREADS='many': expected an integer"),
        ("GPTRS_NUM_THREADS", "-1", "GPTRS_NUM_THREADS='-1': expected an integer"),
        ("GPTRS_EAGER", "perhaps", "GPTRS_EAGER='perhaps': expected 0 or 1"),
    ],
)
def test_bad_settings(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, named: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = cli("once", "--max-tokens", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("error: ") == 1
    assert named in done.err
    assert variable in done.err


def test_unknown_settings_are_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cli("once", "--max-tokens", "1")
    monkeypatch.setenv("GPTRS_THREADS", "1")
    done = cli("once", "--max-tokens", "1")
    assert (done.code, done.out) == (0, plain.out)
    said = "warning: GPTRS_THREADS is no setting of gptrs; GPTRS_NUM_THREADS is one\n"
    assert done.err == said


def test_threads_are_limited_inside_the_block() -> None:
    import threadpoolctl  # pyright: ignore[reportMissingTypeStubs]

    def counts() -> list[int]:
        libraries = cast("list[dict[str, Any]]", threadpoolctl.threadpool_info())
        return [library["num_threads"] for library in libraries]

    before = counts()
    with limit_threads(1):
        assert counts() == [1] * len(before)
    assert counts() == before
    with limit_threads(0):
        assert counts() == before


@pytest.mark.slow
@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "gptrs"]])
def test_version(command: list[str]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, f"gptrs {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["generate", "--help"]], ids=str)
def test_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gptrs", *arguments])
    assert run() == 0
    said = capsys.readouterr()
    assert "Usage: " in said.out
    assert ("--max-tokens" if "generate" in arguments else "generate") in said.out
    assert said.err == ""
