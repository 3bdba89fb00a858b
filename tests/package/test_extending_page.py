"""Every block of docs/extending.md runs as a file of its own."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from gptrs.ir.scalar_rules import FUNCTIONS
from tests.support import ROOT

pytestmark = pytest.mark.usefixtures("own_definitions")

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / f"block_{number}.py"
    file.write_text(BLOCKS[number], encoding="utf-8")
    runpy.run_path(str(file), run_name="__main__")  # it asserts


def test_the_page_lists_what_a_scalar_rule_may_call() -> None:
    listed = PAGE.partition("- of `math`, or of NumPy")[2].partition("In arithmetic on f32")[0]
    names = {name for functions in FUNCTIONS.values() for name in functions.values()}
    assert names <= set(re.findall(r"\w+", listed))
