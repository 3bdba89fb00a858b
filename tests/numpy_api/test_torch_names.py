"""Names of torch's first level against torch: eager and compiled, by tables of calls."""

# torch's functions are only partly typed, and ours take arrays in place of Tensors.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir as namespace
from gptrs.errors import PtirError, TraceError
from gptrs.numpy_api import ELSEWHERE

ptir: Any = namespace
torch: Any = pytest.importorskip("torch")
RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((4, 6)).astype("f4")
Y = RANDOM.standard_normal((4, 6)).astype("f4")
CUBE = RANDOM.standard_normal((2, 4, 6)).astype("f4")
BATCH = RANDOM.standard_normal((2, 6, 5)).astype("f4")
SQUARE = RANDOM.standard_normal((4, 4)).astype("f4")
ROW, COLUMN = X[0], X[:, 0]
WHOLE = RANDOM.integers(-5, 5, (4, 6))
AT = np.array([2, 0, 2])
PLACES = np.array([[0, 3, 1], [2, 2, 0]])
COMPLEX = (X + 1j * Y).astype("c8")

Call = Callable[..., Any]
Rows = dict[str, tuple[Call, tuple[Any, ...]]]

ROWS: Rows = {
    "index_select": (lambda m, x, i: m.index_select(x, 1, i), (X, AT)),
    "index_add": (lambda m, x, i, s: m.index_add(x, 1, i, s, alpha=2), (X, AT, Y[:, :3])),
    "index_copy": (lambda m, x, i, s: m.index_copy(x, -1, i, s), (X, AT[:2], Y[:, :2])),
    "index_fill": (lambda m, x, i: m.index_fill(x, dim=0, index=i, value=3), (X, AT)),
    "take_along_dim": (lambda m, x, i: m.take_along_dim(x, i, 1), (X[:2], PLACES)),
    "take_along_dim of all": (lambda m, x, i: m.take_along_dim(x, i), (X, PLACES)),
    "gather": (lambda m, x, i: m.gather(x, 1, i), (X, PLACES)),
    "gather by keywords": (lambda m, x, i: m.gather(x, dim=1, index=i), (X, PLACES)),
    "gather, a method": (lambda m, x, i: x.gather(1, index=i), (X, PLACES)),
    "scatter_add": (lambda m, x, i, s: m.scatter_add(x, 0, i, s), (X, PLACES, Y)),
    "scatter_add, a method": (
        lambda m, x, i, s: x.scatter_add(dim=1, index=i, src=s),
        (X, PLACES, Y),
    ),
    "scatter_reduce": (lambda m, x, i, s: m.scatter_reduce(x, 0, i, s, "prod"), (X, PLACES, Y)),
    "scatter_reduce, without x": (
        lambda m, x, i, s: x.scatter_reduce(0, i, s, reduce="mean", include_self=False),
        (X, PLACES, Y),
    ),
    "index_reduce": (lambda m, x, i, s: m.index_reduce(x, 1, i, s, "amax"), (X, AT, Y[:, :3])),
    "index_put": (lambda m, x, i, s: m.index_put(x, (i,), s), (X, AT[:2], Y[:2])),
    "index_put, adding": (lambda m, x, i, s: x.index_put((i,), s, accumulate=True), (X, AT, Y[:3])),
    "scatter": (lambda m, x, i, s: m.scatter(x, 0, i[:1], s), (X, PLACES, Y)),
    "scatter of a number": (lambda m, x, i: m.scatter(x, 0, i, value=7), (X, PLACES)),
    "scatter, adding": (lambda m, x, i, s: m.scatter(x, 0, i, s, reduce="add"), (X, PLACES, Y)),
    "scatter, multiplying": (
        lambda m, x, i, s: m.scatter(x, 1, i, s, reduce="multiply"),
        (X, PLACES, Y),
    ),
    "masked_fill": (lambda m, x: m.masked_fill(x, x > 0, -1), (X,)),
    "masked_scatter": (lambda m, x, s: m.masked_scatter(x, x > 0, s), (X, Y)),
    "diagonal_scatter": (lambda m, x, s: m.diagonal_scatter(x, s, 1), (X, ROW[:4])),
    "diagonal_scatter below": (
        lambda m, x, s: m.diagonal_scatter(x, s, -1, 2, 1),
        (CUBE, CUBE[:, :4, 0]),
    ),
    "select_scatter": (lambda m, x, s: m.select_scatter(x, s, 1, 2), (X, COLUMN)),
    "slice_scatter": (lambda m, x, s: m.slice_scatter(x, s, 1, 1, 6, 2), (X, Y[:, :3])),
    "chunk": (lambda m, x: m.chunk(x, 4, dim=1), (X,)),
    "tensor_split": (lambda m, x: m.tensor_split(x, 4, dim=1), (X,)),
    "tensor_split at": (lambda m, x: m.tensor_split(x, (1, 4), dim=1), (X,)),
    "split_with_sizes": (lambda m, x: m.split_with_sizes(x, [1, 3, 2], -1), (X,)),
    "narrow": (lambda m, x: m.narrow(x, 1, -3, 2), (X,)),
    "unflatten": (lambda m, x: m.unflatten(x, 1, (2, -1)), (X,)),
    "repeat_interleave": (lambda m, x: m.repeat_interleave(x, 3, dim=1), (X,)),
    "t": (lambda m, x: m.t(x), (X,)),
    "t of a vector": (lambda m, x: m.t(x), (ROW,)),
    "adjoint": (lambda m, x: m.adjoint(x), (COMPLEX,)),
    "broadcast_tensors": (lambda m, x, y: m.broadcast_tensors(x, y), (X, ROW)),
    "block_diag": (lambda m, x, y, z: m.block_diag(x, y, z), (X, ROW, X[0, 0])),
    "cartesian_prod": (lambda m, x, y: m.cartesian_prod(x, y), (ROW, COLUMN)),
    "combinations": (lambda m, x: m.combinations(x, 3), (ROW,)),
    "combinations with replacement": (
        lambda m, x: m.combinations(x, with_replacement=True),
        (ROW,),
    ),
    "diag_embed": (lambda m, x: m.diag_embed(x, -1), (X,)),
    "diag_embed to the front": (lambda m, x: m.diag_embed(x, 1, 0, 2), (X,)),
    "addmm": (lambda m, x, a, b: m.addmm(x, a, b, beta=2, alpha=0.5), (ROW[:5], CUBE[0], BATCH[0])),
    "addmm without x": (
        lambda m, x, a, b: m.addmm(x, a, b, beta=0),
        (np.full(5, np.nan, "f4"), CUBE[0], BATCH[0]),
    ),
    "addmv": (lambda m, x, a, b: m.addmv(x, a, b, alpha=3), (COLUMN, X, ROW)),
    "addr": (lambda m, x, a, b: m.addr(x, a, b, beta=-1), (X, COLUMN, ROW)),
    "baddbmm": (lambda m, x, a, b: m.baddbmm(x, a, b), (CUBE[:, :, :5], CUBE, BATCH)),
    "addbmm": (lambda m, x, a, b: m.addbmm(x, a, b), (X[:, :5], CUBE, BATCH)),
    "addcmul": (lambda m, x, a, b: m.addcmul(x, a, b, value=0.5), (X, Y, ROW)),
    "addcdiv": (lambda m, x, a, b: m.addcdiv(x, a, b, value=2), (X, Y, COLUMN[:, None])),
    "rsub": (lambda m, x, y: m.rsub(x, y, alpha=2), (X, Y)),
    "input and other": (lambda m, x, y: m.add(input=x, other=y), (X, Y)),
    "softmax of input": (lambda m, x: m.softmax(input=x, dim=1), (X,)),
    "topk": (lambda m, x: m.topk(x, 3, dim=0), (X,)),
    "topk of the least": (lambda m, x: m.topk(x, 2, largest=False), (CUBE,)),
    "kthvalue": (lambda m, x: m.kthvalue(x, 2, dim=1), (CUBE,)),
    "kthvalue, kept": (lambda m, x: m.kthvalue(x, 6, keepdim=True), (X,)),
    "mode": (lambda m, x: m.mode(x, dim=0).values, (WHOLE,)),
    "mode, kept": (lambda m, x: x.mode(1, keepdim=True)[0], (WHOLE,)),
    "var and std": (lambda m, x: [x.var(1, unbiased=True), x.std(0, unbiased=False)], (X,)),
    "var and std, corrected": (
        lambda m, x: [m.var(x, 1, correction=2), m.std(x, dim=0, correction=1)],
        (X,),
    ),
    "histc": (lambda m, x: m.histc(x, 5, -1, 1.5), (X,)),
    "histc of all": (lambda m, x: x.histc(bins=4), (X,)),
    "logcumsumexp": (lambda m, x: m.logcumsumexp(x, dim=1), (X,)),
    "cumulative_trapezoid": (lambda m, y, x: m.cumulative_trapezoid(y, x), (X, ROW)),
    "unfold": (lambda m, x: x.unfold(1, 3, 2), (CUBE,)),
    "dist": (lambda m, x, y: [m.dist(x, y), m.dist(x, y, 1)], (X, Y)),
    "renorm": (lambda m, x: x.renorm(2, 0, 1.5), (CUBE,)),
    "norm": (lambda m, x: [m.norm(x), m.norm(x, 1, 1), x.norm(2), x.norm(p=3, dim=0)], (X,)),
    "norm of matrices": (lambda m, x: m.norm(x, "nuc", dim=(1, 2), keepdim=True), (CUBE,)),
    "quotients": (
        lambda m, x, y: [x.div(y), *(x.div(y, rounding_mode=r) for r in ("floor", "trunc"))],
        (WHOLE, WHOLE[::-1] * 2 + 1),
    ),
    "sums": (lambda m, x, y: [x.add(y, alpha=2), x.sub(y, alpha=3), x.sub(y)], (X, Y)),
    "shapes of others": (
        lambda m, x, y: [y.view_as(x), y.reshape_as(x), x[:1].expand_as(x)],
        (X, Y.ravel()),
    ),
    "new tensors": (
        lambda m, x: [x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2,), 7), x.new_tensor([1])],
        (X,),
    ),
    "H": (lambda m, x: [x.H, x.mH, x[0].mH if x.ndim > 2 else x.H], (COMPLEX,)),
    "select": (lambda m, x: x.select(1, 2), (X,)),
    "where, a method": (lambda m, x, y: x.where(x > 0, y), (X, Y)),
    "flip of axes": (lambda m, x: [x.flip(0), x.flip(0, 1), x.flip((1,))], (X,)),
    "conversions": (lambda m, x: [x.byte(), x.short(), x.char(), x.cfloat()], (abs(WHOLE),)),
    "scalar_tensor": (lambda m, x: m.scalar_tensor(3) + x, (X,)),
    "clone": (lambda m, x: m.clone(x), (X,)),
    "msort": (lambda m, x: m.msort(x), (X,)),
    "aminmax": (lambda m, x: m.aminmax(x, dim=1), (X,)),
    "aminmax of all": (lambda m, x: m.aminmax(x), (X,)),
    "std_mean": (lambda m, x: m.std_mean(x, dim=1), (X,)),
    "var_mean": (lambda m, x: m.var_mean(x, dim=(0, 2), correction=0, keepdim=True), (CUBE,)),
    "bucketize": (lambda m, x, e: m.bucketize(x, e, right=True), (WHOLE, np.array([-3, 0, 2]))),
    "view_as_real": (lambda m, x: m.view_as_real(x), (COMPLEX,)),
    "view_as_complex": (lambda m, x: m.view_as_complex(x), (CUBE[:, :, :2],)),
    "pinverse": (lambda m, x: m.pinverse(x), (X,)),
    "inverse": (lambda m, x: m.inverse(x), (SQUARE,)),
    "pixel_shuffle": (
        lambda m, x: m.pixel_shuffle(x[None], 2),
        (BATCH[:, :4, :4].reshape(4, 2, 4),),
    ),
}


