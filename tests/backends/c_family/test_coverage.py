"""The page on C lists what has a form, as the code does."""

from __future__ import annotations

from gptrs.backends.c_family.coverage import NONE, coverage, lines
from gptrs.ir.dispatch import OPS
from tests.support import ROOT


def test_every_op_is_listed_once() -> None:
    listed = [name for names in coverage().values() for name in names]
    assert len(listed) == len(set(listed))
    assert {"add", "matmul", "dot_general", "sort"} <= set(listed) <= set(OPS)
    assert "sort" in coverage()[NONE]


def test_the_page_has_the_lists() -> None:
    text = " ".join((ROOT / "docs" / "c.md").read_text(encoding="utf-8").split())
    for line in lines():
        assert line in text
