"""Hints of dtype errors: they name the operand to change, and following them works."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as ops
from gptrs.errors import DTypeError
from gptrs.ir.types import as_dtype, common_dtype
from tests.support.marks import slow_unless

pytestmark = pytest.mark.usefixtures("strict_dtypes")  # which keeps these errors

ptir: Any = ops  # wrong on purpose

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "compare": lambda a, b: a <= b,
    "maximum": lambda a, b: ptir.maximum(b, a),
    "matmul": lambda a, b: a @ b,
    "select": lambda a, b: ptir.select(a == a, b, a),
    "by name": lambda a, b: ptir.add(y=a, x=b),
}
DTYPES = ("i1", "ui8", "si32", "si64", "f16", "bf16", "f32", "f64")


def mended(call: Callable[[Any, Any], Any], a: Any, b: Any) -> tuple[str, str, Any]:
    """What the hint of a wrong call says: which operand, which dtype, and both then."""
    with pytest.raises(DTypeError) as found:
        ptir.jit(call)(a, b)
    said = re.fullmatch(r"ptir\.cast\((\w+), dtype='(\w+)'\)(, where .*)?", found.value.fix)
    assert said, found.value.fix
    name, dtype = said[1], said[2]
    given = {"a": a, "b": b} if name in "ab" else {}
    changed = {n: ptir.cast(v, dtype=dtype) if n == name else v for n, v in given.items()}
    return name, dtype, changed


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(*pair, marks=slow_unless(pair in (("si32", "f32"), ("bf16", "i1"))))
        for pair in permutations(DTYPES, 2)
    ],
)
def test_what_a_hint_says_makes_the_dtypes_one(name: str, first: str, second: str) -> None:
    a, b = (ptir.tensor([1, 2, 3]).astype(dtype) for dtype in (first, second))
    operand, dtype, changed = mended(CALLS[name], a, b)
    assert str({"a": a, "b": b}[operand].dtype) != dtype, "it is not what it was"
    try:
        ptir.jit(CALLS[name])(**changed)
    except DTypeError as error:  # the op has no meaning for that dtype
        assert "operands have dtypes" not in error.problem  # noqa: PT017
    kinds = {as_dtype(first).kind, as_dtype(second).kind}
    if len(kinds & {"float"}) == 1 and len(kinds) == 2:
        assert as_dtype(dtype).is_float, "no fraction is cut off"


F32, F16, I64 = (ptir.tensor([1, 2, 3]).astype(dtype) for dtype in ("f32", "f16", "si64"))


HINTS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda a, b: a + 2.5, "ptir.cast(a, dtype='f32')"),
    (lambda a, b: ptir.exp(a), "ptir.cast(a, dtype='f32')"),
    (
        lambda a, b: ptir.softmax(a * 2 + a),
        "ptir.cast(x, dtype='f32'), where x is si64[3] (res",
    ),
    (lambda a, b: ptir.softmax(a), "ptir.cast(a, dtype='f32')"),
    (lambda a, b: b + a * 2, "ptir.cast(y, dtype='f32'), where y is si64[3] (result of mul"),
    (lambda a, b: ptir.layer_norm(b, a, b), "ptir.cast(a, dtype='f32')"),
    (lambda a, b: ptir.concat([b, b, a]), "ptir.cast(a, dtype='f32')"),
    (lambda a, b: ptir.reduce_sum(a, out_dtype=as_dtype("f32")), "ptir.cast(a, dtype='f32')"),
    (lambda a, b: ptir.gather(b, b, axis=0), "ptir.cast(b, dtype='si32')"),
    (lambda a, b: b + True, "write 1"),
    (lambda a, b: a.astype("ui8") + 300, "ptir.cast(x, dtype='si32'), where x is ui8[3] (res"),
    (lambda a, b: a.astype("ui8") + 2**40, "ptir.cast(x, dtype='si64'), where x is ui8[3]"),
    (lambda a, b: a + 2**80, "give a number of at most 64 bits"),
    (
        lambda a, b: a / a,
        "a // a divides integers; ptir.cast(a, dtype='f32') / ptir.cast(a, dt",
    ),
    (lambda a, b: a / b, "a // b divides integers; ptir.cast(a, dtype='f32') / b divides as"),
    (lambda a, b: 2 / a, "2 // a divides integers; 2 / ptir.cast(a, dtype='f32') divides as f"),
    (lambda a, b: a + b, "ptir.cast(a, dtype='f32')"),
    (lambda a, b: b + np.arange(3), "ptir.cast(y, dtype='f32'), where y is si64[3]"),
]


@pytest.mark.parametrize(("call", "fix"), HINTS)
def test_hints(call: Callable[[Any, Any], Any], fix: str) -> None:
    with pytest.raises(DTypeError) as found:
        ptir.jit(call)(I64, F32)
    assert found.value.fix.startswith(fix)


def test_branches_say_which_changes() -> None:
    def branches(a: Any, b: Any) -> Any:
        return ptir.cond(a[0] > 0, lambda: a, lambda: b)

    for a, b, expected in (
        (I64, F32, "in then, x.astype('f32')"),
        (F32, I64, "in otherwise, x.astype('f32')"),
    ):
        with pytest.raises(DTypeError) as found:
            ptir.jit(branches)(a, b)
        assert found.value.fix.endswith(expected)


def test_without_a_trace_operands_have_the_names_of_the_op() -> None:
    with pytest.raises(DTypeError) as found:
        _ = F16 + I64
    assert found.value.fix == "ptir.cast(y, dtype='f16'), where y is si64[3]"


def test_the_common_dtype() -> None:
    for given, expected in (
        ("si64 f32", "f32"),
        ("f32 f16", "f32"),
        ("f16 f32 f16", "f16"),
        ("ui8 si32", "si32"),
        ("si32 si32 f16", "f16"),
        ("i1 ui8", "ui8"),
        ("f64 cf32", "cf32"),
    ):
        assert str(common_dtype([as_dtype(name) for name in given.split()])) == expected
