"""Defects planted on purpose: a wrong rewrite rule, and the line of a function by its text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from gptrs import ptir
from gptrs.ir.program import Program
from gptrs.ir.rewrite import apply_rules, rewrite
from gptrs.ir.tensor import Tensor
from gptrs.passes import pipeline
from gptrs.passes.base import Context


@rewrite(lambda x, y: ptir.maximum(x, y), samples=[{"x": "f32[3]", "y": "f32[3]"}])
def confuse_extremes(x: Tensor, y: Tensor) -> Tensor:
    """Wrong on purpose."""
    return ptir.minimum(x, y)


def plant_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last pass ``confuse`` that makes each maximum a minimum."""

    def confuse(program: Program, context: Context) -> Program:
        return apply_rules(program, (confuse_extremes,), context.fuel)

    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE, confuse))


def line_of(function: Callable[..., Any], text: str) -> tuple[str, int]:
    """File and line of the line with ``text`` in a function."""
    lines, first = inspect.getsourcelines(function)
    number = next(n for n, line in enumerate(lines) if text in line)
    return inspect.getsourcefile(function) or "", first + number
