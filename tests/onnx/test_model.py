"""``gptrs.load("model.onnx")``: models of ONNX as functions of arrays."""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, save_model

import gptrs
from gptrs import ptir
from gptrs.errors import ArgumentError, LoadError, ShapeError
from gptrs.ir.types import Array

_helper: Any = helper
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, list[int | str]]],
    outputs: list[str],
    weights: dict[str, Array] | None = None,
    functions: list[Any] | None = None,
) -> ModelProto:
    """A model of opset 18."""
    taken = [_helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()]
    given = [_helper.make_tensor_value_info(n, F32, None) for n in outputs]
    stored = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    graph = _helper.make_graph(nodes, "model", taken, given, stored)
    opsets = [_helper.make_opsetid("", 18), _helper.make_opsetid("own", 1)]
    return _helper.make_model(graph, opset_imports=opsets, functions=functions or [])


def node(operator: str, operands: list[str], results: list[str], **attributes: Any) -> NodeProto:
    return _helper.make_node(operator, operands, results, **attributes)


@pytest.fixture
def loaded(tmp_path: Path) -> Any:
    """Models as they are loaded from their file."""

    def load(made: ModelProto) -> Any:
        save_model(made, tmp_path / "model.onnx")
        return gptrs.load(tmp_path / "model.onnx")

    return load


