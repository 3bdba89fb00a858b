"""``ptir.linalg`` against `numpy.linalg`, traced and eager, in every precision."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError, ElementError, ShapeError
from gptrs.ir.types import Array
from tests.numpy_api.test_against_numpy import Call, arrays_of, with_arrays

RANDOM = np.random.default_rng(2)
DTYPES = ("f4", "f8", "c8", "c16")


def _array(dtype: str, *shape: int) -> Array:
    parts = RANDOM.standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if "c" in dtype else parts[0]).astype(dtype)


def _definite(x: Array) -> Array:
    product = x @ x.conj().swapaxes(-1, -2)
    return product + np.eye(x.shape[-1], dtype=x.dtype)


def _adjoint(x: Array) -> Array:
    return x.conj().swapaxes(-1, -2)


def _close(found: Any, expected: Any, dtype: str) -> None:
    tolerance = 2e-4 if dtype in ("f4", "c8") else 1e-10
    found = found.numpy() if isinstance(found, ptir.Tensor) else found
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def _run(name: str, *args: Any, **kwargs: Any) -> list[Any]:
    """The results of a function, eager and traced."""
    call = Call(name, args, kwargs)
    function: Callable[..., Any] = getattr(ptir.linalg, name)
    traced = ptir.jit(lambda arrays: with_arrays(call, function, arrays))
    return [with_arrays(call, function, arrays_of(call)), traced(arrays_of(call))]


def _table(dtype: str) -> list[Call]:
    a, b = _definite(_array(dtype, 2, 4, 4)), _array(dtype, 4, 3)
    x, v = _array(dtype, 2, 5, 3), _array(dtype, 4)
    return [
        Call("cholesky", (a,), {}),
        Call("solve", (a, b), {}),
        Call("solve", (a[0], b), {}),
        Call("solve", (a, v), {}),
        Call("inv", (a,), {}),
        Call("det", (a / 4,), {}),
        Call("slogdet", (a,), {}),
        Call("eigvalsh", (a,), {}),
        Call("eigvalsh", (a,), {"UPLO": "U"}),
        Call("svdvals", (x,), {}),
        Call("pinv", (x,), {}),
        Call("pinv", (x.swapaxes(1, 2),), {}),
        Call("matrix_rank", (x,), {}),
        Call("matrix_rank", (x[:, :, :1] @ x[:, :1],), {}),
        Call("matrix_power", (a[0] / 4, 5), {}),
        Call("matrix_power", (a, 0), {}),
        Call("matrix_power", (a, -2), {}),
        Call("multi_dot", ([b.T, a[0], b, b.T, v],), {}),
        Call("multi_dot", ([b.T, a[0]],), {}),
        *(Call("cond", (a,), {"p": p}) for p in (None, -2, 1, "fro")),
        *(Call("norm", (v,), {"ord": o}) for o in (None, 0, 1, 2, 3, np.inf, -np.inf)),
        *(Call("norm", (x[0],), {"ord": o}) for o in (None, "fro", "nuc", 1, -1, 2, -2)),
        *(Call("norm", (x[0],), {"ord": o}) for o in (np.inf, -np.inf)),
        Call("norm", (x,), {}),
        Call("norm", (x,), {"axis": 1, "ord": 1}),
        Call("norm", (x,), {"axis": (0, 2), "keepdims": True}),
        Call("vector_norm", (x,), {"axis": (0, 1), "ord": 3}),
        Call("matrix_norm", (x,), {"ord": 2, "keepdims": True}),
        Call("trace", (x,), {}),
        Call("diagonal", (x,), {"offset": -1}),
        Call("vecdot", (x, x[0]), {}),
        Call("outer", (v, v), {}),
        Call("cross", (x, x[0]), {}),
        Call("matmul", (a, b), {}),
        Call("matrix_transpose", (x,), {}),
        Call("tensordot", (x, x), {"axes": ((0, 1), (0, 1))}),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions(dtype: str) -> None:
    for call in _table(dtype):
        expected = getattr(np.linalg, call.name)(*call.args, **call.kwargs)
        for found in _run(call.name, *call.args, **call.kwargs):
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else []
            for one, wanted in pairs or [(found, expected)]:
                _close(one, wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factorisations(dtype: str) -> None:
    for shape in ((2, 5, 3), (3, 5), (4, 4)):
        x = _array(dtype, *shape)
        for full in (True, False):
            for u, s, vh in _run("svd", x, full_matrices=full):
                rank = s.shape[-1]
                product = (
                    u.numpy()[..., :rank] * s.numpy()[..., None, :] @ vh.numpy()[..., :rank, :]
                )
                _close(product, x, dtype)
                assert u.shape == np.linalg.svd(x, full_matrices=full)[0].shape
        for mode in ("reduced", "complete"):
            for q, r in _run("qr", x, mode=mode):
                _close(q.numpy() @ r.numpy(), x, dtype)
                identity = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2))
                _close(_adjoint(q.numpy()) @ q.numpy(), identity, dtype)
                assert r.shape == np.linalg.qr(x, mode=cast("Any", mode))[1].shape
        for r in _run("qr", x, mode="r"):
            _close(np.triu(r.numpy()), r.numpy(), dtype)
    a = _definite(_array(dtype, 2, 4, 4))
    for values, vectors in _run("eigh", a):
        _close(vectors.numpy() * values.numpy()[..., None, :], a @ vectors.numpy(), dtype)
    general = _array(dtype, 4, 4)
    for values, vectors in _run("eig", general):
        _close(general @ vectors.numpy(), vectors.numpy() * values.numpy(), dtype)
        assert values.dtype.name == ("cf32" if dtype in ("f4", "c8") else "cf64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_lstsq_and_triangles(dtype: str) -> None:
    a, b = _array(dtype, 6, 3), _array(dtype, 6, 2)
    for found in _run("lstsq", a, b):
        for part, wanted in zip(found, np.linalg.lstsq(a, b), strict=True):
            _close(part, wanted, dtype)
    square = _definite(_array(dtype, 3, 3))
    for upper, half in ((True, np.triu(square)), (False, np.tril(square))):
        for x in _run("solve_triangular", square, b[:3], upper=upper):
            _close(half @ x.numpy(), b[:3], dtype)


def test_whole_numbers_are_f32() -> None:
    x = np.array([[2, 1], [1, 3]])
    assert ptir.linalg.inv(x).dtype is ptir.f32
    _close(ptir.linalg.inv(x), np.linalg.inv(x), "f4")


def test_no_step_is_in_python() -> None:
    @ptir.jit(dynamic={"x": {0: "B", 1: "N", 2: "N"}})
    def f(x: Any) -> Any:
        return ptir.linalg.cholesky(x), ptir.linalg.inv(x), ptir.linalg.svdvals(x)

    for count, size in ((2, 3), (4, 2)):
        x = _definite(_array("f8", count, size, size))
        for found, wanted in zip(
            f(x), (np.linalg.cholesky(x), np.linalg.inv(x), np.linalg.svdvals(x)), strict=True
        ):
            np.testing.assert_array_equal(found.numpy(), wanted)
    assert {step.kind for step in f.explain(x).report.steps} == {"call"}
    assert len(f.retraces()) == 1


def test_a_failure_names_the_function_and_leaves_no_trace() -> None:
    invert = ptir.jit(lambda x: ptir.linalg.inv(x))
    for _ in range(2):
        with pytest.raises(ElementError, match="Singular matrix"):
            invert(np.zeros((2, 2), np.float32))
        _close(invert(np.eye(2, dtype=np.float32)), np.eye(2), "f4")
    with pytest.raises(ElementError, match="not positive definite"):
        ptir.linalg.cholesky(-np.eye(3))


def test_wrong_arguments() -> None:
    with pytest.raises(ShapeError, match="square"):
        ptir.linalg.inv(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="matrices"):
        ptir.linalg.svd(np.ones(3))
    with pytest.raises(ArgumentError, match="UPLO"):
        ptir.linalg.eigh(np.eye(2), UPLO=cast("Any", "X"))
    with pytest.raises(ArgumentError, match="mode"):
        ptir.linalg.qr(np.eye(2), mode=cast("Any", "raw"))
    with pytest.raises(ArgumentError, match="ord"):
        ptir.linalg.norm(np.eye(2), ord=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_exponential_of_matrices(dtype: str) -> None:
    for scale in (1e-3, 1.0, 20.0):
        x = _definite(_array(dtype, 2, 5, 5)) * np.array(scale, dtype) / 16
        values, vectors = np.linalg.eigh(x.astype("c16"))
        expected: Any = (vectors * np.exp(values)[:, None, :]) @ _adjoint(vectors)
        for found in _run("matrix_exp", x):
            assert found.dtype == x.dtype
            size = np.abs(expected).max()
            _close(found / size, (expected if x.dtype.kind == "c" else expected.real) / size, dtype)
    np.testing.assert_array_equal(ptir.linalg.matrix_exp(np.zeros((3, 0, 0))).shape, (3, 0, 0))
    half_turn = ptir.linalg.matrix_exp(np.array([[0, -np.pi], [np.pi, 0]]))
    _close(half_turn, -np.eye(2), "f8")
    with pytest.raises(ShapeError, match="expected square matrices"):
        ptir.linalg.matrix_exp(np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_a_cholesky_factor_solves(dtype: str) -> None:
    a, b = _definite(_array(dtype, 2, 4, 4)), _array(dtype, 4, 3)
    factor = np.linalg.cholesky(a)
    for upper, each in ((False, factor), (True, _adjoint(factor))):
        for found in _run("cholesky_solve", b, each, upper=upper):
            _close(found, np.linalg.solve(a, b), dtype)
        for found in _run("cholesky_inverse", each, upper=upper):
            _close(found, np.linalg.inv(a), dtype)


@pytest.mark.parametrize("name", ["svd", "svdvals", "eig", "eigvals"])
@pytest.mark.parametrize("backend", ["faer", "reference"])
def test_an_element_that_is_not_finite_is_an_error(name: str, backend: str) -> None:
    """LAPACK does not end for some of these, or writes beyond its arrays."""
    function: Any = getattr(ptir.linalg, name)
    made: Any = ptir.jit(lambda x: function(x), backend=backend)
    x = _array("f8", 3, 4, 4)
    made(x)
    for element in (np.inf, -np.inf, np.nan):
        for place in np.ndindex(4, 4):
            wrong = x.copy()
            wrong[1][place] = element
            with pytest.raises(ElementError, match="must not contain infs or NaNs"):
                made(wrong)
            with pytest.raises(ElementError, match="must not contain infs or NaNs"):
                made(wrong.swapaxes(1, 2))


@pytest.mark.parametrize("symbol", [1, 2])
def test_complete_qr_of_symbolic_sizes(symbol: int) -> None:
    made: Any = ptir.jit(dynamic={"x": {symbol: "N"}})(lambda x: ptir.linalg.qr(x, mode="complete"))
    for extent in (2, 5, 8):
        shape = [3, 5, 5]
        shape[symbol] = extent
        x = _array("f8", *shape)
        q, r = (result.numpy() for result in made(x))
        assert q.shape == (3, shape[1], shape[1])
        _close(q @ r, x, "f8")
        _close(_adjoint(q) @ q, np.broadcast_to(np.eye(shape[1]), q.shape), "f8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (2, 40, 70), (70, 40), (0, 0), (2, 0, 3)])
def test_lu_factors(shape: tuple[int, ...], dtype: str) -> None:
    x = _array(dtype, *shape)
    factors, pivots = ptir.jit(lambda x: tuple(ptir.linalg.lu_factor(x)))(x)
    least = min(shape[-2:])
    assert (pivots.shape, factors.shape) == ((*shape[:-2], least), shape)
    p, lower, upper = (y.numpy() for y in ptir.linalg.lu_unpack(factors, pivots))
    _close(p @ lower @ upper, x, dtype)
    assert np.array_equal(p.sum(axis=-1), np.ones(shape[:-1]))
    assert (abs(np.tril(lower)) <= np.sqrt(2) + 1e-6).all()  # the pivot is the greatest
    for found, expected in zip(ptir.linalg.lu(x), (p, lower, upper), strict=True):
        _close(found, expected, dtype)


def test_a_singular_matrix_has_lu_factors() -> None:
    x = np.array([[0.0, 0, 1], [0, 0, 2], [0, 3, 4]])
    p, lower, upper = (y.numpy() for y in ptir.linalg.lu(x))
    assert np.array_equal(p @ lower @ upper, x)
    assert np.diagonal(upper)[0] == 0
    _, lower, upper = ptir.linalg.lu(x[[2, 1, 0], ::-1].copy(), pivot=False)
    assert np.array_equal((lower @ upper).numpy(), x[[2, 1, 0], ::-1])


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_solve(dtype: str, left: bool, adjoint: bool) -> None:
    x, b = _array(dtype, 2, 6, 6), _array(dtype, 2, 6, 6)
    solve = ptir.jit(
        lambda x, b: ptir.linalg.lu_solve(*ptir.linalg.lu_factor(x), b, left=left, adjoint=adjoint)
    )
    turned = _adjoint(x) if adjoint else x
    found = solve(x, b).numpy()
    _close(turned @ found if left else found @ turned, b, dtype)


def test_lu_takes_matrices_of_a_known_size() -> None:
    with pytest.raises(ShapeError, match="known size"):
        ptir.jit(dynamic={"x": {0: "N", 1: "N"}})(lambda x: ptir.linalg.lu(x).U)(np.eye(3))
