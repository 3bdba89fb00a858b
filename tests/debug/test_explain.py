"""`fn.explain`: steps, copies, reference steps, and sources of loops that run alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


@ptir.jit(backend="faer")
def mixed(x: Any, w: Any) -> Any:
    y = ptir.softmax(x @ w)
    return ptir.ops.sort(y * 2 + ptir.exp(y), axis=0)[0], x


@pytest.mark.usefixtures("own_definitions")
def test_the_text_names_every_kind_of_step() -> None:
    @ptir.primitive
    def slow_copy(x: ptir.Tensor) -> ptir.Type:
        """An op that NumPy runs."""
        return x.type

    slow_copy.numpy(np.copy)

    @ptir.jit(backend="faer")
    def every_kind(x: Any, w: Any) -> Any:
        y = ptir.softmax(x @ w)
        return slow_copy(y * 2 + ptir.exp(y)), x

    w = X.T.copy()
    found = every_kind.explain(X, w)
    text = str(found)
    for words in (
        "gpt_rs.faer.matmul.f32.v1",
        "gpt_rs.faer.softmax.f32.v1",
        "reference  slow_copy",
        "2 in kernels, 3 in fused loops, 1 by the reference",
        "native steps",
        "arena",
    ):
        assert words in text, text
    assert found.report.instructions() == len(every_kind.lowered(X, w).body)
    assert every_kind.retraces()[-1].reason == "the first call"


@pytest.mark.slow
def test_loops_run_alone() -> None:
    (name,) = mixed.explain(X, X.T.copy()).sources
    source = mixed.explain(X, X.T.copy()).sources[name]
    scope: dict[str, Any] = {}
    exec(source, scope)
    assert "# out: f32[j], at first the operand that it overwrites" in source
    y = np.linspace(0, 1, 16, dtype=np.float32)
    out = y.copy()
    scope[f"{name}_parallel"](out)
    np.testing.assert_allclose(out, y * 2 + np.exp(y), rtol=1e-6)


def test_the_reference_explains_itself() -> None:
    @ptir.jit(backend="reference")
    def plain(x: Any) -> Any:
        return ptir.exp(x) + 1

    assert "2 instructions: 2 by the reference" in str(plain.explain(X))
