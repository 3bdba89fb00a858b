"""Tests of the suite that are known to fail, each with its reason."""

from __future__ import annotations

_FLOOR = (
    "floors as NumPy, Python and torch do: the quotient of an infinity is NaN, and −1 / ∞ is −1"
)
_FLOOR_CASES = (
    "(x1_i is +infinity and isfinite(x2_i) and x2_i > 0) -> +infinity",
    "(x1_i is +infinity and isfinite(x2_i) and x2_i < 0) -> -infinity",
    "(x1_i is -infinity and isfinite(x2_i) and x2_i > 0) -> -infinity",
    "(x1_i is -infinity and isfinite(x2_i) and x2_i < 0) -> +infinity",
    "(isfinite(x1_i) and x1_i > 0 and x2_i is -infinity) -> -0",
    "(isfinite(x1_i) and x1_i < 0 and x2_i is +infinity) -> -0",
)
_FLOOR_TESTS = ("test_binary[floor_divide", "test_binary[__floordiv__", "test_iop[__ifloordiv__")

DEVIATIONS: dict[str, str] = {
    **{
        f"test_special_cases.py::{test}{case}]": _FLOOR
        for test in _FLOOR_TESTS
        for case in _FLOOR_CASES
    },
    "test_special_cases.py::test_unary[tanh(real(x_i) is +infinity and isfinite(imag(x_i)) and"
    " imag(x_i) > 0) -> 1 + 0j]": "the zero has the sign of sin 2y, as in C and NumPy",
    "test_data_type_functions.py::test_broadcast_arrays": (
        "a tuple, as in NumPy and as of the edition of 2025 of the standard"
    ),
    "test_creation_functions.py::test_asarray_arrays": (
        "compiled: what a function returns does not share memory with its arguments"
    ),
}
"""The reason by the end of a test's id: ``test_file.py::test_name``, with its parameters or not."""


def reason_of(test: str, deviations: dict[str, str]) -> str:
    """Why ``test`` is known to fail; empty where it is not."""
    name = test.split("/")[-1]
    return deviations.get(name) or deviations.get(name.split("[")[0], "")
