"""The page on devices has the table that the code writes."""

from __future__ import annotations

from gptrs.backends.device_table import table
from tests.support import ROOT

BEGIN, END = "<!-- python -m gptrs.backends.device_table -->\n", "\n<!-- end -->"


def test_the_page_has_the_table() -> None:
    text = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == "\n".join(table())