def layers() -> ModelProto:
    """Two products whose rows are joined by sizes that only a call knows."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((8, 4)).astype(np.float32),
        "half": np.array([0.5], np.float32),
        "last": np.array([-1]),
    }
    nodes = [
        node("Transpose", ["w"], ["wt"]),
        node("MatMul", ["x", "wt"], ["y"]),
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "zero", "two"], ["head"]),
        node("Concat", ["head", "last"], ["wanted"], axis=0),
        node("Reshape", ["y", "wanted"], ["rows"]),
        node("Mul", ["rows", "half"], ["z"]),
    ]
    weights |= {"zero": np.array([0]), "two": np.array([2])}
    return model(nodes, {"x": (F32, ["batch", "time", 4])}, ["z"], weights)


def test_a_model_is_a_function_of_arrays(loaded: Any) -> None:
    made, x = loaded(layers()), np.random.default_rng(1).standard_normal((2, 3, 4))
    x = x.astype(np.float32)
    weight = np.array(made.parameters["wt"])
    np.testing.assert_allclose(made(x), x @ weight * 0.5, rtol=1e-5)
    np.testing.assert_allclose(made(x=x), x @ weight * 0.5, rtol=1e-5)
    assert "w" not in made.parameters, "what depends on weights alone is computed once"
    assert made.inputs == {"x": "f32[batch,time,4]"}
    assert made.explain(x).report.instructions("reference", "host") == 0
    assert repr(made) == "<OnnxModel (x: f32[batch,time,4]) → z>"


def test_sizes_that_the_file_names_are_symbols(loaded: Any) -> None:
    made = loaded(layers())
    programs = {str(made.program(np.zeros((n, n + 1, 4), np.float32))) for n in (2, 3)}
    assert len(programs) == 1
    assert "batch" in programs.pop()


def test_sizes_that_need_numbers_have_a_program_each(loaded: Any) -> None:
    nodes = [node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")]
    made = loaded(
        model(nodes, {"x": (F32, [1, 1, "n", 4])}, ["y"], {"sizes": np.array([1, 1, 4, 4])})
    )
    for n in (2, 4):
        assert made(np.ones((1, 1, n, 4), np.float32)).shape == (1, 1, 4, 4)


def resized(weights: dict[str, Array], *nodes: NodeProto, sizes: str, scales: str) -> ModelProto:
    """A Resize of [1, 1, h, w]."""
    resize = node("Resize", ["x", "", scales, sizes], ["y"], mode="nearest")
    return model([*nodes, resize], {"x": (F32, [1, 1, "h", "w"])}, ["y"], weights)


def test_factors_among_the_weights_are_known(loaded: Any) -> None:
    factors = np.array([1, 1, 2, 3], np.float32)
    of_sizes = [
        node("Shape", ["x"], ["shape"]),
        node("Cast", ["shape"], ["wide"], to=F32),
        node("Mul", ["wide", "factors"], ["product"]),
        node("Cast", ["product"], ["wanted"], to=I64),
    ]
    for made in (
        loaded(resized({"factors": factors}, sizes="", scales="factors")),
        loaded(resized({"factors": factors}, *of_sizes, sizes="wanted", scales="")),
    ):
        for height in (2, 5):
            assert made(np.ones((1, 1, height, 3), np.float32)).shape == (1, 1, 2 * height, 9)


def test_wrong_sizes_of_a_call_change_nothing(loaded: Any) -> None:
    inputs: dict[str, tuple[int, list[int | str]]] = {
        "x": (F32, ["n", 2]),
        "y": (F32, ["n", "m"]),
    }
    made = loaded(model([node("Add", ["x", "y"], ["z"])], inputs, ["z"]))
    x = np.ones((3, 2), np.float32)
    with pytest.raises(ArgumentError, match="y has n = 4, and another argument 3"):
        made(x, np.ones((4, 2), np.float32))
    with pytest.raises(ShapeError):
        made(x, np.ones((3, 5), np.float32))
    layer = loaded(layers())
    with pytest.raises(ArgumentError):
        layer(x)
    assert "batch" in str(layer.program(np.zeros((2, 3, 4), np.float32)))


def test_arguments_that_shapes_depend_on_are_read(loaded: Any) -> None:
    made = loaded(
        model(
            [node("Reshape", ["x", "shape"], ["y"])], {"x": (F32, [6]), "shape": (I64, [2])}, ["y"]
        )
    )
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2]):
        assert made(x, np.array(shape)).shape == tuple(shape)


def test_branches_and_loops(loaded: Any) -> None:
    def graph(name: str, nodes: list[NodeProto], taken: list[Any], given: list[str]) -> Any:
        results = [_helper.make_tensor_value_info(n, F32, None) for n in given]
        return _helper.make_graph(nodes, name, taken, results)

    double = graph("double", [node("Add", ["x", "x"], ["a"])], [], ["a"])
    none = graph("none", [node("Sub", ["x", "x"], ["b"])], [], ["b"])
    taken = [
        _helper.make_tensor_value_info("i", I64, []),
        _helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        _helper.make_tensor_value_info("state", F32, [2]),
    ]
    body = graph(
        "body",
        [node("Identity", ["go"], ["on"]), node("Add", ["state", "c"], ["next"])],
        taken,
        ["on", "next"],
    )
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["is_more"]),
        node("If", ["is_more"], ["c"], then_branch=double, else_branch=none),
        node("Loop", ["count", "", "x"], ["y"], body=body),
    ]
    made = loaded(
        model(
            nodes,
            {"x": (F32, [2]), "count": (I64, [])},
            ["y"],
            {"zero": np.array(0, np.float32)},
        )
    )
    x = np.array([1, 2], np.float32)
    assert np.array(made(x, np.array(3))).tolist() == [7, 14]
    assert np.array(made(-x, np.array(3))).tolist() == [-1, -2]
    assert made.explain(x, np.array(3)) is not None


def test_functions_of_the_file(loaded: Any) -> None:
    reference = _helper.make_node("Elu", ["a"], ["b"])
    attribute = reference.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "alpha", "slope", 1
    own = _helper.make_function(
        "own", "Bent", ["a"], ["b"], [reference], [_helper.make_opsetid("", 18)], ["slope"]
    )
    bent = _helper.make_node("Bent", ["x"], ["y"], domain="own", slope=2.0)
    made = loaded(model([bent], {"x": (F32, [2])}, ["y"], functions=[own]))
    x = np.array([-1, 1], np.float32)
    np.testing.assert_allclose(made(x), [2 * np.expm1(-1), 1], rtol=1e-6)


def test_it_is_saved_and_runs_without_the_file(loaded: Any, tmp_path: Path) -> None:
    made, x = loaded(layers()), np.ones((2, 3, 4), np.float32)
    made.save(tmp_path / "model.gptrs", x)
    (again,) = ptir.load_compiled(tmp_path / "model.gptrs")(x)
    np.testing.assert_array_equal(again, made(x))


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "the arguments x are missing"),
        ((np.zeros((1, 1, 4), np.float32), 1), {}, "found 2 arguments"),
        ((), {"z": 1}, r"found 0 arguments and \['z'\]"),
        ((np.zeros((1, 4), np.float32),), {}, r"x is f32\[1,4\], expected f32\[batch,time,4\]"),
        ((np.zeros((1, 1, 4)),), {}, r"x is f64\[1,1,4\], expected f32\[batch,time,4\]"),
    ],
)
def test_wrong_arguments_are_one_error(
    loaded: Any, args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ArgumentError, match=problem):
        loaded(layers())(*args, **kwargs)


def test_operators_that_are_not_covered_are_named_together(loaded: Any) -> None:
    nodes = [node("DeformConv", ["x", "x", "x"], ["y"]), _helper.make_node("Mine", ["y"], ["z"])]
    nodes[1].domain = "com.example"
    with pytest.raises(LoadError, match=r"there is no DeformConv, com\.example\.Mine in the table"):
        loaded(model(nodes, {"x": (F32, [2])}, ["z"]))


@pytest.mark.parametrize("content", [b"", b"text", b"\x08\x07"])
def test_other_files_are_one_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(LoadError, match=r"model\.onnx"):
        gptrs.load(tmp_path / "model.onnx")
    with pytest.raises(LoadError, match="there is no file"):
        gptrs.load(tmp_path / "absent.onnx")
