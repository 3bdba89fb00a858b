"""The documentation: code blocks run, tables are complete, the site builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import gptrs
from gptrs import errors
from gptrs.errors import PtirError
from gptrs.numpy_api import NAMES
from gptrs.settings import SETTINGS
from tests.support.marks import slow_unless
from tests.support.pages import ROOT, blocks, run_page

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
SLOW = ("models-usage", "watching", "extending", "cli", "errors")  # a second and more
# What a page registers or sets would be there for other tests too.
APART = re.compile(r"register|@ptir\.(?!jit)|@rewrite|environ|parameter_cache\.limit")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=slow_unless(page.stem not in SLOW))
        for page in PAGES
    ],
)
def test_blocks_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if any(APART.search(block.text) for block in blocks(page) if block.language != "console"):
        command = [sys.executable, "-W", "error", "-m", "tests.support.pages", str(page)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
    else:
        run_page(page)


def test_blocks_that_do_not_run_are_few() -> None:
    kept = [(page.name, b.line, b.not_run) for page in PAGES for b in blocks(page) if b.not_run]
    assert len(kept) <= 16, kept
    assert all(len(reason) > 5 for _, _, reason in kept)


def test_output_is_checked() -> None:
    """Directly after code that runs is a ``text`` block; one without a language is not compared."""
    for page in PAGES:
        found = blocks(page)
        for block, after in pairwise(found):
            assert not (block.language == "python" and after.follows and not after.language), page


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_pages_outside_of_the_site(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    folders = "gptrs|tests|docs|benchmarks|training|notebooks"
    named = re.findall(rf"\b((?:{folders})/[\w./*-]*\w)", page.read_text(encoding="utf-8"))
    assert not [path for path in named if not any(ROOT.glob(path))]


def test_settings_table_lists_every_setting() -> None:
    rows = re.findall(r"^\| `(GPTRS_\w+)` \| (.*?) \| (.*?) \|$", text_of("settings.md"), re.M)
    documented = {name: (default.strip("`"), meaning) for name, default, meaning in rows}
    assert documented == {
        name: (_shown(setting.default), setting.help) for name, setting in SETTINGS.items()
    }


def _shown(default: object) -> str:
    return str(int(default)) if isinstance(default, bool) else str(default)


def test_every_class_of_errors_has_a_section() -> None:
    known = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, PtirError | Warning)
    }
    assert set(re.findall(r"^## `(\w+)`", text_of("errors.md"), re.M)) == known


def test_every_verb_has_a_section() -> None:
    from gptrs.cli.app import app

    verbs = {command.callback.__name__ for command in app.registered_commands if command.callback}
    verbs |= {str(group.name) for group in app.registered_groups}
    assert set(re.findall(r"^## `gptrs (\w+)`", text_of("cli.md"), re.M)) == verbs


def test_samples_are_what_the_model_writes() -> None:
    section = text_of("models-usage.md").partition("## The bundled model")[2].partition("\n## ")[0]
    quotes = re.findall(r"^> .*(?:\n> .*)*", section, re.M)
    shown = [re.sub(r"\n> ", " ", quote)[2:] for quote in quotes]
    model = gptrs.load("stories")
    opening = "Once upon a time"
    told = [opening + model.generate(opening, temperature=0.8, seed=n) for n in (1, 2, 3)]
    assert shown == told


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs gptrs[docs]")
def test_the_site_builds_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--site-dir", str(tmp_path)], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    loaded = [
        tag
        for page in pages
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
        if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag) and "canonical" not in tag
    ]
    assert pages
    assert not loaded
    reference = "".join(
        page.read_text(encoding="utf-8") for page in (tmp_path / "reference").glob("*.html")
    )
    names = {*gptrs.ptir.__all__, *NAMES}
    assert not [name for name in names if name not in reference]
    assert "Traceback" not in reference
