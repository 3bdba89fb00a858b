"""``gptrs patterns`` and the options by which commands write dumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gptrs
from gptrs.ir.parsing import parse
from gptrs.models.gpt2 import GPT2
from gptrs.passes.raisable import RAISABLE
from gptrs.passes.simplify import RULES
from tests.support.cli import Cli, in_process


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return in_process(monkeypatch, capsys)


def test_every_rule_is_listed_once(cli: Cli) -> None:
    done = cli("patterns", "--json")
    assert (done.code, done.err) == (0, "")
    rules = json.loads(done.out)["rules"]
    assert {rule["name"] for rule in rules} >= {rule.name for rule in RULES}
    assert len({(rule["name"], rule["file"]) for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["meaning"], rule["name"]
        assert rule["file"].startswith("passes/")
    rounds = {rule.name: rule.rounds for rule in RULES}
    assert all(rule["rounds"] == rounds.get(rule["name"], rule["rounds"]) for rule in rules)


@pytest.mark.slow
def test_the_table_is_not_cut_where_it_is_piped(cli: Cli) -> None:
    done = cli("patterns")
    assert (done.code, done.err) == (0, "")
    for rule in RULES:
        lines = [line for line in done.out.splitlines() if line.split()[:1] == [rule.name]]
        assert any(rule.doc.partition("\n")[0] in line for line in lines), rule.name


def test_every_raisable_composite_is_listed(cli: Cli) -> None:
    found = json.loads(cli("patterns", "--json").out)["composites"]
    assert [(each["name"], each["meaning"]) for each in found] == [
        (each.name, each.doc) for each in RAISABLE
    ]
    root = Path(gptrs.__file__).parent
    assert all((root / each["file"]).is_file() for each in found)
    lines = cli("patterns", "softmax").out.splitlines()
    assert any(line.split()[:2] == ["softmax", "ir/ops/composite.py"] for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["merge_transposes", "MERGE_TRANSPOSES", "transposes"])
def test_a_filter(cli: Cli, words: str) -> None:
    found = json.loads(cli("patterns", words, "--json").out)["rules"]
    every = json.loads(cli("patterns", "--json").out)["rules"]
    assert "merge_transposes" in [rule["name"] for rule in found]
    assert 0 < len(found) < len(every)
    assert all(rule in every for rule in found)


def test_a_filter_that_finds_nothing(cli: Cli) -> None:
    done = cli("patterns", "no such rule")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no rule or composite has 'no such rule'")
    assert "fix: " in done.err


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, "all", "compile"])
def test_generate_writes_dumps(cli: Cli, good: Path, tmp_path: Path, mode: str | None) -> None:
    folder = tmp_path / "new" / "folder"
    arguments = ["generate", "once", "--model", str(good), "--max-tokens", "2"]
    plain = cli(*arguments)
    GPT2.__call__.clear_cache()
    options = ["--dump-dir", str(folder)] + ([] if mode is None else ["--dump-mode", mode])
    assert cli(*arguments, *options) == plain
    (program, *others) = sorted(folder.iterdir())
    assert program.name == "0001_gpt2"
    for each in (program, *others):
        files = sorted(file.name for file in each.glob("*.py"))
        assert files[0] == "00_traced.py"
        assert files[-1] == "lowered.py"
        assert (len(files) > 2) == (mode != "compile")
        for file in files:
            text = (each / file).read_text()
            assert str(parse(text)) == text
        assert "native steps" in (each / "plan.txt").read_text()


@pytest.mark.slow
def test_a_mode_for_the_folder_of_the_setting(
    cli: Cli, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DUMP", str(tmp_path))
    GPT2.__call__.clear_cache()
    arguments = ["generate", "once", "--model", str(good), "--max-tokens", "1"]
    assert cli(*arguments, "--dump-mode", "compile").code == 0
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.glob("*.py"))) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--dump-mode", "some"], 2, "'some' is not one of 'all', 'compile'"),
        (["--dump-mode", "all"], 2, "add --dump-dir or GPTRS_DUMP"),
        (["--dump-dir", __file__], 1, f"{__file__!r} cannot be made: File exists"),
    ],
    ids=["mode", "where", "file"],
)
def test_wrong_usage(cli: Cli, arguments: list[str], code: int, named: str) -> None:
    done = cli("generate", "once", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.count("error: ") == 1
    assert named in done.err


def test_a_command_has_no_line_of_the_users(
    cli: Cli, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPTRS_DEBUG", "1")
    jitted: Any = GPT2.__call__
    jitted.clear_cache()
    done = cli("generate", "once", "--max-tokens", "2", "--model", str(good))
    assert done.code == 0
    assert "gptrs: gpt2, traced for" in done.err
