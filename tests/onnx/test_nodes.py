"""A part of the test suite of the ``onnx`` package; `tests.onnx.nodes` runs all of it."""

from __future__ import annotations

import pytest

from gptrs import ptir
from tests.onnx.nodes import cases, is_left_out, model_of, outcome

_EVERY = 4
_NOT_COVERED = {
    "FNUZ": "the dtype is not of PTIR",
    "E8M0": "the dtype is not of PTIR",
    "FLOAT4E2M1": "the dtype is not of PTIR",
    "INT2": "the dtype is not of PTIR",
    "float4e2m1": "the dtype is not of PTIR",
    "int2": "the dtype is not of PTIR",
    "_to_INT4": "numbers outside of 4 bits, which have no defined result",
    "FLOAT16_to_UINT4": "the same",
    "FLOAT_to_UINT4": "the same",
    "negative_shift": "a shift by a negative number is an error",
    "bf16": "attention in f32 where the suite rounds to bf16 between its steps",
    "attention_4d_causal_fp16": "the same, to f16",
    "deform_conv": "the operator is not in the table",
    "image_decoder": "the operator is not in the table",
    "tfidfvectorizer": "the operator is not in the table",
    "tree_ensemble": "the operator is not in the table",
    "scan_sum": "the operator in opset 8 is another one",
    "training_dropout": "random numbers of a generator that is not defined",
}
"""What fails: a part of the names of tests → the reason."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_give_what_the_suite_says() -> None:
    wrong: dict[str, str] = {}
    with ptir.backend("reference"):
        for name, test in list(cases().items())[::_EVERY]:
            covered = not any(part in name for part in _NOT_COVERED)
            if covered and not is_left_out(model_of(test)) and (problem := outcome(test)):
                wrong[name] = problem
    assert wrong == {}
