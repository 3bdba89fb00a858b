"""The Tab key: verbs, options, models, backends and paths; and short options of verbs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gptrs.backends.discovery import known_backends
from gptrs.cli import bench
from gptrs.cli.shell_completion import complete_backend, complete_model
from gptrs.models import BUNDLED
from tests.support.cli import COMMAND, PATIENCE, Cli, Done, in_process


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with files and folders, and a cache of huggingface_hub."""
    place = tmp_path / "here"
    for folder in ("stable/inside", "openai-models", ".stash"):
        (place / folder).mkdir(parents=True)
    for name in ("stage.gchk", "st.safetensors", "story.txt", "other.gten", ".st.gten"):
        (place / name).touch()
    hub = tmp_path / "hub"
    for name in ("models--openai-community--gpt2", "models--a--b--c", "datasets--x--y"):
        (hub / name / "snapshots" / "0123").mkdir(parents=True)
        (hub / name / "snapshots" / "0123" / "config.json").touch()
    (hub / "models--not--complete").mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        ("sto", ["stories"]),
        ("st", ["stories", "st.safetensors", "stable/", "stage.gchk"]),
        ("a/", ["a/b--c"]),
        ("openai", ["openai-community/gpt2", "openai-models/"]),
        ("zz", []),
        ("./", []),
        ("sta", []),
    ],
)
def test_models(begun: str, found: list[str]) -> None:
    """Where no name of a model begins so, the shell completes paths."""
    assert complete_model(begun) == found


def test_every_bundled_model_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "absent"))
    assert complete_model("")[: len(BUNDLED)] == sorted(BUNDLED)
    assert complete_model("")[len(BUNDLED) :] == [
        *("openai-models/", "other.gten", "st.safetensors", "stable/", "stage.gchk")
    ]


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"HF_HOME": "~/hf"}, "hf/hub"),
        ({"XDG_CACHE_HOME": "~/xdg"}, "xdg/huggingface/hub"),
        ({}, ".cache/huggingface/hub"),
    ],
)
def test_where_fetched_models_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], place: str
) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / place / "models--u--v" / "snapshots" / "0").mkdir(parents=True)
    (tmp_path / place / "models--u--v" / "snapshots" / "0" / "config.json").touch()
    assert complete_model("u") == ["u/v"]


def test_backends() -> None:
    assert complete_backend("") == list(known_backends())
    assert complete_backend("ref") == ["reference"]


def test_a_directory_that_is_gone(here: Path) -> None:
    shutil.rmtree(here)
    assert complete_model("st") == ["stories"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("gptrs cac", {"cache"}),
        ("gptrs cache ve", {"verify"}),
        ("gptrs generate --model sto", {"stories"}),
        ("gptrs generate -m sto", {"stories"}),
        ("gptrs fit sto", {"stories"}),
        ("gptrs info -m sto", {"stories"}),
        ("gptrs bench sto", {"stories"}),
        ("gptrs convert sto", {"stories"}),
        ("gptrs validate sto", {"stories"}),
        ("gptrs validate --backend fa", {"faer"}),
        ("gptrs generate --max", {"--max-tokens"}),
        ("gptrs generate --prompt-file st", set[str]()),
        ("gptrs forward --dump-mode ", {"all", "compile"}),
    ],
)
def test_words_of_a_command(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    found: set[str],
) -> None:
    monkeypatch.setenv("_GPTRS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as ended:
        cli()
    assert ended.value.code == 0
    assert set(capsys.readouterr().out.split()) == found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_script_of_bash() -> None:
    code = f"""
eval "$({COMMAND} --show-completion bash)"
COMP_WORDS=({COMMAND} fit st) COMP_CWORD=2
_gptrs_completion {COMMAND}
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p gptrs
"""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr == ""
    *found, binding = done.stdout.splitlines()
    assert found == ["stories", "st.safetensors", "stable/", "stage.gchk"]
    assert binding == "complete -o default -F _gptrs_completion gptrs"


def test_short_options_of_generate(cli: Cli, good: Path) -> None:
    long = ("--model", str(good), "--prompt", "once", "--max-tokens", "4", "--threads", "1")
    short = ("-m", str(good), "-p", "once", "-n", "4", "-t", "1")
    expected = cli("generate", "once", "--model", str(good), "--max-tokens", "4")
    assert (expected.code, expected.err) == (0, "")
    assert cli("generate", *long) == cli("generate", *short) == expected


@pytest.mark.parametrize("verb", ["info", "fit"])
def test_the_model_as_an_option(cli: Cli, good: Path, verb: str) -> None:
    options = ("--memory", "1GB") if verb == "fit" else ()
    expected = json.loads(cli(verb, str(good), "--json", *options).out)
    expected.pop("machine", None)  # its free memory changes
    for name in ("-m", "--model"):
        done = cli(verb, name, str(good), "--json", *options)
        assert (done.code, done.err) == (0, "")
        said = json.loads(done.out)
        said.pop("machine", None)
        assert said == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("generate", "a", "-p", "b"), "give PROMPT or --prompt, not both"),
        (("fit", "a", "-m", "b"), "give MODEL or --model, not both"),
        (("view", "a", "-m", "b"), "give MODEL or --model, not both"),
        (("validate", "a", "-m", "b"), "give MODEL or --model, not both"),
        (("trace", "a", "-m", "b"), "give MODEL or --model, not both"),
        (("bench", "a", "-m", "b"), "give MODEL or --model, not both"),
        (("fit",), "give a model: as an argument, or by --model"),
        (("info",), "give a model: as an argument, or by --model"),
        (("generate", "-p", "b", "--prompt-file", "c"), "give a prompt or --prompt-file, not both"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    assert cli(*arguments) == Done(2, "", f"error: Invalid value: {said}\n")


def test_numbers_after_a_short_option() -> None:
    joined: Any = bench._joined  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    assert joined(["stories", "-t", "1", "2", "--rounds", "3"]) == [
        *("stories", "-t", "1,2", "--rounds", "3")
    ]
