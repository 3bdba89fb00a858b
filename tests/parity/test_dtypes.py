"""Result dtypes against torch's: pairs of dtypes, numbers beside tensors, kinds of functions."""

# torch's functions are only partly typed, and traced functions take any array.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from gptrs import ptir as namespace
from gptrs.errors import DTypeError
from gptrs.ir.promotion import promoted_dtype, result_dtype
from gptrs.ir.types import DTYPES, DType
from tests.support.lazy_torch import torch

ptir: Any = namespace
THEIRS = {
    "i1": "bool",
    "ui8": "uint8",
    "si8": "int8",
    "si16": "int16",
    "si32": "int32",
    "si64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "cf32": "complex64",
    "cf64": "complex128",
}
UNSIGNED = {"ui16": "uint16", "ui32": "uint32", "ui64": "uint64"}
INTEGERS = ("i1", "ui8", "si8", "si16", "si32", "si64")
FLOATS = ("f16", "bf16", "f32", "f64")


def theirs(name: str) -> Any:
    return getattr(torch, (THEIRS | UNSIGNED)[name])


def ours(dtype: Any) -> DType:
    name = str(dtype).removeprefix("torch.")
    return DTYPES[next(n for n, t in (THEIRS | UNSIGNED).items() if t == name)]


@pytest.mark.parametrize("name", THEIRS)
def test_pairs(name: str) -> None:
    for other in THEIRS:
        expected = ours(torch.promote_types(theirs(name), theirs(other)))
        assert promoted_dtype((DTYPES[name], DTYPES[other])) is expected, other


def test_pairs_with_wide_unsigned_integers() -> None:
    """torch promotes those of two unsigned integers and of floats alone."""
    for name, other in product(UNSIGNED, (*UNSIGNED, "ui8", "i1", *FLOATS, "cf32", "cf64")):
        try:
            expected = ours(torch.promote_types(theirs(name), theirs(other)))
        except RuntimeError:
            continue
        assert promoted_dtype((DTYPES[name], DTYPES[other])) is expected, (name, other)


@pytest.mark.parametrize("number", [True, 2, 0.5, 1j], ids=str)
@pytest.mark.parametrize("name", THEIRS)
def test_numbers(name: str, number: Any) -> None:
    if name in ("f16", "bf16") and isinstance(number, complex):
        return  # complex numbers of two halves, which are no dtype here
    expected = ours(torch.result_type(torch.ones(2, dtype=theirs(name)), number))
    assert result_dtype((DTYPES[name], number)) is expected


KINDS: dict[str, str] = {
    "floats of integers": """
        acos acosh asin asinh atan atanh cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
        lgamma log log10 log1p log2 logit rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan
        tanh
    """,
    "the same dtype": """
        amax amin clone cummax_values diag fliplr flipud max min neg_of_numbers ravel relu roll_1
        sort_values t tril triu
    """,
    "the same dtype of numbers": "abs ceil floor round sign square trunc",
    "booleans": "all any isfinite isinf isnan isneginf isposinf logical_not signbit",
    "wide sums": "cumprod_0 cumsum_0 nansum prod sum trace",
    "positions": "argmax argmin argsort count_nonzero",
    "bits of integers": "bitwise_not",
}
NUMPYS: dict[str, dict[str, str]] = {
    "sign": {"i1": "an error"},
    "square": {"i1": "i1"},
    "all": {"ui8": "i1"},
    "any": {"ui8": "i1"},
    **{name: {"ui8": "ui64"} for name in KINDS["wide sums"].split()},
}
"""Where ours have NumPy's dtype and not torch's."""
SPECIAL: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cummax_values": (lambda x: ptir.cummax(x, axis=0), lambda x: torch.cummax(x, 0).values),
    "neg_of_numbers": (lambda x: -x, lambda x: -x),
    "roll_1": (lambda x: ptir.roll(x, 1), lambda x: torch.roll(x, 1)),
    "sort_values": (lambda x: ptir.sort(x), lambda x: torch.sort(x).values),
    "cumprod_0": (lambda x: ptir.cumprod(x, axis=0), lambda x: torch.cumprod(x, 0)),
    "cumsum_0": (lambda x: ptir.cumsum(x, axis=0), lambda x: torch.cumsum(x, 0)),
    "relu": (ptir.nn.relu, torch.relu),
}
PAIRED = {
    "the common dtype": """
        add bitwise_and bitwise_or bitwise_xor floor_divide fmax fmin fmod gcd lcm maximum minimum
        multiply pow remainder subtract where
    """,
    "floats": "atan2 copysign divide hypot logaddexp logaddexp2 true_divide xlogy",
    "booleans": """
        eq ge greater greater_equal gt isclose le less less_equal logical_and logical_or
        logical_xor lt ne not_equal
    """,
}


def functions(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return SPECIAL[name] if name in SPECIAL else (getattr(ptir, name), getattr(torch, name))


def dtypes(call: Callable[..., Any], other: Callable[..., Any], *names: str) -> tuple[Any, Any]:
    """The result dtypes of both; None and None where torch refuses."""
    arrays = [torch.ones((3, 3)).to(theirs(name)) for name in names]
    try:
        expected = ours(other(*arrays).dtype)
    except (RuntimeError, TypeError, NotImplementedError):
        return None, None
    return call(*(ptir.ones((3, 3), dtype=name) for name in names)).dtype, expected


@pytest.mark.parametrize("name", " ".join(KINDS.values()).split())
def test_functions(name: str) -> None:
    call, other = functions(name)
    numpys = NUMPYS.get(name, {})
    found = {d: dtypes(call, other, d) for d in (*INTEGERS, *FLOATS) if d not in numpys}
    assert {d: a for d, (a, _) in found.items()} == {d: b for d, (_, b) in found.items()}
    assert any(b for _, b in found.values())
    for dtype, expected in numpys.items():
        x = ptir.ones((3, 3), dtype=dtype)
        if expected == "an error":
            with pytest.raises(DTypeError):
                call(x)
        else:
            assert call(x).dtype == expected
            assert ours(other(torch.ones((3, 3)).to(theirs(dtype))).dtype) != expected


@pytest.mark.parametrize("name", " ".join(PAIRED.values()).split())
def test_functions_of_two(name: str) -> None:
    def condition(m: Any) -> Any:
        return lambda a, b: m.where(a > 0, a, b)

    call, other = (condition(ptir), condition(torch)) if name == "where" else functions(name)
    pairs = product((*INTEGERS, "f16", "f32", "f64"), repeat=2)
    found = {pair: dtypes(call, other, *pair) for pair in pairs}
    assert {p: a for p, (a, _) in found.items()} == {p: b for p, (_, b) in found.items()}
    assert any(b for _, b in found.values())
