"""Imports go one way: a file knows its own folder and those before it, and no circle of files."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = [
    *("errors", "deprecated", "byte_sizes", "locks", "entry_points", "isolated", "large_pages"),
    *("identity_key", "settings", "events", "tree", "params"),
    *("ir", "passes", "kernels", "backends", "debug", "jit", "ptir", "nn", "models", "text"),
    *("images", "formats", "memory", "loading", "parity", "bench", "cli", "__main__"),
]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "gptrs").rglob("*.py"))
}


def imports(name: str) -> set[str]:
    """The files of this package that the file called ``name`` imports, anywhere in it: in functions
    and for the type checker too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative imports hide where they lead"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {part if part in FILES else str(node.module) for part in parts}
    return {other for other in found & FILES.keys() if other not in ("gptrs", name)}


def layer(name: str) -> int:
    return ORDER.index(name.split(".")[1])


@pytest.mark.parametrize("name", [name for name in FILES if name != "gptrs"])
def test_imports_go_up_the_list(name: str) -> None:
    found = imports(name)
    assert [other for other in sorted(found) if layer(other) > layer(name)] == []


def test_there_is_no_circle() -> None:
    graph = {name: imports(name) for name in FILES}
    assert sum(map(len, graph.values())) > 50, "imports were found"
    graphlib.TopologicalSorter(graph).prepare()
