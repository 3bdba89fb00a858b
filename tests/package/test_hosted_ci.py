"""The hosted workflow and the pre-commit hooks run what `make` runs."""

# PyYAML has no types.
# pyright: reportMissingModuleSource=false, reportUnknownMemberType=false

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.support import ROOT

yaml: Any = pytest.importorskip("yaml")

MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOW = ".github/workflows/ci.yml"


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def jobs() -> dict[str, Any]:
    return read(WORKFLOW)["jobs"]


def test_the_workflow_runs_make_targets() -> None:
    commands = [step["run"] for job in jobs().values() for step in job["steps"] if "run" in step]
    local = re.findall(r"^make \w+$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert commands == [*local, "make try-wheel"]
    for command in commands:
        target = command.removeprefix("make ")
        assert re.search(rf"^{target}:", MAKEFILE, re.M), command


def test_the_workflow_runs_on_every_python_and_machine() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    matrix = jobs()["test"]["strategy"]["matrix"]
    versions = matrix["python"]
    assert all(isinstance(version, str) for version in versions)  # 3.10 would be 3.1
    assert project["requires-python"] == f">={versions[0]}"
    assert versions == [f"3.{minor}" for minor in range(11, 11 + len(versions))]
    assert jobs()["wheel"]["strategy"]["matrix"]["python"] == [versions[0], versions[-1]]
    systems = [machine.rpartition("-")[0] for machine in matrix["machine"]]
    assert systems == ["ubuntu", "ubuntu-24.04", "macos"]  # x86-64, ARM, ARM
    assert matrix["machine"][1].endswith("-arm")


def test_actions_are_pinned_by_commit() -> None:
    """A tag may be moved; the version that it stood for is a comment."""
    uses = re.findall(r"^ *- uses: (.*)$", (ROOT / WORKFLOW).read_text(), re.M)
    pinned = re.compile(r"([\w-]+/[\w-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert uses
    assert all(map(pinned.fullmatch, uses))
    names = [use.partition("@")[0] for use in uses]
    assert len(set(uses)) == len(set(names)), "one version of each"


def test_hooks_are_the_tools_of_make_lint() -> None:
    hooks = [h for repo in read(".pre-commit-config.yaml")["repos"] for h in repo["hooks"]]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    assert lint is not None
    recipes = [
        " ".join(line.split()) for line in lint[1].replace("$(BIN)", ".venv/bin").splitlines()
    ]
    entries = [" ".join(hook["entry"].split()) for hook in hooks]
    for recipe in recipes:
        tool = recipe.removesuffix(" .")  # pre-commit names the files
        assert any(entry.startswith(tool) for entry in entries), recipe
    assert len({hook["id"] for hook in hooks}) == len(hooks)


@pytest.mark.parametrize(
    ("text", "ends_well"),
    [("a\n", True), ("", True), ("a", False), ("a\n\n", False), ("a\nb\n", True)],
)
def test_the_pattern_of_an_end_of_file(text: str, ends_well: bool) -> None:
    hooks = {h["id"]: h for repo in read(".pre-commit-config.yaml")["repos"] for h in repo["hooks"]}
    found = re.search(hooks["end-of-file"]["entry"], text)
    assert (found is None) == ends_well
