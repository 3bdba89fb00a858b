"""Products and einsum against NumPy, traced and eager; the order of contractions."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, ShapeError
from gptrs.ir.types import Array
from gptrs.numpy_api.contraction_order import Labels, Path, greedy_path, optimal_path
from tests.numpy_api.test_against_numpy import Call, arrays_of, calls, compare, with_arrays

RANDOM = np.random.default_rng(1)


def _array(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


A, B, V = _array(3, 4), _array(4, 5), _array(4)
BATCH = _array(2, 3, 4)
SQUARE, CUBE = _array(4, 4), _array(2, 3, 3)
I = np.arange(12).reshape(3, 4)  # noqa: E741
M = A > 0

TABLE: list[Call] = [
    *calls("matmul dot", A, B),
    *calls("matmul dot inner vdot", V, V),
    *calls("matmul dot inner", A, V),
    *calls("matmul dot", V, B),
    *calls("matmul", BATCH, B),
    *calls("matmul", V, np.swapaxes(BATCH, 1, 2)),
    *calls("matmul dot", I, B),
    *calls("dot", BATCH, _array(5, 4, 2)),
    *calls("inner", BATCH, A),
    *calls("dot inner", np.float32(2.0), A),
    *calls("vdot", A, B[:, :3].T),
    *calls("outer kron", V, A),
    *calls("kron", BATCH, V),
    *calls("kron", A, I),
    *calls("outer", I, V),
    *calls("tensordot", BATCH, _array(3, 4, 2)),
    Call("tensordot", (BATCH, _array(4, 3, 2)), {"axes": ((1, 2), (1, 0))}),
    Call("tensordot", (BATCH, A), {"axes": (2, 1)}),
    Call("tensordot", (V, V), {"axes": 0}),
    Call("tensordot", (BATCH, A), {"axes": (-1, -1)}),
    *calls("cross", _array(2, 3), _array(3)),
    Call("cross", (_array(3, 2), _array(3, 2)), {"axis": 0}),
    *calls("diagonal trace", BATCH),
    *calls("diagonal trace", I),
    *calls("diagonal trace", SQUARE, 1),
    *calls("diagonal trace", A, -2),
    *calls("diagonal trace", A, 9),
    Call("diagonal", (BATCH,), {"offset": -1, "axis1": 2, "axis2": 0}),
    *calls("matrix_transpose", BATCH),
    *calls("diag", A),
    *calls("diag", V),
    *calls("diag", I[0], -2),
    *calls("diag", M[0], 1),
]

EINSUMS: list[tuple[Any, ...]] = [
    ("ij,jk", A, B),
    ("ij,jk->ki", A, B),
    ("ij->ji", A),
    ("ij", A),
    ("ba", A),
    ("ij->", A),
    ("ij->i", A),
    ("ii", SQUARE),
    ("ii->i", SQUARE),
    ("iii->i", _array(3, 3, 3)),
    ("iij,iij->j", _array(3, 3, 4), _array(3, 3, 4)),
    ("bij,bij->b", BATCH, BATCH),
    ("bij,jk->bik", BATCH, B),
    ("...ij,...jk->...ik", BATCH, _array(1, 4, 2)),
    ("...ij,jk", BATCH, B),
    ("i...->...", BATCH),
    ("...ii->...i", CUBE),
    ("...ii", CUBE),
    ("i,j", V, V),
    ("i,i->i", V, V),
    ("i,", V, np.float32(2)),
    ("ij,ij", np.ones((1, 4), np.float32), A),
    ("ij,jk,kl->il", A, B, _array(5, 2)),
    ("ij,jk,kl,lm,i->m", A, B, _array(5, 2), _array(2, 6), _array(3)),
    ("ij,kl,mn->", A, B, SQUARE),
    ("bhqd,bhkd->bhqk", _array(2, 2, 3, 4), _array(2, 2, 5, 4)),
    (" ij , jk -> ik ", A, B),
    ("ij,jk->ik", I, I.T),
    ("ij,jk->ik", M, M.T),
    ("ij,jk->ik", I, B),
    ("aB,Bc", A, B),
    ("i...,i...->...", BATCH, BATCH),
    (A, [0, 1], B, [1, 2]),
    (A, [0, 1], B, [1, 2], [2, 0]),
    (BATCH, [..., 1], V, [1]),
    (BATCH, [..., 1], V, [1], [...]),
    ("ij,jk->ik", np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32)),
]


def _check(call: Call, function: Callable[..., Any], expected: Any) -> None:
    compare(with_arrays(call, function, arrays_of(call)), expected)
    traced = ptir.jit(lambda arrays: with_arrays(call, function, arrays))
    compare(traced(arrays_of(call)), expected)


@pytest.mark.parametrize("call", TABLE, ids=str)
def test_a_product(call: Call) -> None:
    expected = getattr(np, call.name)(*call.args, **call.kwargs)
    _check(call, getattr(ptir, call.name), expected)


@pytest.mark.parametrize(
    "args", EINSUMS, ids=lambda args: str(args[0] if isinstance(args[0], str) else args[1])
)
def test_einsum(args: tuple[Any, ...]) -> None:
    call = Call("einsum", args, {})
    expected = np.einsum(*args)
    _check(call, ptir.einsum, expected)
    compare(ptir.einsum(*args, optimize=False), expected)
    compare(ptir.einsum(*args, optimize="greedy"), expected)


def test_vecdot_broadcasts() -> None:
    expected = np.einsum("bij,ij->bi", BATCH, A)
    compare(ptir.vecdot(BATCH, A), expected)
    compare(ptir.vecdot(BATCH, A[:, None, :].transpose(1, 0, 2), axis=2), expected)
    compare(ptir.vecdot(BATCH, BATCH, axis=0), (BATCH * BATCH).sum(0))


def test_products_of_a_vector_and_a_matrix() -> None:
    """NumPy has these since 2.2."""
    x, y = _array(2, 1, 3, 4), _array(5, 4)
    compare(ptir.matvec(x, y), np.einsum("...ij,...j->...i", x, y))
    z = _array(2, 3) + 1j * _array(2, 3)
    compare(ptir.vecmat(z, x[:, 0]), np.einsum("...i,...ij->...j", z.conj(), x[:, 0]))
    with pytest.raises(ShapeError, match=r"expected matrices \[..., M, N\] and vectors"):
        ptir.matvec(y, y[0, 0])
    with pytest.raises(ShapeError, match=r"expected vectors \[..., M\] and matrices"):
        ptir.vecmat(y, y[0])


def test_einsum_with_symbolic_sizes() -> None:
    @ptir.jit(dynamic={"x": {0: "N", 1: "N"}, "y": {0: "N"}})
    def f(x: Any, y: Any) -> Any:
        return ptir.einsum("ii->i", x), ptir.einsum("ij,jk,lk->il", x, y, y), ptir.trace(x)

    for size in (3, 4):
        x, y = _array(size, size), _array(size, 2)
        compare(f(x, y), (np.diagonal(x), x @ y @ y.T, np.trace(x)))
    assert len(f.retraces()) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("ij,jk", A), "2 terms"),
        (("ijk", A), "3 labels"),
        (("ij,jk", A, A), "extents 4 and 3"),
        (("ij->k", A), "no operand has the label 'k'"),
        (("ij->ii", A), "twice"),
        (("i1", A), "is no label"),
        (("ii", A[:1]), "of one operand"),
        ((), "takes subscripts"),
    ],
)
def test_wrong_subscripts(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        ptir.einsum(*args)


def _cost(operands: list[Labels], result: Labels, extents: dict[str, int], path: Path) -> int:
    left, total = list(operands), 0
    for i, j in path:
        a, b = left[i], left[j]
        rest = [x for n, x in enumerate(left) if n not in (i, j)]
        total += int(np.prod([extents[x] for x in a | b]))
        left = [*rest, (a | b) & (result.union(*rest))]
    return total


def _all_paths(count: int) -> list[Path]:
    if count == 1:
        return [[]]
    pairs = combinations(range(count), 2)
    return [[pair, *rest] for pair in pairs for rest in _all_paths(count - 1)]


def test_the_optimal_path_is_the_cheapest_of_all() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        extents = {label: int(rng.integers(1, 9)) for label in "abcdefg"}
        letters = [*extents]
        operands = [frozenset(rng.choice(letters, 3, replace=False).tolist()) for _ in range(5)]
        count = Counter(label for operand in operands for label in operand)
        operands = [frozenset(x for x in o if count[x] > 1) for o in operands]  # others are summed
        result = frozenset([label for label in count if count[label] > 1][:2])
        found = _cost(operands, result, extents, optimal_path(operands, result, extents))
        assert found == min(_cost(operands, result, extents, p) for p in _all_paths(5))
        assert found <= _cost(operands, result, extents, greedy_path(operands, result, extents))
