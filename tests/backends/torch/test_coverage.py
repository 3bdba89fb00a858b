"""The table of ops that run on the host is that of the documentation, and of the plans."""

from __future__ import annotations

import re

import pytest

from gptrs.backends.torch.coverage import host_ops, table
from gptrs.backends.torch.op_table import ROWS
from gptrs.ir.dispatch import OPS
from tests.support import ROOT

pytest.importorskip("torch")

PAGE = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- python -m gptrs.backends.torch.coverage -->\n", "\n<!-- end -->"


def test_the_page_has_the_table() -> None:
    assert PAGE.split(BEGIN)[1].split(END)[0].strip() == table().strip()


def test_rows_are_for_ops_that_there_are() -> None:
    assert set(ROWS) <= set(OPS.values())
    assert {name for name, why in host_ops() if not why} == {
        *("eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals")
    }


def test_functions_that_rows_name_are_there() -> None:
    from gptrs.backends.torch import functions  # imports torch

    for rows in ROWS.values():
        for row in rows:
            for name in re.findall(r"\bpt\.(\w+)", row.text):
                assert hasattr(functions, name), row.text
