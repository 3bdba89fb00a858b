"""The test suite of the ``onnx`` package: single operators, and layers that torch exported.

    python -m tests.onnx.nodes                           # all of it, on the reference
    python -m tests.onnx.nodes --backend faer conv pool  # those with a word in their names

Prints a line for each test that fails, and the counts. Tests of sequences, strings, optional values
and training are left out.
"""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, load_model, load_tensor, numpy_helper
from onnx.backend.test.loader import load_model_tests

from gptrs import ptir
from gptrs.errors import PtirError
from gptrs.ir.types import Array
from gptrs.onnx import OnnxModel
from gptrs.onnx.tensors import several

_KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
_LEFT_OUT = frozenset(("sequence_type", "optional_type", "map_type"))
_RANDOM = frozenset(("Bernoulli", "RandomUniformLike", "RandomNormalLike"))


@cache
def cases() -> dict[str, Any]:
    """The tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite makes its values by NumPy, which warns
        found = [case for kind in _KINDS for case in load_model_tests(kind=kind)]
    return {case.name: case for case in found}


def model_of(test: Any) -> ModelProto:
    """The model of a test."""
    if test.model is not None:
        return test.model
    return load_model(Path(test.model_dir) / "model.onnx")


def is_left_out(model: ModelProto) -> bool:
    """Whether the model is of a kind that is not covered."""
    kinds: set[str] = set()
    for value in [*model.graph.input, *model.graph.output]:
        kinds.add(str(value.type.WhichOneof("value")))
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            return True
    is_training = any("training" in node.domain for node in model.graph.node)
    names = {node.op_type for node in model.graph.node} - {"ReverseSequence"}
    has_sequences = any("Sequence" in name for name in names)
    return bool(kinds & _LEFT_OUT) or is_training or has_sequences


def check(test: Any) -> None:
    """Hold a test against its results. Raises what differs."""
    model = model_of(test)
    function = OnnxModel(model)
    is_random = any(node.op_type in _RANDOM for node in model.graph.node)
    for given, wanted in _data(test):
        made = function(*given)
        results = several(made)
        assert len(results) == len(wanted)
        for result, expected in zip(results, wanted, strict=True):
            _compare(np.asarray(result), expected, test, is_random=is_random)


def _compare(found: Array, wanted: Array, test: Any, *, is_random: bool) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if is_random:
        return
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        pair = found.astype(wide), wanted.astype(wide)
        np.testing.assert_allclose(*pair, rtol=test.rtol, atol=test.atol)


def _data(test: Any) -> Iterator[tuple[list[Array], list[Array]]]:
    """Arguments and results, of which a test may have several sets."""
    if test.data_sets is not None:
        for given, wanted in test.data_sets:
            yield [_array(v) for v in given], [_array(v) for v in wanted]
        return
    for place in sorted(Path(test.model_dir).glob("test_data_set_*")):
        yield _stored(place, "input"), _stored(place, "output")


def _stored(place: Path, name: str) -> list[Array]:
    count = len(list(place.glob(f"{name}_*.pb")))
    return [_array(load_tensor(place / f"{name}_{i}.pb")) for i in range(count)]


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def outcome(test: Any) -> str:
    """What is wrong with a test, in a line; nothing where it passes."""
    try:
        check(test)
    except (PtirError, AssertionError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return " ".join([type(error).__name__, *lines[:2]])[:200]
    return ""


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--backend", default="reference")
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    with ptir.backend(given.backend):
        for name, test in cases().items():
            if given.words and not any(word in name for word in given.words):
                continue
            if is_left_out(model_of(test)):
                counts["left out"] += 1
                continue
            wrong = outcome(test)
            counts["failed" if wrong else "passed"] += 1
            if wrong:
                print(f"{name}: {wrong}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
