"""Printing of programs: parse(print(p)) is p, the text runs as Python, other texts do nothing."""

# The parameters of a lambda have no types, and dtypes are given by name.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false

from __future__ import annotations

import base64
import math
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gptrs import ptir
from gptrs.backends.reference import ReferencePlan
from gptrs.errors import ParseError
from gptrs.ir.dims import dim
from gptrs.ir.dispatch import interpreter
from gptrs.ir.interpreters import Recorder
from gptrs.ir.parsing import parse
from gptrs.ir.printing import array
from gptrs.ir.program import Param
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import DTYPES, Array, Type
from tests.cases.programs import assert_round_trip, record, retrace
from tests.cases.sample import draw, same_bits
from tests.support.marks import slow_unless


def test_a_whole_program() -> None:
    program = record(lambda x, y: (ptir.softmax(x @ y, axis=0), x), "f32[?S,4]", "f32[4,2]")
    assert str(program) == (
        "# ptir.v0.4\n"
        "from gptrs.ptir import ops as ptir\n"
        "\n"
        'S = ptir.dim("S")\n'
        "\n"
        'def f(x0: "f32[?S,4]", x1: "f32[4,2]"):\n'
        "    v0 = ptir.matmul(x0, x1)  # f32[?S,2]\n"
        "    v1 = ptir.softmax(v0, axis=0)  # f32[?S,2]\n"
        "    return v1, x0\n"
    )
    assert_round_trip(program)


def test_flags_of_parameters() -> None:
    recorder = Recorder("f")
    recorder.input(Type.parse("f32[2]"), "wte.weight", role="parameter")
    recorder.input(Type.parse("f32[2]"), "cache", donated=True)
    program = recorder.finish([])
    assert 'wte_weight: "f32[2] parameter", cache: "f32[2] donated"' in str(program)
    assert "return ()" in str(program)
    assert_round_trip(program)


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 0.1, 3.0, math.inf, -math.inf, math.nan, -7])
def test_literals(value: float) -> None:
    program = record(lambda x: x * value, "f32[3]")
    (literal,) = [
        o for o in assert_round_trip(program).body[0].operands if isinstance(o, int | float)
    ]
    assert type(literal) is type(value)
    assert repr(literal) == repr(value)


def test_literals_keep_the_sign_of_nan() -> None:
    program = record(lambda x: ptir.copysign(x * math.nan, -math.nan), "f32[3]")
    assert 'float("nan")' in str(program)
    assert 'float("-nan")' in str(program)
    literal = assert_round_trip(program).body[1].operands[1]
    assert isinstance(literal, float)
    assert math.copysign(1.0, literal) < 0


@pytest.mark.parametrize("value", [2j, -1 - 0.5j, complex(math.nan, -0.0), complex(-0.0, math.inf)])
def test_complex_literals(value: complex) -> None:
    program = record(lambda x: x * value, "cf32[3]")
    literal = assert_round_trip(program).body[0].operands[1]
    assert repr(literal) == repr(value)


def test_absent_and_several_operands() -> None:
    absent = record(lambda x, b: ptir.layer_norm(x, None, b), "f32[2,3]", "f32[3]")
    assert "layer_norm(x0, None, x1)" in str(absent)
    tail = record(lambda x: ptir.layer_norm(x, None, None), "f32[2,3]")
    assert "layer_norm(x0)" in str(tail)
    several = record(lambda x, y: ptir.concat((x, y)), "f32[2]", "f32[3]")
    assert "concat((x0, x1))" in str(several)
    for program in (absent, tail, several, record(lambda x: ptir.concat((x,)), "f32[2]")):
        assert_round_trip(program)


