"""Errors of invalid calls name the op, its operands, the reason, the fix and the user's line."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import DimError, ElementError, PtirError, ShapeError, TraceError
from gptrs.ir.tensor import Tensor
from tests.cases.sample import inputs, sample
from tests.cases.wrong import ARGUMENTS, DTYPES, Wrong
from tests.cases.wrong_quantizing import QUANTIZED
from tests.cases.wrong_random import RANDOM
from tests.cases.wrong_shapes import ELEMENTS, SHAPES
from tests.cases.wrong_sorting import SORTED
from tests.cases.wrong_windows import WINDOWED

pytestmark = pytest.mark.usefixtures("strict_dtypes")  # which keeps these errors

TABLE = (*DTYPES, *SHAPES, *ARGUMENTS, *ELEMENTS, *WINDOWED, *RANDOM, *QUANTIZED, *SORTED)


def by_line(each: Wrong) -> str:
    return f"{each.error.__name__}-{each.call.__code__.co_firstlineno}"


every_wrong_call = pytest.mark.parametrize("each", TABLE, ids=by_line)


def check(each: Wrong, function: Callable[..., Any]) -> PtirError:
    arrays = inputs(sample(*each.arrays), "f32").arrays
    with pytest.raises(each.error) as raised:
        function(*map(Tensor, arrays))
    message = str(raised.value)
    for word in each.words:
        assert word in message, message
    return raised.value


@every_wrong_call
def test_called_directly(each: Wrong) -> None:
    error = check(each, each.call)
    if error.context:  # raised by an op, and not while looking for one
        code = each.call.__code__
        assert f"{Path(code.co_filename).name}:{code.co_firstlineno} in" in str(error)


@every_wrong_call
def test_called_in_a_traced_function(each: Wrong) -> None:
    error = check(each, ptir.jit(each.call))
    assert error.where is None or error.where.line == each.call.__code__.co_firstlineno
    assert error.where is not None or not error.context


@pytest.mark.slow
@every_wrong_call
def test_called_in_an_eager_function(each: Wrong) -> None:
    function = ptir.jit(each.call)
    with ptir.eager():
        check(each, function)


def test_the_traceback_shows_the_users_lines_only() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return ptir.matmul(x, y)

    for call in (function, ptir.jit(function)):
        with pytest.raises(ShapeError) as raised:
            call(ptir.tensor([1.0, 2.0]), ptir.tensor([1.0, 2.0, 3.0]))
        frames = [Path(entry.filename).name for entry in traceback.extract_tb(raised.tb)]
        # Of this package, the line that raises the shortened error and no other.
        assert len(frames) == 3
        assert frames.count("test_op_errors.py") == 2


@pytest.mark.parametrize("size", [1, 4, 9])
def test_symbolic_sizes_are_checked_when_they_are_known(size: int) -> None:
    dynamic = {"x": {0: "S"}}
    first = ptir.jit(dynamic=dynamic)(lambda x: x[0:5])
    box = ptir.jit(dynamic=dynamic)(lambda x: ptir.dynamic_slice(x, (0,), sizes=(5,)))
    x = np.arange(size, dtype=np.float32)
    for function in (first, box):
        if size < 5:
            with pytest.raises(ElementError, match=r"axis 0: 5 elements .* extent"):
                function(x)
        else:
            assert function(x).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_whether_a_window_fits_a_symbolic_extent_is_checked_when_it_is_known(size: int) -> None:
    image = ptir.jit(dynamic={"x": {1: "S"}})(lambda x: ptir.extract_patches(x, window=(4,)))
    x = np.zeros((2, size, 3), np.float32)
    if size < 4:
        with pytest.raises(ElementError, match=rf"axis 1: a window .* over 4 .* extent {size} "):
            image(x)
    else:
        assert image(x).shape == (2, size - 3, 12)


def test_a_symbolic_index_that_does_not_lie_in_the_array() -> None:
    dynamic = {"x": {0: "S"}, "i": {0: "T"}}
    function = ptir.jit(dynamic=dynamic)(lambda x, i: ptir.gather(x, i, axis=1))
    x, index = np.ones((2, 3), np.float32), np.zeros((2, 1), np.int64)
    assert function(x, index).shape == (2, 1)
    with pytest.raises(ElementError, match="index has extent 4 along axis 0, x has 2"):
        function(x, np.zeros((4, 1), np.int64))


def test_a_question_about_a_symbol_names_it() -> None:
    def ask(x: Tensor) -> Tensor:
        return x * 2.0 if x.shape[0] == 4 else x

    with pytest.raises(DimError, match=r"\?S can be any size"):
        ptir.jit(dynamic={"x": {0: "S"}})(ask)(np.ones(4, np.float32))  # pyright: ignore[reportCallIssue]


def test_a_traced_value_has_no_truth() -> None:
    def ask(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(TraceError, match=r"ptir\.select"):
        ptir.jit(ask)(np.ones(4, np.float32))  # pyright: ignore[reportArgumentType]
