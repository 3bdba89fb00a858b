"""x[key], x[key] = v and x.at[key] against NumPy: a table and random keys, traced and eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import (
    ArgumentError,
    DTypeError,
    ElementError,
    PositionError,
    ShapeError,
    TraceError,
)
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ALL = slice(None)
I, J = np.array([2, -3]), np.array([[1], [2]])  # noqa: E741

KEYS: list[Any] = [
    *[1, -1, (1, 2), (ALL, 2), (1, 2, 3), (0, ..., -1), (), ..., (..., None), np.int64(1)],
    *[slice(1, None), slice(None, -1), slice(5, 9), slice(2, 1), slice(-9, 2), slice(0, 3, 2)],
    *[slice(None, None, -1), (ALL, ALL, slice(None, None, -1)), slice(None, None, -2)],
    *[(slice(None, None, -2), ..., slice(3, 0, -1)), (slice(0, 0, -1),), (None, ALL, None)],
    *[I, (ALL, I), (I, I), (I, ALL, I), (0, ALL, I), (ALL, 0, I), (0, I), (I, 0), (I, ALL, 0)],
    *[(ALL, I, J), (I, J), (I, ALL, J), (I, None, J), (None, I, J), (ALL, None, I), (J, I, J)],
    *[(ALL, I, ..., J), (I, ..., J), (..., I, J), (I, ...), (ALL, None, 0, I), (slice(2), I)],
    *[(slice(None, None, -1), I), (slice(1), I, slice(None, None, -2)), (I, slice(1, 3), J)],
    *[[0, 1], ([0, 1], [1, 2]), (ALL, []), [[0, 1], [2, 0]], (ALL, [True, False, True, False])],
    *[np.array(-1), (ALL, np.array(-1)), (np.array(1), ALL, np.array(2)), (np.array(1), I)],
    *[X > 5, X[:, :, 0] > 20, (ALL, X[0] > 7), (I[:1], X[0] > 7), X > 100],
    *[np.array([2, 1], np.uint8), np.array([-1], np.int8)],
    *[True, False, np.bool_(True), np.array(False)],
]


def same(found: Any, expected: Array) -> None:
    assert isinstance(found, Tensor)
    np.testing.assert_array_equal(found.numpy(), expected, strict=True)


def values(shape: tuple[int, ...]) -> Array:
    return -1 - np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def with_arrays(key: Any, arrays: Any) -> Any:
    """``key`` with the next of ``arrays`` in the place of each integer array."""
    parts = key if isinstance(key, tuple) else (key,)
    left = iter(arrays)
    return tuple(next(left) if is_index(part) else part for part in parts)


def is_index(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype != bool


def written(key: Any, new: Any) -> Array:
    result = X.copy()
    result[key] = new
    return result


def write(x: Any, key: Any, new: Any) -> Any:
    x[key] = new
    return x


def check_known(key: Any, *, traced: bool) -> None:
    """A key that is known while tracing."""
    expected = np.asarray(X[key])
    new = values(expected.shape)
    read, replace = (lambda x: x[key]), (lambda x, new: write(x, key, new))
    if traced:
        read, replace = ptir.jit(read), ptir.jit(replace)
    before = ptir.tensor(X)
    same(read(before), expected)
    same(replace(before.copy(), new), written(key, new))
    same(before, X)


def check_traced(key: Any) -> None:
    """A key whose integer arrays are arguments."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if is_index(part)]
    expected = np.asarray(X[key])
    new = values(expected.shape)
    same(ptir.jit(lambda x, a: x[with_arrays(key, a)])(X, arrays), expected)
    replace = ptir.jit(lambda x, a, new: x.at[with_arrays(key, a)].set(new))
    same(replace(X, arrays, new), written(key, new))


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key(key: Any) -> None:
    check_known(key, traced=False)
    check_known(key, traced=True)
    if any(map(is_index, key if isinstance(key, tuple) else (key,))):
        check_traced(key)


def random_slice(random: np.random.Generator) -> slice:
    ends = [None if random.random() < 0.4 else int(random.integers(-6, 7)) for _ in range(2)]
    return slice(ends[0], ends[1], int(random.choice([1, 1, 2, 3, -1, -2])))


def random_key(random: np.random.Generator) -> tuple[Any, ...]:
    """A key of X that NumPy takes, without an element twice."""
    kinds = random.choice(["int", "slice", "slice", "array", "new", "..."], random.integers(1, 6))
    shape = [(), (2,), (1, 2), (2, 1)][random.integers(4)]
    parts: list[Any] = []
    axis = 0
    for kind in kinds:
        if kind == "new":
            parts.append(None)
        elif kind == "...":
            parts += [] if any(part is Ellipsis for part in parts) else [Ellipsis]
        elif axis < 3:
            if kind == "int":
                parts.append(int(random.integers(-3, 3)))
            elif kind == "array":
                count = int(np.prod(shape))
                # Distinct places, so that the order of writes has no meaning.
                places = random.permutation(3)[:count].reshape(shape)
                parts.append(places - random.integers(0, 2) * 3)
            else:
                parts.append(random_slice(random))
            axis += 1
    return tuple(parts)


