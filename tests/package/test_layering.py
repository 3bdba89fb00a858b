"""Imports go one way: a file knows its own folder and those before it, and no circle of files."""

from __future__ import annotations

import ast
import graphlib

import pytest

from tests.support import ROOT

ORDER = [
    *(
        "cell_names",
        "lazy_dataclass",
        "errors",
        "deprecated",
        "byte_sizes",
        "html_tables",
        "locks",
        "collector",
        "entry_points",
    ),
    *(
        "isolated",
        "large_pages",
        "block_memory",
        "identity_key",
        "extras",
        "environment_variables",
        "settings",
        "events",
        "tree",
        "params",
    ),
    *("ir", "numpy_api", "passes", "kernels", "backends", "debug", "jit", "ptir", "nn"),
    *("onnx", "torch"),
    *("models", "text"),
    *(
        "images",
        "formats",
        "memory",
        "loading",
        "parity",
        "notebook",
        "cli",
        "__main__",
        "gptrs_bench",
    ),
]
COMMAND = "gptrs.cli.bench"  # runs `gptrs_bench` where it is there, and nothing else does
FILES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for root, package in ((ROOT, "gptrs"), (ROOT / "benchmarks" / "src", "gptrs_bench"))
    for path in sorted((root / package).rglob("*.py"))
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
    return ORDER.index(name.removeprefix("gptrs.").partition(".")[0])


@pytest.mark.parametrize("name", [name for name in FILES if name != "gptrs"])
def test_imports_go_up_the_list(name: str) -> None:
    found = imports(name) - ({"gptrs_bench.command"} if name == COMMAND else set())
    assert [other for other in sorted(found) if layer(other) > layer(name)] == []


@pytest.mark.slow
def test_there_is_no_circle() -> None:
    graph = {name: imports(name) for name in FILES}
    assert sum(map(len, graph.values())) > 50, "imports were found"
    graphlib.TopologicalSorter(graph).prepare()
