"""More functions of NumPy: polynomials, sets, conditions, diagonals, bits, histograms."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, DTypeError, ShapeError, TraceError
from tests.numpy_api.test_against_numpy import Call, arrays_of, calls, compare, with_arrays

RANDOM = np.random.default_rng(1)
X = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)
I = np.arange(12).reshape(3, 4)  # noqa: E741
ROW = X[0, 0]
TIMES = np.linspace(-1, 1, 12, dtype=np.float32)
NOISE = RANDOM.standard_normal((12, 2)).astype(np.float32)
WEIGHTS = np.linspace(0.5, 2, 12, dtype=np.float32)
A = np.array([3, 1, 2, 3, 7, 1])
B = np.array([9, 3, 3, 1, 8])
NONE = np.zeros(0, np.int64)
ANGLES = np.array([0, 3, 6.5, 9, 2, -4, 3.1415927, 0], np.float32)
POINTS = RANDOM.standard_normal((40, 3)).astype(np.float32)
Z = (X[0] + 1j * X[1]).astype(np.complex64)
SQUARE = RANDOM.standard_normal((6, 6)).astype(np.float32) + 3 * np.eye(6, dtype=np.float32)

TABLE: list[Call] = [
    *calls("polyadd polysub polymul", A, B),
    *calls("polyadd polysub polymul", ROW, X[1, :3, 0]),
    *calls("polymul", ROW, 2.0),
    Call("polydiv", (ROW.astype(float), X[1, :3, 0].astype(float)), {}),
    Call("polydiv", (A, 2.0), {}),
    Call("polydiv", (ROW[:2], ROW), {}),
    *(Call("polyder", (A,), {"m": m}) for m in (0, 1, 3, 6, 9)),
    Call("polyint", (A,), {}),
    Call("polyint", (ROW,), {"m": 2, "k": [1.5, -2]}),
    Call("polyint", (ROW,), {"m": 2, "k": 3}),
    Call("poly", (ROW,), {}),
    Call("poly", (X[0, :4, :4],), {}),
    Call("polyfit", (TIMES, NOISE[:, 0], 3), {}),
    Call("polyfit", (TIMES, NOISE, 2), {"w": WEIGHTS}),
    Call("polyfit", (TIMES, NOISE, 2), {"cov": True}),
    Call("polyfit", (TIMES, NOISE[:, 1], 2), {"cov": True}),
    Call("polyfit", (TIMES, NOISE[:, 1], 2), {"cov": "unscaled"}),
    Call("select", ([X > 1, X > 0, X < -1], [X, X * 2, X[0]], 7.0), {}),
    Call("select", ([I > 5, I > 2], [I, 1]), {}),
    Call("choose", (I % 3, [I, I * 2, ROW[:4]]), {}),
    Call("choose", (I - 5, [I, I[0], 4]), {"mode": "clip"}),
    Call("choose", (I - 5, [I, I[0], 4]), {"mode": "wrap"}),
    *calls("tril_indices_from triu_indices_from", I, 1),
    Call("diag_indices_from", (X[:, :3, :3],), {}),
    Call("ix_", ([0, 2], np.array([1, 3]), []), {}),
    *calls("packbits", X > 0),
    *(
        call
        for axis in (0, 1, -1)
        for order in ("big", "little")
        for call in (
            Call("packbits", (np.tile(I % 3, (3, 2)),), {"axis": axis % 2, "bitorder": order}),
            Call("unpackbits", (I.astype(np.uint8),), {"axis": axis % 2, "bitorder": order}),
        )
    ),
    *calls("unpackbits", I.astype(np.uint8)),
    *(Call("unpackbits", (I.astype(np.uint8),), {"axis": 1, "count": n}) for n in (3, 40, -5)),
    *calls("unwrap", ANGLES),
    *calls("unwrap", ANGLES, discont=4.0),
    Call("unwrap", (I * 5 % 7,), {"period": 4, "axis": 0}),
    Call("unwrap", (I * 5 % 7,), {"period": 5}),
    Call("unwrap", (X * 9,), {"axis": 1, "period": 2.5}),
    Call("sort_complex", (I[::-1].copy(),), {}),
    Call("sort_complex", (np.round(Z),), {}),
    Call("block", ([[I, I[:, :1]], [I[:1], np.array([[5]])]],), {}),
    Call("block", ([ROW, 1.5, ROW],), {}),
    Call("block", ([[X], [X[:, :2]]],), {}),
    *calls("array_equiv array_equal", I, np.tile(I, (2, 1, 1))),
    *calls("array_equiv", I, I[:, :3]),
    *calls("copy asanyarray ascontiguousarray", X),
    *calls("ndim shape size iscomplexobj isrealobj", X),
    *calls("iscomplexobj isrealobj", Z),
    Call("size", (X, 1), {}),
    *calls("isscalar", 3.5),
    *calls("isscalar", X),
    Call("histogram2d", (POINTS[:, 0], POINTS[:, 1], 4, [[-1, 1], [0, 2]]), {"density": True}),
    Call("histogramdd", (POINTS, (2, 3, 4)), {"weights": POINTS[:, 0]}),
    Call("matvec", (X, ROW), {}),
    Call("matvec", (X, X[:, 0]), {}),
    Call("vecmat", (X[:, :, 0], X), {}),
    Call("vecmat", (Z[:, 0], Z), {}),
    Call("apply_over_axes", (np.sum, X, (0, 2)), {}),
]


@pytest.mark.parametrize("call", TABLE, ids=str)
def test_a_function(call: Call) -> None:
    expected = getattr(np, call.name)(*call.args, **call.kwargs)
    function = getattr(ptir, call.name)
    compare(with_arrays(call, function, arrays_of(call)), expected)
    traced = ptir.jit(lambda arrays: with_arrays(call, function, arrays))
    compare(traced(arrays_of(call)), expected)


IN_PLACE: list[Call] = [
    Call("fill_diagonal", (X[0], 7), {}),
    Call("fill_diagonal", (X[:, :3, :3].copy(), ROW[:2]), {}),
    Call("fill_diagonal", (np.zeros((9, 3), np.float32), ROW), {"wrap": True}),
    Call("fill_diagonal", (np.zeros((9, 3), np.float32), ROW), {}),
    Call("fill_diagonal", (I, [1, 2]), {"wrap": True}),
    Call("place", (X, X > 0, ROW), {}),
    Call("put", (X, np.array([0, -1, 7]), ROW[:2]), {}),
    Call("put", (I, np.array([[0, 99], [-3, 7]]), np.array([5, 6])), {"mode": "clip"}),
    Call("put", (I, np.array([99, -13]), 5), {"mode": "wrap"}),
]


@pytest.mark.parametrize("call", IN_PLACE, ids=str)
def test_a_function_that_writes_returns_the_new_array(call: Call) -> None:
    expected = call.args[0].copy()
    getattr(np, call.name)(expected, *call.args[1:], **call.kwargs)
    function = getattr(ptir, call.name)
    compare(with_arrays(call, function, arrays_of(call)), expected)
    traced = ptir.jit(lambda arrays: with_arrays(call, function, arrays))
    compare(traced(arrays_of(call)), expected)
    with pytest.raises(ArgumentError, match="immutable"):
        function(*call.args, **call.kwargs, inplace=True)


OF_SOME_SIZE: list[Call] = [
    *calls("union1d intersect1d setdiff1d setxor1d", A, B),
    *calls("union1d intersect1d setdiff1d setxor1d", A, NONE),
    *calls("union1d intersect1d setdiff1d setxor1d", NONE, A),
    Call("setdiff1d", (A, B), {"assume_unique": True}),
    Call("intersect1d", (A, B), {"return_indices": True}),
    Call("compress", (np.array([True, False, True]), X), {"axis": 0}),
    Call("compress", (np.array([0, 1, 1, 0, 2]), X), {"axis": -1}),
    Call("compress", (np.array([True, False, True]), X), {}),
    Call("extract", (X > 0, X), {}),
]


@pytest.mark.parametrize("call", OF_SOME_SIZE, ids=str)
def test_a_size_that_depends_on_values_is_given_in_a_traced_function(call: Call) -> None:
    expected = getattr(np, call.name)(*call.args, **call.kwargs)
    function = getattr(ptir, call.name)
    compare(with_arrays(call, function, arrays_of(call)), expected)
    found = expected if isinstance(expected, np.ndarray) else expected[0]
    count = found.shape[call.kwargs.get("axis", 0)]

    def traced(size: int | None) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs, size=size)

        return ptir.jit(lambda arrays: with_arrays(call, called, arrays))(arrays_of(call))

    compare(traced(count), expected)
    if call.name in ("compress", "extract", "setdiff1d"):
        longer = traced(count + 2).numpy()
        assert not longer.take([count, count + 1], call.kwargs.get("axis", 0)).any()
    with pytest.raises(TraceError, match="size="):
        traced(None)


@pytest.mark.parametrize("p", [[1, -2, 5, 3], [0, 0, 2, 0, 4, 0, 0], [3], [0, 0], [2, 1]], ids=str)
def test_roots(p: list[int]) -> None:
    found = ptir.roots(np.array(p, np.float64)).numpy()
    expected = np.roots(p)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), atol=1e-9)


def test_roots_in_a_traced_function() -> None:
    p = np.array([2, -3, 4, 1], np.float64)
    found = ptir.jit(lambda p: ptir.roots(p, strip_zeros=False))(p)
    expected = np.sort_complex(np.roots(p))
    np.testing.assert_allclose(np.sort_complex(found.numpy()), expected, atol=1e-9)
    with pytest.raises(TraceError, match="strip_zeros"):
        ptir.jit(ptir.roots)(p)


def test_a_full_polyfit() -> None:
    found = ptir.polyfit(TIMES, NOISE[:, 0], 2, full=True)
    expected = np.polyfit(TIMES, NOISE[:, 0], 2, full=True)
    for part, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(part), wanted, rtol=1e-4, atol=1e-5)


def test_trim_zeros() -> None:
    row = np.array([0, 0, 1, 0, 2, 0])
    for trim in ("fb", "f", "b"):
        compare(ptir.trim_zeros(row, trim), np.trim_zeros(row, trim))
    with pytest.raises(TraceError, match="outside"):
        ptir.jit(ptir.trim_zeros)(row)


def test_mask_indices_and_positions_of_bools() -> None:
    compare(ptir.mask_indices(4, ptir.triu, 1), np.mask_indices(4, np.triu, 1))
    compare(ptir.ix_(np.array([True, False, True])), np.ix_([True, False, True]))
    compare(ptir.tensor(I)[ptir.ix_([0, 2], [1, 3])], I[np.ix_([0, 2], [1, 3])])


def test_piecewise() -> None:
    conditions, functions = [X < -1, X > 0], [lambda x: x * 2, 3, lambda x: x - 1]
    expected = np.piecewise(X, conditions, functions)
    compare(ptir.piecewise(X, conditions, functions), expected)
    traced = ptir.jit(lambda x: ptir.piecewise(x, [x < -1, x > 0], functions))
    compare(traced(X), expected)
    compare(ptir.piecewise(X, [X < 0], [lambda x, b: x * b], 3), np.where(X < 0, X * 3, 0))


def test_the_order_of_einsum() -> None:
    x, y, z = np.ones((2, 30)), np.ones((30, 4)), np.ones((4, 5))
    for optimize in (True, "greedy"):
        path, text = ptir.einsum_path("ij,jk,kl->il", x, y, z, optimize=optimize)
        assert path == np.einsum_path("ij,jk,kl->il", x, y, z)[0]
    assert text.splitlines() == ["ij,jk,kl->il", "ij,jk->ik", "kl,ik->il"]


def test_dtypes() -> None:
    assert ptir.issubdtype(ptir.f32, np.floating)
    assert ptir.issubdtype("bf16", np.inexact)
    assert not ptir.issubdtype(ptir.si8, np.unsignedinteger)
    assert ptir.issubdtype(np.floating, np.number)
    assert not ptir.issubdtype(np.number, np.integer)
    assert ptir.issubdtype(np.int8, ptir.si8)
    assert not ptir.issubdtype(np.floating, ptir.f32)
    assert ptir.common_type(I) is ptir.f32
    assert ptir.common_type(X.astype(np.float16)) is ptir.f16
    assert ptir.common_type(X, X.astype(np.float64), Z) is ptir.cf64
    with pytest.raises(DTypeError, match="bools"):
        ptir.common_type(X > 0)
    assert [ptir.min_scalar_type(x) for x in (10, -300, 1.5, True)] == [
        *(ptir.ui8, ptir.si16, ptir.f16, ptir.i1)
    ]
    assert ptir.min_scalar_type(X) is ptir.f32


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_apply_along_axis(axis: int) -> None:
    def centred(np_or_ptir: Any) -> Any:
        return lambda row, scale: np_or_ptir.outer(row - row.mean(), row[:2]) * scale

    expected = np.apply_along_axis(centred(np), axis, X, 3)
    compare(ptir.apply_along_axis(centred(ptir), axis, X, 3), expected)
    compare(ptir.jit(lambda x: ptir.apply_along_axis(centred(ptir), axis, x, 3))(X), expected)
    total = ptir.apply_along_axis(ptir.sum, axis, X)
    compare(total, X.sum(axis))
    compare(ptir.apply_along_axis(ptir.sum, 0, ROW), ROW.sum())


def test_vectorize() -> None:
    @ptir.vectorize
    def lesser(a: Any, b: Any) -> Any:
        assert a.ndim == b.ndim == 0
        return ptir.where(a < b, a, b * 2)

    a, b = X[:, :1], X[0, :, :]
    expected = np.where(a < b, a, b * 2)
    compare(lesser(a, b), expected)
    compare(ptir.jit(lesser)(a, b), expected)
    compare(lesser(1.0, ROW), np.where(ROW > 1, 1, ROW * 2))

    products = ptir.vectorize(lambda m, v: (m @ v, v.sum()), signature="(n,m),(m)->(n),()")
    compare(
        products(X, X[:, None, 0]),
        (np.matvec(X, X[:, None, 0]), np.tile(X[:, None, 0].sum(-1), (1, 3))),
    )
    powers = ptir.vectorize(lambda x, n: x**n, excluded={1})
    compare(powers(X, 3), X**3)
    with pytest.raises(ArgumentError, match="signature"):
        ptir.vectorize(lambda x: x, signature="n->n")
    with pytest.raises(ShapeError, match="axis m"):
        products(X, X[:, 0, :3])


def test_equations_of_tensors() -> None:
    a, b = SQUARE.reshape(2, 3, 6), X[0, 0][:3] * np.ones((2, 1), np.float32)
    expected = np.linalg.tensorsolve(a, b)
    np.testing.assert_allclose(ptir.linalg.tensorsolve(a, b).numpy(), expected, rtol=1e-4)
    moved = ptir.jit(lambda a, b: ptir.linalg.tensorsolve(a, b, axes=(0,)))
    a = SQUARE.reshape(6, 2, 3)
    expected = np.linalg.tensorsolve(a, b, axes=(0,))
    np.testing.assert_allclose(moved(a, b).numpy(), expected, rtol=1e-4)
    expected = np.linalg.tensorinv(a, ind=1)
    np.testing.assert_allclose(ptir.linalg.tensorinv(a, ind=1).numpy(), expected, atol=1e-5)
    with pytest.raises(ShapeError, match="b has shape"):
        ptir.linalg.tensorsolve(a, ROW)