def _parts(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _of_torch(call: Call, arrays: tuple[Any, ...]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has newer names for some
        found = _parts(call(torch, *(torch.from_numpy(np.array(x)) for x in arrays)))
    return [part.resolve_conj().numpy() for part in found]


@pytest.mark.parametrize("name", ROWS)
def test_a_name_of_torch(name: str) -> None:
    call, arrays = ROWS[name]
    expected = _of_torch(call, arrays)
    eager = _parts(call(ptir, *map(ptir.tensor, arrays)))
    traced = _parts(ptir.jit(lambda *xs: call(ptir, *xs))(*arrays))
    assert len(eager) == len(traced) == len(expected)
    for found in (eager, traced):
        for a, b in zip(found, expected, strict=True):
            assert a.numpy().dtype == b.dtype
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=2e-6, equal_nan=False)


SAME = """
    abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc exp exp2 expm1 floor
    frac isfinite isnan lgamma log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal relu
    round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc amax amin
    argmax argmin argwhere count_nonzero cov corrcoef diag logical_not prod sum t tril triu
    unbind aminmax mode unique unique_consecutive
"""


def test_methods_are_those_of_torch() -> None:
    x = np.abs(X) % 0.9 + 0.05
    for name in SAME.split():
        expected = _of_torch(lambda m, x, name=name: getattr(x, name)(), (x,))
        for a, b in zip(_parts(getattr(ptir.tensor(x), name)()), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, np.inf])
