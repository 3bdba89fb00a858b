"""Remedies for retraces: one for each form of a reason."""

from __future__ import annotations

import inspect

import pytest

from gptrs.jit.advice import advice

CASES = [
    ("the first call", ""),
    ("GPTRS_PRECISE: False → True", ""),
    ("backend: 'faer' → 'reference'", ""),
    ("argument x: axis 0: 4 → 5", "make the axis symbolic: ptir.jit(dynamic={'x': {0: 'S'}})"),
    (
        "argument x: axis 0: 4 → 5, axis 2: 7 → 8",
        "make the axes symbolic: ptir.jit(dynamic={'x': {0: 'S', 2: 'T'}})",
    ),
    (
        "argument x: axis 0: 4 → 5; argument cache.keys[0]: axis 1: 4 → 5",
        "make the axes symbolic: ptir.jit(dynamic={'x': {0: 'S'}, 'cache.keys[0]': {1: 'S'}})",
    ),
    (
        "argument cache['k']: axis 0: 4 → 5",
        "make the axis symbolic: ptir.jit(dynamic={\"cache['k']\": {0: 'S'}})",
    ),
    ("argument x: axis 0: ?N → 0", "pass changing values as arrays"),
    ("argument x: f32[4,3] → f64[2,3]", "convert x to f32 before the call"),
    ("argument x: f32[3] → f32[2,3]", ""),
    ("argument x: a Python number → an array", "pass x as an array, or as a number, in every call"),
    (
        "argument x: tuple of 2 → tuple of 3",
        "stack the elements of x into one array, or bring them to one number",
    ),
    ("argument flag: True → False", "pass changing values as arrays"),
    (
        "static argument n: 1 → 2",
        "trace n: take it out of the static arguments, unless Python needs its value",
    ),
    ("global scale: 1 → 2", "pass what changes as an argument"),
    ("closure scale: 1 → 2; closure other: 1 → 2", "pass what changes as an argument"),
    ("class Model.scale: 1 → 2", "pass what changes as an argument"),
    ("code of f: defined again at a.py:3", "define functions once, and not before each call"),
]


@pytest.mark.parametrize(("reason", "remedy"), CASES)
def test_the_remedy_of_a_reason(reason: str, remedy: str) -> None:
    def function(x: object, cache: object, flag: bool, n: int) -> None: ...

    assert advice(reason, inspect.signature(function)) == remedy