def test_symbols_in_attributes_and_operands() -> None:
    s, t = dim("S"), dim("T")

    def function(x: Tensor) -> Any:
        wide = ptir.broadcast_to(x, shape=(t * 2, s, 3))
        part = ptir.dynamic_slice(wide, (t, 0, 1), sizes=(t, s // 2, 1))
        return part * (s * t - 1), ptir.reshape(x, shape=(s * 3,))

    recorder = Recorder("f")
    x = recorder.input(Type.parse("f32[?S,3]"), "x")
    recorder.input(Type.parse("si8[?T,?S**2+1,?S//2]"), "y")
    with interpreter(recorder):
        assert_round_trip(recorder.finish(function(x)))


ROUND = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_constants(dtype: str, size: int) -> None:
    """Small ones as numbers, large or not finite ones as base64; every bit comes back."""
    for values in ("", "any"):
        value = draw(Type((size,), DTYPES[dtype]), values, ROUND)
        read = assert_round_trip(record(lambda value=value: ptir.constant(value=value)))
        again = read.body[0].attrs["value"]
        assert same_bits(again, value)
        assert again.dtype == value.dtype


def test_constants_of_any_layout_and_rank() -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    for value in (matrix.T, matrix[:, ::2], np.float32(2.5), np.zeros((2, 0, 3), np.int8)):
        read = assert_round_trip(record(lambda value=value: ptir.constant(value=np.asarray(value))))
        assert np.array_equal(read.body[0].attrs["value"], value)


def test_small_constants_are_readable() -> None:
    bf16 = np.array([0.1, -0.0, 3], ml_dtypes.bfloat16)
    program = record(lambda: ptir.constant(value=bf16))
    assert 'ptir.array("bf16[3]", [0.10009765625, -0.0, 3.0])' in str(program)
    nan = record(lambda: ptir.constant(value=np.array([math.nan], np.float32)))
    assert base64.b64encode(np.array([math.nan], np.float32).tobytes()).decode() in str(nan)


AWKWARD = [
    "ptir",
    "float",
    "complex",
    "v0",
    "v7",
    "region0",
    "S",
    "v0_",
    "class",
    "x y",
    "a.b[0]",
    "é",
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(a, b, marks=slow_unless(AWKWARD[0] in (a, b)))
        for a, b in product(AWKWARD, repeat=2)
    ],
)
def test_awkward_names(first: str, second: str) -> None:
    """Names that the text uses itself, or that Python does not take."""
    recorder = Recorder(first)
    x = recorder.input(Type.parse("f32[?S,2]"), first)
    y = recorder.input(Type.parse("f32[?S,2]"), second)
    with interpreter(recorder):
        z = ptir.reshape(x * math.inf - y, shape=(dim("S") * 2,))
    program = recorder.finish([z])
    assert_round_trip(program)
    assert str(retrace(str(program))) == str(program)


@pytest.mark.parametrize("symbol", ["v0", "v1", "region0", "f", "x0"])
def test_a_symbol_that_is_called_like_a_value(symbol: str) -> None:
    def function(x: Tensor) -> Tensor:
        doubled = ptir.concat((x, x))
        return ptir.broadcast_to(doubled, shape=(3, dim(symbol) * 2))

    read = assert_round_trip(record(function, f"f32[?{symbol}]"))
    (result,) = ReferencePlan(read).run((np.ones(4, np.float32),), {symbol: 4})
    assert result.shape == (3, 8)


def test_a_program_that_was_read_computes_the_same() -> None:
    program = record(lambda x: ptir.gelu(x[:, 1:] * 2.0).sum(axis=-1), "f32[?S,5]")
    x: Array = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    results = [ReferencePlan(p).run((x,), {"S": 3})[0] for p in (program, parse(str(program)))]
    assert same_bits(*results)


HEAD = "# ptir.v0.4\nfrom gptrs.ptir import ops as ptir\n"


def body(*lines: str, params: str = "x: 'f32[2,3]'") -> str:
    """A text with ``lines`` from line 4."""
    return "\n".join([HEAD + f"def f({params}):", *(f"    {line}" for line in lines), ""])


RETURN = "return x"
HOSTILE = {
    "exec": body('v0 = exec(\'open("escaped", "w")\')', RETURN),
    "eval in an operand": body("v0 = ptir.exp(eval('x'))", RETURN),
    "import": HEAD + "import os\n",
    "import from": HEAD + "from os import system\n",
    "import of more": "# ptir.v0.4\nfrom gptrs import ptir, tree\n",
    "import by another name": "# ptir.v0.4\nfrom gptrs import ptir as np\n",
    "import inside": body("import os", RETURN),
    "dunder import": body("v0 = __import__('os')", RETURN),
    "attribute of a value": body("v0 = ptir.exp(x.__class__)", RETURN),
    "method of a value": body("v0 = x.numpy()", RETURN),
    "attribute of ptir": body("v0 = ptir.jit(x)", RETURN),
    "private attribute": body("v0 = ptir.__dict__", RETURN),
    "deeper attribute": body("v0 = ptir.exp.numpy(x)", RETURN),
    "unknown op": body("v0 = ptir.launch(x)", RETURN),
    "unknown name": body("v0 = ptir.exp(y)", RETURN),
    "lambda": body("v0 = (lambda: x)()", RETURN),
    "comprehension": body("v0 = ptir.concat([x for _ in x])", RETURN),
    "conditional": body("v0 = ptir.exp(x if x else x)", RETURN),
    "walrus": body("v0 = ptir.exp((y := x))", RETURN),
    "f-string": body("v0 = ptir.cast(x, dtype=f'{x}')", RETURN),
    "subscript": body("v0 = ptir.exp(x[0])", RETURN),
    "starred": body("v0 = ptir.add(*x)", RETURN),
    "double starred": body("v0 = ptir.exp(x, **x)", RETURN),
    "loop": body("while True: pass", RETURN),
    "if": body("if x: pass", RETURN),
    "expression": body("ptir.exp(x)", RETURN),
    "global": body("global x", RETURN),
    "class": HEAD + "class A: pass\n",
    "decorator": HEAD + "@ptir.jit\ndef f(x: 'f32[2]'):\n    return x\n",
    "default": body(RETURN, params="x: 'f32[2]' = exec('1')"),
    "star arguments": body(RETURN, params="x: 'f32[2]', *y"),
    "keyword arguments": body(RETURN, params="x: 'f32[2]', **y"),
    "result annotation": HEAD + "def f(x: 'f32[2]') -> exec('1'):\n    return x\n",
    "computed annotation": body(RETURN, params="x: exec('1')"),
    "no annotation": body(RETURN, params="x"),
    "empty annotation": body(RETURN, params="x: ''"),
    "bad type": body(RETURN, params="x: 'f33[2]'"),
    "negative extent": body(RETURN, params="x: 'f32[-2]'"),
    "empty extent": body(RETURN, params="x: 'f32[2,,3]'"),
    "code in a type": body(RETURN, params="x: 'f32[exec(1)]'"),
    "unknown flag": body(RETURN, params="x: 'f32[2] frozen'"),
    "one name twice": body(RETURN, params="x: 'f32[2]', x: 'f32[2]'"),
    "async": HEAD + "async def f(x: 'f32[2]'):\n    return x\n",
    "two functions": body(RETURN) + "def g(x: 'f32[2]'):\n    return x\n",
    "no function": HEAD,
    "nothing returned": body("v0 = ptir.exp(x)"),
    "a bare return": body("return"),
    "a number returned": body("return 5"),
    "a line after the last": body(RETURN, "v0 = ptir.exp(x)"),
    "two results from one": body("a, b = ptir.exp(x)", RETURN),
    "assignment to an attribute": body("x.weak = ptir.exp(x)", RETURN),
    "module constant": HEAD + "y = 9*9\n" + body(RETURN),
    "types that do not fit": body("v0 = ptir.transpose(x, perm=(0, 2))", RETURN),
    "mixed dtypes": body("v0 = ptir.add(x, ptir.array('si32[1]', [1]))", RETURN),
    "absent attribute": body("v0 = ptir.reshape(x)", RETURN),
    "unknown attribute": body("v0 = ptir.exp(x, evil=1)", RETURN),
    "a number for a tensor": body("v0 = ptir.softmax(3.0)", RETURN),
    "a text for a tensor": body("v0 = ptir.exp('x')", RETURN),
    "a text for an axis": body("v0 = ptir.softmax(x, axis='x')", RETURN),
    "a text for a shape": body("v0 = ptir.reshape(x, shape='ab')", RETURN),
    "a number for a constant": body("v0 = ptir.constant(value=5)", RETURN),
    "bytes": body("v0 = ptir.exp(b'x')", RETURN),
    "too few elements": body("v0 = ptir.constant(value=ptir.array('f32[3]', [1.0]))", RETURN),
    "too large an integer": body("v0 = ptir.constant(value=ptir.array('si8[1]', [300]))", RETURN),
    "a fraction for an integer": body(
        "v0 = ptir.constant(value=ptir.array('si8[1]', [.5]))", RETURN
    ),
    "no base64": body("v0 = ptir.constant(value=ptir.array('f32[3]', '!!'))", RETURN),
    "a symbolic constant": body("v0 = ptir.constant(value=ptir.array('f32[?S]', [1.0]))", RETURN),
    "a huge power": body("v0 = ptir.mul(x, 9**9**9**9)", RETURN),
    "a huge text": body("v0 = ptir.mul(x, 'a' * 10**10)", RETURN),
    "a huge list": body("v0 = ptir.concat([x] * 1000000000)", RETURN),
    "a huge shift": body("v0 = ptir.mul(x, 1 << 100000000000)", RETURN),
    "a huge power in a type": body(RETURN, params="x: 'f32[((((9**15)**15)**15)**15)**15]'"),
    "a huge polynomial": body(RETURN, params="x: 'f32[((((?A+?B+1)**15)**15)**15)**15]'"),
    "a huge number": body(RETURN, params="x: 'f32[(((9*?A)**15)**15)**15]'"),
    "a syntax error": body("v0 = (", RETURN),
    "null bytes": HEAD + "x\0\n",
    "many brackets": body("v0 = ptir.exp(" + "(" * 5000 + "x" + ")" * 5000 + ")", RETURN),
    "many signs": body("v0 = ptir.mul(x, " + "-" * 30000 + "1)", RETURN),
    "many terms": body("v0 = ptir.mul(x, 1" + " + 1" * 30000 + ")", RETURN),
    "many calls": body("v0 = " + "ptir.exp(" * 90 + "y" + ")" * 90, RETURN),
    "deep lists": body("v0 = ptir.concat(" + "[" * 150 + "y" + "]" * 150 + ")", RETURN),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_text(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParseError) as raised:
        parse(HOSTILE[case])
    place = f"line {raised.value.line}, column {raised.value.column}: "
    assert str(raised.value).startswith(place)
    assert len(str(raised.value)) < 1000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("first", ["", "# ptir.v0.3", "# ptir.v0.40", "import os", "# ptir.v1.0"])
def test_another_version(first: str) -> None:
    with pytest.raises(ParseError, match=r"expected '# ptir\.v0\.4'"):
        parse(body(RETURN).replace("# ptir.v0.4", first, 1))


def test_line_numbers_count_from_the_top() -> None:
    with pytest.raises(ParseError, match=r"^line 5, column 10: "):
        parse(body("v0 = ptir.exp(x)", "v1 = ptir.launch(v0)", "return v1"))


def test_array_reads_what_programs_print() -> None:
    assert array("si8[2,2]", [1, -2, 3, 4]).tolist() == [[1, -2], [3, 4]]
    assert array("i1[2]", [True, False]).tolist() == [True, False]
    assert array("ui64[1]", [2**64 - 1]).tolist() == [2**64 - 1]
    assert array("f32[]", [2]).tolist() == 2
    data = base64.b64encode(np.array([1.5, 2.5]).tobytes()).decode()
    assert array("f64[2]", data).tolist() == [1.5, 2.5]
    for type, wrong in (("i1[1]", [2]), ("ui8[1]", [-1]), ("f32[1]", ["a"]), ("f32[2]", data)):
        with pytest.raises(ParseError, match="do not fit"):
            array(type, wrong)  # pyright: ignore[reportArgumentType]


def test_parameters_are_params() -> None:
    (param,) = parse(body(RETURN, params="x: 'f32[2] parameter donated'")).params
    assert isinstance(param, Param)
    assert (param.name, param.role, param.donated) == ("x", "parameter", True)