@pytest.mark.parametrize("seed", range(8))
def test_random_keys(seed: int) -> None:
    random = np.random.default_rng(seed)
    for number in range(50):
        key = random_key(random)
        check_known(key, traced=False)
        if number < 3:
            check_known(key, traced=True)
            check_traced(key)


def test_a_traced_integer_counts_from_the_end_too() -> None:
    read = ptir.jit(lambda x, i: (x[i], x[:, i], x[i, :, i]))
    for i in (0, 2, -1, -3):
        for found, expected in zip(read(X, i), (X[i], X[:, i], X[i, :, i]), strict=True):
            same(found, expected)
    for function in (lambda x, i: x[i], lambda x, i: write(x, (0, i), 1.0)):
        with pytest.raises(ElementError, match="index 7 is out of range for axis"):
            ptir.jit(function)(X, 7)


def test_a_plain_slice_is_a_slice() -> None:
    text = str(ptir.jit(lambda x: x[1:, ::2, 0]).program(X))
    assert [text.count(word) for word in ("= ptir.", "ptir.slice(", "ptir.reshape(")] == [2, 1, 1]
    assert "take(" in str(ptir.jit(lambda x, i: x[i]).program(X, I.astype(np.uint8)))


def test_symbolic_sizes() -> None:
    rows = ptir.jit(dynamic={"x": {0: "N"}})
    for count in (1, 3):
        x = X[:count]
        same(rows(lambda x: x[::-1, 1:])(x), x[::-1, 1:])
        same(rows(lambda x: x[-1:, :, [1, -1]])(x), x[-1:, :, [1, -1]])
        same(rows(lambda x, i: x[:, i, i])(x, I), x[:, I, I])
        same(rows(lambda x, i: x[i, 0])(x, np.array([-1, 0])), x[np.array([-1, 0]), 0])
        expected = x.copy()
        expected[:, 1] = 7
        same(rows(lambda x: x.at[:, 1].set(7))(x), expected)


@pytest.mark.parametrize("traced", [False, True])
def test_updates(traced: bool) -> None:
    jit = ptir.jit if traced else (lambda function: lambda x: function(ptir.tensor(x)))
    x = X[0, 0] + 2
    twice = [0, 0, -1]
    v = [3.0, 4.0, 5.0]
    same(jit(lambda x: x.at[twice].add(v))(x), np.array([9, 3, 4, 5, 11], np.float32))
    same(jit(lambda x: x.at[twice].subtract(v))(x), np.array([-5, 3, 4, 5, 1], np.float32))
    same(jit(lambda x: x.at[twice].multiply(v))(x), np.array([24, 3, 4, 5, 30], np.float32))
    same(jit(lambda x: x.at[twice].mul(v))(x), np.array([24, 3, 4, 5, 30], np.float32))
    same(jit(lambda x: x.at[twice].divide(2.0))(x), np.array([0.5, 3, 4, 5, 3], np.float32))
    same(jit(lambda x: x.at[twice].min(v))(x), np.array([2, 3, 4, 5, 5], np.float32))
    same(jit(lambda x: x.at[twice].max(v))(x), np.array([4, 3, 4, 5, 6], np.float32))
    same(jit(lambda x: x.at[twice].set(v))(x), np.array([4, 3, 4, 5, 5], np.float32))
    same(jit(lambda x: x.at[twice].apply(lambda y: -y))(x), np.array([-2, 3, 4, 5, -6], np.float32))
    same(jit(lambda x: x.at[twice].power(2))(x), np.array([16, 3, 4, 5, 36], np.float32))
    same(jit(lambda x: x.at[1:3].power(2))(x), np.array([2, 9, 16, 5, 6], np.float32))
    same(jit(lambda x: x.at[::2].add(1))(x), np.array([3, 3, 5, 5, 7], np.float32))
    same(jit(lambda x: x.at[twice].get())(x), x[twice])


def test_a_traced_mask() -> None:
    @ptir.jit
    def masked(x: Any) -> Any:
        x[x > 40] = -1.0
        x[x[:, 0, 0] == 0] = [1, 2, 3, 4, 5]
        x[1, x[1, :, 0] > 30, ::2] = 9
        return x.at[x < 0].multiply(3).at[x > 8].apply(lambda y: y + 0.5)

    expected = X.copy()
    expected[expected > 40] = -1
    expected[expected[:, 0, 0] == 0] = [1, 2, 3, 4, 5]
    expected[1, expected[1, :, 0] > 30, ::2] = 9
    high = expected > 8
    expected[expected < 0] *= 3
    expected[high] += 0.5
    same(masked(X), expected)


def assignments(x: Any, i: Any) -> Any:
    y = x
    x[0] = 1
    x[:, 1] += 10
    x[i, 0] *= 3
    x[[0, 0], [0, 1], 2] += 1
    x += 1
    x -= x[0, 0, 0]
    x[::2, ::-2] = x[0, 0]
    x[1] = [[1.7]]
    x[..., 4] = y[..., 3]
    return x, y


