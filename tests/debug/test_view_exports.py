"""Views as files of graph viewers: Model Explorer's JSON, Graphviz's DOT."""

# Traced functions take any array: small functions and what they return are not typed.
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gptrs import ptir
from gptrs.debug.view.view import View
from gptrs.errors import ArgumentError
from tests.debug.test_view import X, model


@pytest.fixture(scope="module")
def view() -> View:
    return model.view(X, X.T.copy())


@pytest.fixture(scope="module")
def graphs(view: View, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = view.save(tmp_path_factory.mktemp("view") / "model.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["label"] == "model"
    return found["graphs"]


def test_there_is_a_graph_for_each_stage(view: View, graphs: list[dict[str, Any]]) -> None:
    names = [graph["id"] for graph in graphs]
    assert len(set(names)) == len(names)
    stages = [name for name in names if " › " not in name]
    assert [name.partition(" (")[0] for name in stages] == [
        stage["name"] for stage in view.document["stages"]
    ]
    traced = next(graph for graph in graphs if graph["id"] == "traced")
    program = model.program(X, X.T.copy())
    labels = [node["label"] for node in traced["nodes"]]
    assert labels == [
        *(param.name for param in program.params),
        *(instruction.op.name for instruction in program.body),
        "results",
    ]


def test_edges_join_outputs_to_inputs(graphs: list[dict[str, Any]]) -> None:
    for graph in graphs:
        nodes = {node["id"]: node for node in graph["nodes"]}
        assert len(nodes) == len(graph["nodes"])
        for node in graph["nodes"]:
            for at, edge in enumerate(node["incomingEdges"]):
                source = nodes[edge["sourceNodeId"]]
                outputs = [output["id"] for output in source["outputsMetadata"]]
                assert edge["sourceNodeOutputId"] in outputs
                assert edge["targetNodeInputId"] == str(at)


def test_a_node_leads_to_its_regions(graphs: list[dict[str, Any]]) -> None:
    names = {graph["id"] for graph in graphs}
    (scan,) = (node for node in graphs[0]["nodes"] if node["label"] == "scan")
    assert scan["subgraphIds"]
    assert set(scan["subgraphIds"]) <= names
    inner = next(graph for graph in graphs if graph["id"] == scan["subgraphIds"][0])
    assert {"add", "mul"} <= {node["label"] for node in inner["nodes"]}


def test_calls_are_layers_with_lines(graphs: list[dict[str, Any]]) -> None:
    spaces = {node["namespace"] for node in graphs[0]["nodes"]}
    assert {"scaled", "scaled #2"} <= spaces
    (product,) = (node for node in graphs[0]["nodes"] if node["label"] in ("matmul", "dot_general"))
    about = {each["key"]: each["value"] for each in product["attrs"]}
    assert about["flops"] == str(2 * 4 * 6 * 4)
    assert "test_view.py:" in about["line"]
    (output,) = product["outputsMetadata"]
    assert {"key": "shape", "value": "f32[4,4]"} in output["attrs"]


@pytest.mark.parametrize("ending", ["dot", "gv"])
def test_graphviz(view: View, tmp_path: Path, ending: str) -> None:
    text = view.save(tmp_path / f"model.{ending}").read_text(encoding="utf-8")
    assert text.startswith('digraph "model" {')
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert outside.count("{") == outside.count("}")
    nodes = set(re.findall(r'^ *"([^"]+)" \[label=', text, re.MULTILINE)) | {"results"}
    edges = re.findall(r'^  "([^"]+)" -> "([^"]+)";$', text, re.MULTILINE)
    assert {end for edge in edges for end in edge} <= nodes
    traced = view.document["stages"][0]
    read = sum(len(view.document["instructions"][n]["in"]) for n in traced["body"])
    assert len(edges) == read + len(traced["results"])
    assert text.count('label="scaled') == 2


def test_names_are_escaped(tmp_path: Path) -> None:
    function = ptir.jit(lambda x: x + 1, name='a"b\\c')
    text = function.view(X).save(tmp_path / "f.dot").read_text(encoding="utf-8")
    assert text.startswith('digraph "a\\"b\\\\c" {')


def test_without_a_program_there_is_no_graph(tmp_path: Path) -> None:
    def wrong(x: Any) -> Any:
        raise ValueError("no")

    view = ptir.jit(wrong).view(X)
    assert view.save(tmp_path / "f.html").stat().st_size > 1000
    if view.document["stages"]:
        view.save(tmp_path / "f.dot")
    else:
        with pytest.raises(ArgumentError, match=r"wrong has no program to write to f\.dot"):
            view.save(tmp_path / "f.dot")
