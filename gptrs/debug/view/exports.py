"""Views as files of graph viewers: Model Explorer's JSON and Graphviz's DOT.

Model Explorer opens a collection of graphs: one for each stage, and one for each region of a loop
or a branch, which its node leads to. Groups are its layers, and clusters in DOT. The formats are
described at https://github.com/google-ai-edge/model-explorer/wiki and
https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def model_explorer(document: Json) -> str:
    """The stages of a document (`gptrs.debug.view.document`) as a graph collection."""
    graphs: list[Json] = []
    for stage in document["stages"]:
        name = stage["name"]
        count = sum(graph["id"].partition(" (")[0] == name for graph in graphs)
        graphs += _graphs(document, stage, f"{name} ({count + 1})" if count else name)
    return json.dumps({"label": document["name"], "graphs": graphs}, ensure_ascii=False)


def _graphs(document: Json, program: Json, name: str) -> Iterator[Json]:
    """The graph of a program, and those of the regions in it."""
    makers = _makers(document, program["body"])
    nodes = [_parameter(document, value) for value in program["params"]]
    inner: list[Json] = []
    for number in program["body"]:
        instruction = document["instructions"][number]
        regions = {
            f"{name} › {each['name']} {number}": each for each in instruction.get("regions", ())
        }
        for label, region in regions.items():
            inner += _graphs(document, region, label)
        nodes.append(
            {
                "id": str(number),
                "label": instruction["op"],
                "namespace": "/".join(_path(document, instruction["group"])),
                "subgraphIds": [*regions],
                "attrs": _attributes(_about(document, instruction)),
                "incomingEdges": _edges(instruction["in"], makers),
                "outputsMetadata": [
                    _metadata(at, document["values"][value])
                    for at, value in enumerate(instruction["out"])
                ],
            }
        )
    edges = _edges(program["results"], makers)
    nodes.append(
        {
            "id": "results",
            "label": "results",
            "namespace": "",
            "attrs": _attributes({}),
            "incomingEdges": edges,
        }
    )
    yield {"id": name, "nodes": nodes}
    yield from inner


def _makers(document: Json, body: Sequence[int]) -> dict[int, tuple[str, int]]:
    """The node and the output that make each value."""
    instructions = document["instructions"]
    return {
        value: (str(number), at)
        for number in body
        for at, value in enumerate(instructions[number]["out"])
    }


def _edges(values: Sequence[int], makers: Mapping[int, tuple[str, int]]) -> list[Json]:
    edges: list[Json] = []
    for at, value in enumerate(values):
        node, output = makers.get(value, (f"value {value}", 0))
        edges.append(
            {
                "sourceNodeId": node,
                "sourceNodeOutputId": str(output),
                "targetNodeInputId": str(at),
            }
        )
    return edges


def _parameter(document: Json, number: int) -> Json:
    value = document["values"][number]
    return {
        "id": f"value {number}",
        "label": value["name"],
        "namespace": "",
        "attrs": _attributes({"role": value.get("role", "input"), "bytes": value["bytes"]}),
        "incomingEdges": [],
        "outputsMetadata": [_metadata(0, value)],
    }


def _metadata(at: int, value: Json) -> Json:
    about = {"__tensor_tag": value["name"], "shape": value["type"], "bytes": value["bytes"]}
    return {"id": str(at), "attrs": _attributes(about)}


def _attributes(about: Mapping[str, object]) -> list[Json]:
    return [{"key": key, "value": str(value)} for key, value in about.items()]


def _about(document: Json, instruction: Json) -> dict[str, object]:
    about: dict[str, object] = {"text": instruction["text"]}
    if "file" in instruction:
        path = document["files"][instruction["file"]]["path"]
        about["line"] = f"{path}:{instruction['line']} in {instruction['function']}"
    return about | {key: instruction[key] for key in ("flops", "read", "written")}


def _path(document: Json, group: int | None) -> list[str]:
    """The labels of a group and those around it, without the program itself."""
    labels: list[str] = []
    while group:
        entry = document["groups"][group]
        labels.append(entry["label"].replace("/", "∕"))
        group = entry["parent"]
    return labels[::-1]


def graphviz(document: Json, stage: int = 0) -> str:
    """A stage of a document as a directed graph, with a cluster for each call of a module or
    function. Regions are not drawn."""
    program = document["stages"][stage]
    makers = _makers(document, program["body"])
    members: dict[int, list[int]] = {}
    for number in program["body"]:
        group = document["instructions"][number]["group"] or 0
        members.setdefault(group, []).append(number)
    lines = [f"digraph {_quoted(document['name'])} {{", '  node [shape=box, fontname="monospace"];']
    for value in program["params"]:
        entry = document["values"][value]
        label = _quoted(f"{entry['name']}\n{entry['type']}")
        lines.append(f'  "value {value}" [label={label}, shape=ellipse];')
    lines += _cluster(document, 0, members, "  ")
    lines.append("  results [shape=ellipse];")
    for number in program["body"]:
        lines += _arrows(document["instructions"][number]["in"], makers, str(number))
    lines += _arrows(program["results"], makers, "results")
    return "\n".join([*lines, "}", ""])


def _cluster(
    document: Json, group: int, members: Mapping[int, list[int]], indent: str
) -> Iterator[str]:
    """The nodes of a group and the clusters of the groups in it, none of them empty."""
    for number in members.get(group, ()):
        instruction = document["instructions"][number]
        types = ", ".join(document["values"][value]["type"] for value in instruction["out"])
        label = _quoted(f"{instruction['op']}\n{types}")
        yield f'{indent}"{number}" [label={label}];'
    for inner, entry in enumerate(document["groups"]):
        if entry["parent"] == group:
            lines = [*_cluster(document, inner, members, indent + "  ")]
            if lines:
                yield f"{indent}subgraph cluster_{inner} {{"
                yield f"{indent}  label={_quoted(entry['label'])};"
                yield from lines
                yield f"{indent}}}"


def _arrows(
    values: Sequence[int], makers: Mapping[int, tuple[str, int]], target: str
) -> Iterator[str]:
    for value in values:
        node, _ = makers.get(value, (f"value {value}", 0))
        yield f'  "{node}" -> "{target}";'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
