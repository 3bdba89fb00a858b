"""``ptir.no_retrace``: tracing and compiling in a block are errors that say why."""

# Traced functions take any array: small lambdas and what they return are not typed.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import threading
import uuid
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import RetraceError
from gptrs.kernels.compiler.compile import compile_ir
from tests.support.jitted import X, array, equal


def test_a_retrace_is_an_error_with_its_reason() -> None:
    function = ptir.jit(lambda x: x + 1, name="step")  # pyright: ignore[reportCallIssue]
    with ptir.no_retrace(), pytest.raises(RetraceError) as error:
        function(X)
    assert "step would be traced in a block of ptir.no_retrace(): the first call" in str(error)
    function(X)
    with ptir.no_retrace():
        for _ in range(6):  # by the fast path and by native calls
            equal(function(X), X + 1)
        with pytest.raises(RetraceError) as error:
            function(array(4))
        for text in ("argument x: axis 0: 3 → 4", "dynamic={'x': {0: 'S'}}", "test_no_retrace.py"):
            assert text in str(error.value)
        with pytest.raises(RetraceError, match=r"f32.4. → f64.3.|f32.3. → f64.3."):
            function(X.astype(np.float64))
        equal(function(X), X + 1)
    assert len(function.retraces()) == 1
    equal(function(array(4)), array(4) + 1)


def test_inner_functions_programs_and_captures_count() -> None:
    factor = [2.0]
    inner = ptir.jit(lambda x: x * factor[0])
    outer = ptir.jit(lambda x: inner(x) + 1)
    equal(outer(X), X * 2 + 1)
    with ptir.no_retrace(), pytest.raises(RetraceError, match="the first call"):
        inner.program(X)
    factor[0] = 3.0
    with ptir.no_retrace(), pytest.raises(RetraceError, match="closure factor: another"):
        outer(X)
    equal(outer(X), X * 3 + 1)


def test_symbolic_axes_are_not_traced_again() -> None:
    function = ptir.jit(dynamic={"x": {0: "N"}})(lambda x: x * 2)
    function(X)
    with ptir.no_retrace():
        for n in range(1, 5):
            equal(function(array(n)), array(n) * 2)


def test_kernels_are_loaded_and_not_compiled() -> None:
    source = "define void @unseen(i64 %words, i64 %first, i64 %last) {\n    ret void\n}\n"
    source += f"; {uuid.uuid4()}"  # NumPy's numbers may have been seeded by another test
    with (
        ptir.no_retrace(),
        pytest.raises(RetraceError, match=r"would be compiled .* unseen"),
    ):
        compile_ir(source, "unseen")
    assert compile_ir(source, "unseen").address


def test_other_threads_are_free() -> None:
    function = ptir.jit(lambda x: x - 1)
    results: list[Any] = []
    with ptir.no_retrace():
        thread = threading.Thread(target=lambda: results.append(function(X)))
        thread.start()
        thread.join()
        equal(function(X), X - 1)
    equal(results[0], X - 1)