def test_assignments_change_the_object_and_no_array() -> None:
    expected = assignments(X.copy(), I)[0]
    traced = ptir.jit(assignments)
    before = ptir.tensor(X)
    with ptir.eager():
        eager = traced(before, I)
    for pair in (traced(before, I), eager, assignments(before.copy(), I)):
        same(pair[0], expected)
        same(pair[1], expected)
    same(before, X)


def test_a_value_takes_the_dtype_of_the_array() -> None:
    def write_floats(x: Any) -> Any:
        x[0] = 2.7
        x[1:] = np.array([3.9, -4.2, 5.0])
        x += 1
        return x

    same(ptir.jit(write_floats)(np.zeros(4, np.int32)), np.array([3, 4, -3, 6], np.int32))
    wider = ptir.jit(lambda x: write_sum(x, 0.5))(np.zeros(2, np.int32))
    assert wider[0].dtype == "f32"  # no array of integers could have it
    same(wider[1], np.zeros(2, np.int32))


def write_sum(x: Any, v: Any) -> Any:
    y = x
    x += v
    return x, y


def test_a_captured_tensor_that_changes() -> None:
    state = ptir.tensor(np.zeros(3, np.float32))
    add = ptir.jit(lambda x: x + state)
    for n in range(6):
        same(add(np.ones(3, np.float32)), np.full(3, 1 + n, np.float32))
        state += 1
    state[1] = -1
    same(add(np.ones(3, np.float32)), np.array([7, 0, 7], np.float32))


def test_a_function_within_a_function_has_its_own_arguments() -> None:
    inner = ptir.jit(lambda x: write(x, 0, 9.0))
    outer = ptir.jit(lambda x: (inner(x), x))
    new, old = outer(X)
    same(new, written(0, 9))
    same(old, X)


def test_writes_in_a_loop() -> None:
    def step(state: Any, y: Any) -> Any:
        i, kept = state
        kept[i] = y
        i += 1
        return (i, kept), kept[0]

    def collect(x: Any, ys: Any) -> Any:
        return ptir.scan(step, (0, x), ys)[0][1], x

    x, ys = np.zeros(4, np.float32), np.arange(1, 5, dtype=np.float32)
    function = ptir.jit(collect)
    with ptir.eager():
        eager = function(x, ys)
    for new, old in (function(x, ys), eager):
        same(new, ys)
        same(old, x)


CAPTURED = ptir.tensor(X)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: x[x > 0], TraceError, r"ptir.where\(mask, x, 0\).*ptir.nonzero\(mask, size=n\)"),
        (lambda x: x[5], PositionError, "index 5 is out of range for axis 0 of extent 3"),
        (lambda x: x[[1, 5]], ElementError, "index 5 is out of range for axis 0 of extent 3"),
        (lambda x: x[0, [0], [7]], ElementError, "index 7 is out of range for axis 1"),
        (lambda x: x[0, 0, 0, 0], IndexError, "4 indices, x has 3 axes"),
        (lambda x: x[..., ...], ArgumentError, "more than one `...`"),
        (lambda x: x[0.5], ArgumentError, "indexed with 0.5, expected integers"),
        (lambda x: x[x[0, 0]], DTypeError, r"f32\[5\], expected integers or bools"),
        (lambda x: x[True, 0], ArgumentError, r"x\[None\] adds an axis"),
        (lambda x: x[::0], ArgumentError, "the slice of axis 0 has step 0"),
        (lambda x: x[: x[0, 0, 0].astype("si64")], TraceError, "slice ends at a traced value"),
        (lambda x: x[x[0] > 0], IndexError, r"a mask of shape \[4,5\] does not fit axes 0 to 1"),
        (lambda x: x[[0, 1], [0, 1, 2]], ShapeError, "do not broadcast"),
        (lambda x: write(x, x > 0, x), ArgumentError, r"ptir.where\(mask, v, x\)"),
        (lambda x: write(x, 0, [1.0, 2.0]), ShapeError, "do not broadcast"),
        (lambda x: write(x, 0, 1j), DTypeError, "imaginary part"),
        (lambda x: write(CAPTURED, 0, x[0]), TraceError, "from outside of the traced function"),
        (
            lambda x: ptir.cond(x[0, 0, 0] > 0, lambda: write(x, 0, 1.0), lambda: x),
            TraceError,
            "of the enclosing function is written",
        ),
    ],
)
def test_an_error(function: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        ptir.jit(function)(X)
    assert "test_indexing.py" in str(raised.value)
    same(CAPTURED, X)


def test_one_traced_bool_as_the_key() -> None:
    for holds in (True, False):
        expected = X * 2 if holds else X
        same(ptir.jit(lambda x, mask: x.at[mask].multiply(2))(X, np.array(holds)), expected)


def test_a_weight_is_not_written() -> None:
    weight = ptir.Parameter(X)
    with pytest.raises(TraceError, match="a weight of a model cannot be written into"):
        weight[0] = 1
    same(ptir.tensor(weight.numpy()), X)