@pytest.mark.parametrize("rows", [4, 40])
def test_distances(p: float, rows: int) -> None:
    a, b = (RANDOM.standard_normal((2, n, 5)).astype("f4") for n in (rows, 3))
    expected = torch.cdist(torch.from_numpy(a), torch.from_numpy(b), p)
    for found in (ptir.cdist(a, b, p), ptir.jit(lambda a, b: ptir.cdist(a, b, p=p))(a, b)):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


def test_runs_of_equal_elements() -> None:
    row = np.array([1, 1, 2, 2, 3, 1, 1])
    rows = np.array([[1, 1], [1, 1], [2, 1]])
    for x, dim in ((row, None), (rows, 0), (rows, 1), (rows, None)):
        expected = torch.unique_consecutive(torch.from_numpy(x), True, True, dim=dim)
        for a, b in zip(ptir.unique_consecutive(x, True, True, dim=dim), expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    found = ptir.jit(lambda x: ptir.unique_consecutive(x, True, True, size=6))(row)
    expected = ([1, 2, 3, 1, 1, 1], [0, 0, 1, 1, 2, 3, 3], [2, 2, 1, 2, 0, 0])
    assert [part.numpy().tolist() for part in found] == [*expected]
    with pytest.raises(TraceError, match="size=n"):
        ptir.jit(ptir.unique_consecutive)(row)


def test_elements_in_a_row() -> None:
    x = ptir.tensor(X)
    assert len(x.flat) == X.size
    assert [float(each) for each in x.flat] == [*map(float, X.flat)]
    np.testing.assert_array_equal(np.asarray(x.flat), X.ravel())

    def changed(x: Any) -> Any:
        x = x.copy()
        x.flat[::7] = 0
        return x, x.flat[3]

    expected = X.copy()
    expected.flat[::7] = 0
    for found, third in (changed(x), ptir.jit(changed)(X)):
        np.testing.assert_array_equal(found.numpy(), expected)
        assert float(third) == X.flat[3]


@pytest.mark.parametrize("space", ELSEWHERE)
def test_a_name_of_another_namespace(space: str) -> None:
    for name in ELSEWHERE[space]:
        assert getattr(ptir, name) is getattr(getattr(ptir, space), name)


@pytest.mark.parametrize("x", [X, WHOLE, COMPLEX, X > 0, np.arange(3, dtype="u1")])
def test_questions(x: Any) -> None:
    theirs = torch.from_numpy(np.array(x))
    for name in ("is_complex", "is_floating_point", "is_signed", "is_tensor", "numel"):
        assert getattr(ptir, name)(ptir.tensor(x)) == getattr(torch, name)(theirs)


def test_chosen_elements() -> None:
    mask = X > 0.5
    expected = X[mask]
    np.testing.assert_array_equal(ptir.masked_select(X, mask).numpy(), expected)
    found = ptir.jit(lambda x: ptir.masked_select(x, x > 0.5, size=30, fill_value=9))(X).numpy()
    np.testing.assert_array_equal(found[: len(expected)], expected)
    assert (found[len(expected) :] == 9).all()
    with pytest.raises(TraceError, match="size=n"):
        ptir.jit(lambda x: ptir.masked_select(x, x > 0.5))(X)


def test_a_traced_start() -> None:
    found = ptir.jit(lambda x, start: ptir.narrow(x, 1, start, 2))(X, np.int64(3))
    np.testing.assert_array_equal(found.numpy(), X[:, 3:5])


ERRORS: dict[str, tuple[Call, str]] = {
    "chunk": (lambda: ptir.chunk(X, 0), "expected at least 1"),
    "narrow": (lambda: ptir.narrow(X, 1, 5, 2), "do not lie in axis 1"),
    "split_with_sizes": (lambda: ptir.split_with_sizes(X, [1, 2], 1), "sum to 3"),
    "unflatten": (lambda: ptir.unflatten(X, 1, (4, 2)), "do not make up the extent 6"),
    "t": (lambda: ptir.t(CUBE), "takes a matrix"),
    "addmm": (lambda: ptir.addmm(X, CUBE, X), "ranks 2 and 2"),
    "scatter": (lambda: ptir.scatter(X, 0, PLACES), "one of src and value"),
    "gather": (lambda: ptir.gather(X, PLACES), "expected one axis"),
    "scatter_reduce": (
        lambda: ptir.scatter_reduce(X, 0, PLACES, Y, "median"),
        "reduce is 'median'",
    ),
    "cdist": (lambda: ptir.cdist(X, CUBE[0].T), "rows of one length"),
    "renorm": (lambda: ptir.renorm(X, 0, 1, 1.0), "expected p > 0"),
    "unfold": (lambda: ptir.unfold(X, 0, 5, 1), "windows of 5, 1 apart"),
    "rounding_mode": (lambda: ptir.divide(X, Y, rounding_mode="up"), "'floor', 'trunc' or None"),
    "index": (lambda: ptir.index_select(X, 0, np.array([4])), "4"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error(name: str) -> None:
    call, said = ERRORS[name]
    with pytest.raises(PtirError, match=said):
        call()


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "randperm", "bernoulli"])
def test_random_numbers_take_keys(name: str) -> None:
    with pytest.raises(AttributeError, match=r"ptir\.random\.\w+\(key"):
        getattr(ptir, name)
