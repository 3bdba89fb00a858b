"""Loops of inlined functions of numbers are interleaved, and no others."""

from __future__ import annotations

import re

import pytest

from gptrs.kernels.compiler.compile import compile_source
from gptrs.kernels.compiler.interleaving import interleaved

SOURCE = """
def exponentials(arguments, first, last):
    block = words(arguments)
    x, y, out = floats(block[0]), floats(block[1]), floats(block[2])
    for i in range(first, last):
        out[i] = exp32(x[i])
    for i in range(first, last):
        y[i] = {0}(out[i]) * exp32(out[i])
"""


@pytest.mark.parametrize(("second", "vectors"), [("exp32", [4, 4]), ("sin32", [4, 1])])
def test_vectors_at_a_time(second: str, vectors: list[int]) -> None:
    """LLVM itself leaves loops of this length at one vector."""
    text = compile_source(SOURCE.format(second), "exponentials").llvm()
    bodies = re.findall(r"^vector\.body\d*:.*?^  br ", text, re.MULTILINE | re.DOTALL)
    loads = [len(re.findall(r" = load <\d+ x float>", body)) for body in bodies]
    assert loads == vectors


LOOPS = """
define void @loops(ptr %x) {{
entry:
  br label %B1

B1:
  %a = call float @scalar.{first}(float 1.0)
  br i1 %c, label %B1, label %"B.2"{already}

"B.2":
  %b = call float @scalar.exp32(float 1.0)
  br i1 %d, label %B3, label %"B.2"

B3:
  %e = call float @scalar.exp32(float 1.0)
  br i1 %d, label %B1, label %B4

B4:
  br i1 %d, label %B4, label %B5

B5:
  ret void
}}

!0 = !{{!"another"}}
!7 = distinct !{{!7}}
"""


@pytest.mark.parametrize(
    ("first", "already", "marked"),
    [
        ("log64", "", {"B1": 9, "B.2": 10}),
        ("log64", ", !llvm.loop !7", {"B1": 7, "B.2": 9}),
        ("sin64", "", {"B.2": 9}),
    ],
)
def test_marked_loops(first: str, already: str, marked: dict[str, int]) -> None:
    """Of one block, with calls of inlined functions alone; each has a node of its own."""
    text = interleaved(LOOPS.format(first=first, already=already))
    found: dict[str, int] = {}
    for block in text.split("\n\n"):
        label = re.match(r'"?([\w.]+)"?:', block)
        if label and (node := re.search(r"!llvm\.loop !(\d+)", block)):
            found[label[1]] = int(node[1])
    assert found == marked
    for node in set(marked.values()) - {7}:
        assert f"!{node} = distinct !{{!{node}, !8}}" in text
    assert '!8 = !{!"llvm.loop.interleave.count", i32 4}' in text


def test_other_text_stays() -> None:
    text = LOOPS.format(first="log64", already="").replace("scalar.", "other.")
    assert interleaved(text) == text
