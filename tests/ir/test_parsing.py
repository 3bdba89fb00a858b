"""The parser on untrusted texts: a program, or a `ParseError` with line and column."""

from __future__ import annotations

import base64
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gptrs import ptir
from gptrs.errors import ParseError
from gptrs.ir.lexing import MOST_BRACKETS, MOST_CHARACTERS, MOST_OPERATORS, MOST_WORDS
from gptrs.ir.parsing import parse
from gptrs.ir.program import Program, verify
from tests.cases.programs import assert_round_trip
from tests.support import ROOT

HEAD = "# ptir.v0.4\nfrom gptrs.ptir import ops as ptir\n\n"
PROGRAM = (
    HEAD
    + """S = ptir.dim("S")

def f(x: "f32[?S,4]", w: "f32[4,3] parameter", n: "si32[]", p: "i1[]", c: "f32[?S] donated"):
    v0 = ptir.matmul(x, w)  # f32[?S,3]
    v1 = ptir.constant(value=ptir.array("f32[3]", [1.0, -2.5, 3.0]))  # f32[3]
    v2 = ptir.broadcast_to(v1, shape=(S, 3))  # f32[?S,3]
    v3 = ptir.add(v0, v2)  # f32[?S,3]
    v4 = ptir.mul(v3, float("-inf"))  # f32[?S,3]
    def region0(a: "f32[?S,3]"):
        v0 = ptir.softmax(a, axis=0)  # f32[?S,3]
        return v0

    def region1(a: "f32[?S,3]"):
        return a

    v5 = ptir.cond(p, (v4,), then=region0, otherwise=region1)  # f32[?S,3]
    v6, v7 = ptir.top_k(v5, k=2, axis=1)  # f32[?S,2], si64[?S,2]
    v8 = ptir.dynamic_slice(v5, (n, 0), sizes=(S, 2))  # f32[?S,2]
    v9 = ptir.iota(shape=(2*S + 1,), dtype='si8')  # si8[2*?S+1]
    v10 = ptir.concat((v6, v8), axis=1)  # f32[?S,4]
    return v10, v9, c
"""
)
GOLDEN = [path.read_text() for path in sorted((ROOT / "tests/models/golden").glob("*.ptir"))]
TEXTS = [PROGRAM, *(text for text in GOLDEN if text.startswith("# ptir.") and len(text) < 20000)]
DERANDOMIZED = settings(
    max_examples=300,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
WORDS = (
    *(
        "ptir",
        "ptir.add",
        "ptir.exp",
        "x",
        "v0",
        "S",
        "float",
        "complex",
        "def ",
        "return ",
        "class ",
    ),
    *(
        "lambda: ",
        "import os",
        "exec",
        "__import__",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "=",
        ".",
    ),
    *("*", "**", "//", "-", "+", "@", "\\", "'", '"', '"""', "#", "\n", "\n    ", "\t", " ", "\0"),
    *("\r", "\x0c", "\u2028", "\ud800", "é", "0", "-1", "1e999", "9" * 30, "1j", "None", "True"),
    *(
        '"f32[?S]"',
        '"f32[-1]"',
        '"f32[1//0]"',
        "'si8'",
        "shape=(1,)",
        "axis=9",
        "then=region0",
        "?",
    ),
)


def check(text: str) -> None:
    """It is a program that can be printed, or an error with its place in the text."""
    found: Program | ParseError
    try:
        found = parse(text)
    except ParseError as error:
        found = error
    if isinstance(found, Program):
        verify(found)
        assert_round_trip(found)
        return
    assert found.line is not None
    assert found.column is not None
    assert 1 <= found.line <= text.count("\n") + text.count("\r") + 2
    assert found.column >= 1
    assert str(found).startswith(f"line {found.line}, column {found.column}: ")
    assert len(str(found)) < 4000


def test_the_text_that_is_mutated() -> None:
    assert str(parse(PROGRAM)) == PROGRAM
    assert len(TEXTS) > 1


@pytest.mark.slow
@DERANDOMIZED
@given(st.text(), st.booleans())
def test_random_text(text: str, headed: bool) -> None:
    check(HEAD + text if headed else text)


@pytest.mark.slow
@DERANDOMIZED
@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_random_words(text: str) -> None:
    check(f'{HEAD}def f(x: "f32[2]"):\n    v0 = ptir.exp({text})\n    return v0\n')
    check(HEAD + text)


@pytest.mark.slow
@DERANDOMIZED
@given(st.data())
def test_mutated_programs(data: st.DataObject) -> None:
    """Pieces are removed, doubled, moved, and words put in."""
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        first = data.draw(st.integers(0, len(text)))
        last = min(first + data.draw(st.integers(0, 12)), len(text))
        match data.draw(st.integers(0, 3)):
            case 0:
                text = text[:first] + text[last:]
            case 1:
                text = text[:last] + text[first:]
            case 2:
                text = text[:first] + data.draw(st.sampled_from(WORDS)) + text[last:]
            case _:
                at = data.draw(st.integers(0, len(text)))
                text = text[:at] + text[first:last] + text[at:]
    check(text)


@pytest.mark.slow
@DERANDOMIZED
@given(st.data())
def test_exchanged_lines_and_names(data: st.DataObject) -> None:
    """Well-formed lines in another order, operands exchanged: types that do not fit."""
    lines = [*map(str, PROGRAM.split("\n"))]
    names = ["x", "w", "n", "p", "c", *(f"v{n}" for n in range(11)), "region0", "region1", "S", "7"]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(6, len(lines) - 1))
        if data.draw(st.booleans()):
            other = data.draw(st.integers(6, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            old, new = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
            lines[at] = lines[at].replace(old, new, 1)
    check("\n".join(lines))


@pytest.mark.slow
@DERANDOMIZED
@given(
    st.sampled_from(
        ["(", "[", "-", "+", "((", "x(", "ptir.exp(", "[x,", "1+", "S*", "x.", "not ", "lambda:"]
    ),
    st.integers(0, 5000),
)
@example("(", 2_000_000)
@example("-", 2_000_000)
@example("x.", 500_000)
@example("1+", 500_000)
def test_deep_nesting(sign: str, depth: int) -> None:
    check(HEAD + f'def f(x: "f32[2]"):\n    v0 = ptir.exp({sign * depth}x)\n    return v0\n')


@pytest.mark.slow
def test_deep_functions() -> None:
    """Regions in regions, as far as Python's indentation goes and farther."""
    for depth in (10, 90, 200, 3000):
        lines = [HEAD]
        for level in range(depth):
            lines.append(f'{" " * level}def f{level}(x: "f32[2]"):')
        lines.append(" " * depth + "return x")
        check("\n".join(lines))


def body(*lines: str, params: str = 'x: "f32[2,3]"', returned: str = "x") -> str:
    return f"{HEAD}def f({params}):\n" + "".join(
        f"    {x}\n" for x in (*lines, f"return {returned}")
    )


WRONG = {
    "nothing": "",
    "NUL": body("v0 = ptir.exp(\0x)"),
    "NUL in a comment": body("# \0"),
    "NUL in quotes": body('v0 = ptir.cast(x, dtype="f\0")'),
    "a surrogate": body("v0 = ptir.exp(\ud800)"),
    "a surrogate in a comment": body("# \udfff"),
    "a surrogate in quotes": body('v0 = ptir.cast(x, dtype="\ud800")'),
    "a lone carriage return ends a comment": body("# \rimport os"),
    "a form feed": body("\x0cv0 = ptir.exp(x)"),
    "letters that Python takes for others": body("v0 = ptir.ℯxp(x)"),
    "a line that goes on": body("v0 = ptir.exp(\\\n x)"),
    "text over lines": body('v0 = ptir.cast(x, dtype="""f32""")'),
    "bytes": body('v0 = ptir.cast(x, dtype=b"f32")'),
    "text that is computed": body('v0 = ptir.cast(x, dtype=f"{x}")'),
    "a division by zero": body("v0 = ptir.reshape(x, shape=(6 // 0, 1))"),
    "a division by zero in a type": body(params='x: "f32[6//0]"'),
    "a power": body("v0 = ptir.mul(x, 9**9**9)"),
    "a huge number": body(f"v0 = ptir.mul(x, {'9' * 4000})"),
    "a huge product": body("v0 = ptir.mul(x, " + "*".join(["9" * 300] * 50) + ")"),
    "a huge number of digits": body(f"v0 = ptir.mul(x, {'9' * 100_000})"),
    "a huge extent": body(params='x: "f32[' + "9" * 5000 + ']"'),
    "a long type": body(params='x: "f32[' + "1," * 5000 + '1]"'),
    "deep brackets in a type": body(params='x: "f32[' + "(" * 1500 + "1" + ")" * 1500 + ']"'),
    "many signs in a type": body(params='x: "f32[' + "-" * 4000 + '1]"'),
    "a huge array of nothing": body('v0 = ptir.constant(value=ptir.array("f32[1000000000]", []))'),
    "an array beyond all memory": body(
        f'v0 = ptir.constant(value=ptir.array("f32[{10**30}]", [1.0]))'
    ),
    "elements that are no base64": body('v0 = ptir.constant(value=ptir.array("f32[1]", "====="))'),
    "an unknown op": body("v0 = ptir.launch(x)"),
    "an op without operands": body("v0 = ptir.add()"),
    "an operand too few": body("v0 = ptir.add(x)"),
    "an operand too many": body("v0 = ptir.exp(x, x)"),
    "an attribute for an operand": body("v0 = ptir.add(x, y=x, z=x)"),
    "one attribute twice": body("v0 = ptir.softmax(x, axis=0, axis=1)"),
    "a number returned": body(returned="5"),
    "a dim returned": HEAD + 'S = ptir.dim("S")\ndef f(x: "f32[?S]"):\n    return S\n',
    "an array returned": body(returned='ptir.array("f32[1]", [1.0])'),
    "a region returned": body('def g(x: "f32[2]"):', "    return x", returned="g"),
    "nothing returned": body(returned="x, None"),
    "a region that is its own": body(
        'def g(a: "f32[2,3]", p: "i1[]"):',
        "    v0 = ptir.cond(p, (a, p), then=g, otherwise=g)",
        "    return v0",
        "v1 = ptir.cond(p, (x, p), then=g, otherwise=g)",
        params='x: "f32[2,3]", p: "i1[]"',
        returned="v1",
    ),
    "a region that is the program": body(
        "v0 = ptir.cond(p, (x, p), then=f, otherwise=f)",
        params='x: "f32[2,3]", p: "i1[]"',
        returned="v0",
    ),
    "a region that reads from around it": body(
        'def g(a: "f32[2,3]"):',
        "    v0 = ptir.add(a, x)",
        "    return v0",
        "v1 = ptir.cond(p, (x,), then=g, otherwise=g)",
        params='x: "f32[2,3]", p: "i1[]"',
        returned="v1",
    ),
    "a region for a tensor": body('def g(x: "f32[2]"):', "    return x", "v0 = ptir.exp(g)"),
    "regions as functions": body(
        'def g(a: "f32[2,3]"):',
        "    return a",
        "v1 = ptir.cond(p, g, g, x)",
        params='x: "f32[2,3]", p: "i1[]"',
        returned="v1",
    ),
    "a tensor that is called": body("v0 = x(x)"),
    "a result that is called": body("v0 = ptir.exp(x)(x)"),
    "an argument called ptir": body("v0 = ptir.exp(ptir)", params='ptir: "f32[2]"', returned="v0"),
    "an argument called float": body(params='float: "f32[2]"', returned="float"),
    "a value called ptir": body("ptir = ptir.exp(x)"),
    "a symbol called complex": HEAD
    + 'complex = ptir.dim("S")\ndef f(x: "f32[2]"):\n    return x\n',
    "a program called float": HEAD + 'def float(x: "f32[2]"):\n    return x\n',
    "a function with a type of its own": HEAD + 'def f[T](x: "f32[2]"):\n    return x\n',
    "an import from here": "# ptir.v0.4\nfrom .gptrs import ptir\n" + body().partition("\n\n")[2],
    "a float of a tensor": body("v0 = ptir.mul(x, float(x))"),
    "a float of nothing": body('v0 = ptir.mul(x, float("nothing"))'),
    "a shape with a fraction": body("v0 = ptir.reshape(x, shape=(2.5, 3))"),
    "a shape with a huge extent": body("v0 = ptir.reshape(x, shape=(1000000000000, 6))"),
    "a negative rank": body("v0 = ptir.transpose(x, perm=(-9, 1))"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_text(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParseError):
        parse(WRONG[case])
    check(WRONG[case])
    assert not list(tmp_path.iterdir())


def test_the_place_of_an_error() -> None:
    for text, line, column in (
        (body("v0 = ptir.exp(x)", "v1 = ptir.launch(v0)"), 6, 10),
        (body("v0 = ptir.add(x, ptir.exp(y))"), 5, 31),
        (body(params='x: "f32[2]", y: "f33[2]"'), 4, 20),
        (body("v0 = ptir.exp(x) ; import os"), 5, 22),
        ("\n\n# ptir.v9\n", 3, 1),
    ):
        with pytest.raises(ParseError) as raised:
            parse(text)
        assert (raised.value.line, raised.value.column) == (line, column)


def test_types_that_need_no_memory() -> None:
    """An extent is a number in a type, however large; nothing is as large."""
    tracemalloc.start()
    program = parse(
        body(
            "v0 = ptir.iota(shape=(1000000000000,))",
            "v1 = ptir.full(shape=(1000000000, 1000000000), value=0, dtype='f32')",
            "v2 = ptir.tile(v1, reps=(1000000000, 1))",
            "v3 = ptir.rng_normal(s, shape=(1000000000000,))",
            params='s: "si32[]"',
            returned="v0, v2, v3",
        )
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(program.results[0].type) == "si32[1000000000000]"
    assert peak < 10_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "x" * (MOST_CHARACTERS + 1),
        "\n" * 1_000_000,
        HEAD + "\n" * 5_000_000,
        HEAD + "x " * (MOST_WORDS + 1),
        HEAD + "#" + "x" * 50_000_000,
        body('v0 = ptir.constant(value=ptir.array("f32[1]", "' + "A" * 50_000_000 + '"))'),
        body("v0 = ptir.concat((" + "x," * (MOST_WORDS // 3) + "y))"),
        body("v0 = ptir.mul(x, 1" + "+1" * (MOST_OPERATORS + 1) + ")"),
        body("v0 = ptir.concat(" + "(" * MOST_BRACKETS + "x" + ")" * MOST_BRACKETS + ")"),
    ],
    ids=[
        "characters",
        "lines",
        "empty",
        "words",
        "comment",
        "elements",
        "parts",
        "terms",
        "brackets",
    ],
)
def test_a_huge_text(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ParseError):
        parse(HEAD + text if text[0] == "x" else text)
    assert time.perf_counter() - start < 60


@pytest.mark.slow
def test_what_the_limits_allow() -> None:
    """Long programs, and constants of many megabytes."""
    steps = [f"v{n + 1} = ptir.exp(v{n})" for n in range(3000)]
    program = parse(body("v0 = ptir.exp(x)", *steps, returned="v3000"))
    assert len(program.body) == 3001
    data = base64.b64encode(bytes(4 << 20)).decode()
    program = parse(body(f'v0 = ptir.constant(value=ptir.array("f32[{1 << 20}]", "{data}"))'))
    assert program.body[0].attrs["value"].shape == (1 << 20,)
    parse(body("v0 = ptir.mul(x, 1" + " + 1" * 200 + ")"))


def test_branches_without_operands() -> None:
    text = f"""{HEAD}def f(flag: "i1[]"):
    def region0():
        v0 = ptir.full(shape=(2,), value=1.0, dtype='f32')  # f32[2]
        return v0

    def region1():
        v0 = ptir.full(shape=(2,), value=2.0, dtype='f32')  # f32[2]
        return v0

    v0 = ptir.cond(flag, (), then=region0, otherwise=region1)  # f32[2]
    return v0
"""
    assert str(parse(text)) == text
    space: dict[str, Any] = {}
    exec(text, space)
    found = space["f"](ptir.tensor(np.array(True)))
    assert found.tolist() == [1.0, 1.0]
