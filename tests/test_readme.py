"""The README is true: its Python runs, its settings are all there, its samples are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gptrs
from gptrs.settings import SETTINGS

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PYTHON = [block for block in re.findall(r"```python\n(.*?)```", TEXT, re.S) if "import" in block]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.splitlines()[0])
def test_python_blocks_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out


def test_the_page_on_numerics_is_true() -> None:
    page = Path(__file__).parent.parent / "docs" / "numerics.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    exec(compile(block, "numerics.md", "exec"), {"__name__": "numerics"})  # it asserts


def test_the_call_that_is_explained_is_real(capsys: pytest.CaptureFixture[str]) -> None:
    sample = TEXT.partition("\n```\nattend:\n")[2].partition("\n```\n")[0]
    exec(compile(PYTHON[0], "README.md", "exec"), {"__name__": "readme"})
    shown = capsys.readouterr().out.partition("\nattend:\n")[2]
    # Below the instructions are sizes, which may depend on the machine.
    said, real = (
        text.partition(" native steps")[0].rpartition("\n")[0] for text in (sample, shown)
    )
    assert said == real != ""


def test_settings_table_lists_every_setting() -> None:
    rows = re.findall(r"^\| `(GPTRS_\w+)` \| (.*?) \| (.*?) \|$", TEXT, re.M)
    documented = {name: (default.strip("`"), meaning) for name, default, meaning in rows}
    assert documented == {
        name: (_shown(setting.default), setting.help) for name, setting in SETTINGS.items()
    }


def _shown(default: object) -> str:
    return str(int(default)) if isinstance(default, bool) else str(default)


def test_samples_are_what_the_model_writes() -> None:
    section = TEXT.partition("## The bundled model")[2].partition("\n## ")[0]
    quotes = re.findall(r"^> .*(?:\n> .*)*", section, re.M)
    shown = [re.sub(r"\n> ", " ", quote)[2:] for quote in quotes]
    model = gptrs.load("stories")
    opening = "Once upon a time"
    told = [opening + model.generate(opening, temperature=0.8, seed=n) for n in (1, 2, 3)]
    assert shown == told
