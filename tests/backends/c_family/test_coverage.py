"""The page on C lists what has a form, as the code does."""

from __future__ import annotations

import pytest

from gptrs.backends.c_family.c_plan import c_plan
from gptrs.backends.c_family.c_target import CTarget
from gptrs.backends.c_family.coverage import NONE, coverage, lines
from gptrs.ir.dispatch import OPS
from gptrs.ir.types import as_dtype
from gptrs.passes.base import Context
from gptrs.passes.pipeline import lower
from tests.cases import CASES
from tests.cases.sample import inputs
from tests.support import ROOT
from tests.support.rows import trace


def test_every_op_is_listed_once() -> None:
    listed = [name for names in coverage().values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(OPS)


def test_the_page_has_the_lists() -> None:
    text = " ".join((ROOT / "docs" / "c.md").read_text(encoding="utf-8").split())
    for line in lines():
        assert line in text


@pytest.mark.slow
def test_what_is_listed_has_a_form() -> None:
    declined: dict[str, list[str]] = {}
    for case in CASES:
        dtypes = [dtype for dtype in case.dtypes if not as_dtype(dtype).is_complex]
        if case.op in coverage()[NONE] or not dtypes:
            continue
        program = trace(case, inputs(case.samples[0], dtypes[0]))
        lowered = lower(program, Context(CTarget(), precise=True), check=False)
        if missing := c_plan(lowered).without_form():
            declined[case.op] = [instruction.op.name for instruction in missing]
    assert not declined
