"""NumPy's own functions on tensors, traced and eager, against NumPy on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import TraceError
from gptrs.ir.tensor import Tensor

# The parameters of a lambda have no types; NumPy's stubs do not know of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportArgumentType=false, reportCallIssue=false

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]], np.float32)
Y = np.array([[1.5, 2.0, -0.5], [0.25, 1.0, 4.0]], np.float32)
I = np.array([[6, 3, 5], [12, 10, 9]], np.int32)  # noqa: E741

Function = Callable[[Any, Any], Any]

CALLS: dict[str, Function] = {
    "exp": lambda x, y: np.exp(x),
    "mixed": lambda x, y: np.add(X, y) + np.multiply(x, 2) + np.float32(2) * x,
    "dtype": lambda x, y: np.add(x, y, dtype=np.float64),
    "arctan2": lambda x, y: np.arctan2(x, y),
    "absolute": lambda x, y: np.abs(x) + np.absolute(y) + np.fabs(x),
    "power": lambda x, y: np.power(np.abs(x), y),
    "matmul": lambda x, y: np.matmul(x, y.T),
    "where": lambda x, y: np.where(x > y, x, y),
    "concatenate": lambda x, y: np.concatenate([x, Y], axis=1),
    "concatenate along all": lambda x, y: np.concatenate((x, y), None),
    "stack": lambda x, y: np.stack([x, y], 1),
    "vstack": lambda x, y: np.vstack((x, y)),
    "einsum": lambda x, y: np.einsum("ij,kj->ik", x, y),
    "tensordot": lambda x, y: np.tensordot(x, y, axes=([1], [1])),
    "norm": lambda x, y: np.linalg.norm(x, axis=1),
    "solve": lambda x, y: np.linalg.solve(x[:, :2], y[:, :2]),
    "fft": lambda x, y: np.real(np.fft.ifft(np.fft.fft(x, axis=0) * 2, axis=0)),
    "sum": lambda x, y: np.sum(x, axis=0, keepdims=True, initial=2),
    "prod": lambda x, y: np.prod(x, 1, initial=3),
    "mean": lambda x, y: np.mean(x, 1),
    "std": lambda x, y: np.std(x, axis=0, ddof=1),
    "max": lambda x, y: np.max(x, 1) + np.amin(x, axis=1),
    "argmax": lambda x, y: np.argmax(x, axis=1),
    "sort": lambda x, y: np.sort(x)[np.argsort(y[:, 0], kind="stable")],
    "clip": lambda x, y: np.clip(x, -1, 1) + np.clip(x, a_min=0, a_max=None),
    "reshape": lambda x, y: np.reshape(x, (3, 2), order="C"),
    "order": lambda x, y: np.reshape(x, (3, -1), order="F") + np.ravel(y, "F").reshape(3, 2),
    "indices": lambda x, y: x[np.tril_indices_from(y, 1)] + np.zeros(np.size(y) - 1, "f"),
    "singular values": lambda x, y: np.linalg.svd(x, False)[1],
    "transpose": lambda x, y: np.transpose(x, (1, 0)),
    "expand": lambda x, y: np.expand_dims(x, 1) + np.swapaxes(y[None], 0, 1),
    "pad": lambda x, y: np.pad(x, ((1, 0), (0, 2)), constant_values=7),
    "take": lambda x, y: np.take(x, [1, 0], axis=1, mode="clip"),
    "take of all": lambda x, y: np.take(x, [[1, 4], [0, -1]]),
    "delete": lambda x, y: np.delete(x, 1, axis=1),
    "insert": lambda x, y: np.insert(x, 1, y[:, 0], axis=1),
    "interp": lambda x, y: np.interp(x, [0.0, 1.0, 2.0], [0.0, 3.0, 4.0]).astype("float32"),
    "around": lambda x, y: np.around(x * 10, 1) + np.round(y),
    "select": lambda x, y: np.select([x > 2, x > 0], [x, y], 5),
    "cumsum": lambda x, y: np.cumsum(x) + np.cumsum(y.reshape(-1), axis=0),
    "diff": lambda x, y: np.diff(x, axis=0),
    "roll": lambda x, y: np.roll(x, 1, axis=1) + np.flip(y, 1) + np.tile(x, (1, 1)),
    "zeros_like": lambda x, y: np.ones_like(x) + np.full_like(x, 3, dtype=np.float64),
    "shape": lambda x, y: x.reshape(np.shape(x)[::-1]) * np.ndim(x) + np.size(x) * np.size(x, 0),
    "copy": lambda x, y: np.copy(x),
    "broadcast_to": lambda x, y: np.broadcast_to(x[0], (4, 3)),
    "meshgrid": lambda x, y: np.meshgrid(x[0], y[1])[1],
    "add.reduce": lambda x, y: np.add.reduce(x) + np.add.reduce(x, axis=0),
    "add.reduce of all": lambda x, y: np.add.reduce(x, axis=None, keepdims=True, initial=1),
    "maximum.reduce": lambda x, y: np.maximum.reduce(x, 1) + np.minimum.reduce(y, axis=1),
    "multiply.reduce": lambda x, y: np.multiply.reduce(x, axis=1, dtype=np.float64),
    "logical_or.reduce": lambda x, y: np.logical_or.reduce(x > 2, axis=1),
    "add.accumulate": lambda x, y: np.add.accumulate(x, axis=1) + np.add.accumulate(y),
    "maximum.accumulate": lambda x, y: np.maximum.accumulate(x, axis=1),
    "subtract.outer": lambda x, y: np.subtract.outer(x, y[0]),
    "add.outer with an array": lambda x, y: np.add.outer(X[0], y[0]),
    "xor.reduce": lambda x, y: np.bitwise_xor.reduce(
        (x > 0).astype("int32"), axis=1, keepdims=True
    ),
    "and.accumulate": lambda x, y: np.bitwise_and.accumulate((x * 4).astype("int32"), axis=1),
}


def written(x: Any, y: Any) -> Any:
    """Functions that write into an array."""
    x = np.copy(x)
    total, kept = x * 0, x + 0
    np.add(x, y, out=total)
    np.multiply(x, 10, out=kept, where=y > 1)
    np.add.at(x, ([0, 0], [1, 1]), 1)
    np.maximum.at(x, (slice(None), 0), 2)
    np.negative.at(x, (1, 2))
    np.copyto(kept, 3, where=x > 3)
    row = np.sum(y, axis=0)
    np.sum(x, axis=0, out=row)
    return np.concatenate([x, total, kept, [row]])


CALLS["writing"] = written


@pytest.mark.parametrize("name", CALLS)
def test_numpy_calls_are_those_of_ptir(name: str) -> None:
    function = CALLS[name]
    expected = function(X, Y)
    for found in (ptir.jit(function)(X, Y), function(ptir.tensor(X), ptir.tensor(Y))):
        assert isinstance(found, Tensor)
        assert found.shape == expected.shape
        assert np.dtype(found.dtype) == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


def test_integers_divide_as_ptir_divides() -> None:
    for found in (ptir.jit(lambda x: np.divide(x, 2))(I), np.sqrt(ptir.tensor(I))):
        assert found.dtype is ptir.f32


WRITING: dict[str, Callable[[Any], None]] = {
    "fill_diagonal": lambda x: np.fill_diagonal(x, 7),
    "place": lambda x: np.place(x, np.asarray(X) > 0, [1, 2]),
    "put": lambda x: np.put(x, [0, -1], 5),
}


@pytest.mark.parametrize("name", WRITING)
def test_what_writes_in_numpy_writes(name: str) -> None:
    def written(x: Any) -> Any:
        y = x.copy()
        WRITING[name](y)
        return y

    assert ptir.jit(written)(X).tolist() == written(ptir.tensor(X)).tolist() == written(X).tolist()


def test_where_with_one_argument_gives_positions() -> None:
    rows, columns = np.where(ptir.tensor(X > 1))
    assert rows.tolist() == [0, 1]
    assert columns.tolist() == [2, 0]


REFUSED: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "no such": (lambda x: np.real_if_close(x), "real_if_close", "ptir.callback"),
    "out": (lambda x: np.add(x, 1, out=X.copy()), "add", "y = np.add"),
    "where": (lambda x: np.add(x, 1, where=x > 0), "add", "ptir.where(mask"),
    "at": (lambda x: np.add.at(X.copy(), x[0].astype("int64"), 1), "add.at", "ptir.array(x)"),
    "reduceat": (lambda x: np.add.reduceat(x, [0]), "add.reduceat", "ptir.segment_reduce"),
    "reduce": (lambda x: np.subtract.reduce(x), "subtract.reduce", "ptir.scan"),
    "in place": (lambda x: np.putmask(x, x > 0, 1), "putmask", "x[mask] = values"),
    "text": (lambda x: np.array2string(x), "array2string", "ptir.print"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ptir_lacks_is_an_error_with_a_remedy(name: str) -> None:
    function, called, remedy = REFUSED[name]
    with pytest.raises(TraceError, match=rf"NumPy's {called} cannot take a traced") as error:
        ptir.jit(function)(X)
    assert remedy in error.value.fix


@pytest.mark.parametrize(
    "function", [lambda x: np.array(x), lambda x: np.asarray(x), lambda x: np.array([x[0, 0], 1.0])]
)
def test_an_array_of_a_traced_value_is_an_error(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TraceError, match="elements of a traced value") as error:
        ptir.jit(function)(X)
    assert "ptir.stack" in error.value.fix


def test_what_ptir_lacks_runs_on_known_elements() -> None:
    x = ptir.tensor(X)
    np.testing.assert_array_equal(np.unwrap(x), np.unwrap(X))
    np.testing.assert_array_equal(
        np.quantile(x, 0.5, method="nearest"), np.quantile(X, 0.5, method="nearest")
    )
    out = np.zeros_like(X)
    assert np.add(x, 1, out=out) is out
    np.testing.assert_array_equal(out, X + 1)
    out += x
    np.testing.assert_array_equal(out, X + 1 + X)


def test_dtypes_are_those_of_numpy() -> None:
    x = ptir.tensor(X)
    assert x.dtype == np.float32
    assert np.dtype(x.dtype) == np.float32
    assert np.empty(3, x.dtype).dtype == np.float32
    assert np.result_type(x, np.float64) == np.float64


def test_an_array_is_added_to_in_place() -> None:
    """The name refers to a Tensor then: the array, which may be the caller's, is not written."""
    given = np.arange(3, dtype=np.float64)

    def added(x: Any) -> Any:
        total: Any = given
        total += x
        whole: Any = np.arange(3)
        whole *= x
        return total, whole

    total, whole = ptir.jit(added)(np.full(3, 0.5, np.float32))
    assert (str(total.dtype), str(whole.dtype)) == ("f64", "f32")
    np.testing.assert_array_equal(total.numpy(), [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(whole.numpy(), [0, 0.5, 1])
    np.testing.assert_array_equal(given, np.arange(3))


def test_answers_are_bools_of_python_where_elements_are_known() -> None:
    x = ptir.tensor(X)
    assert np.allclose(x, X) is True
    assert np.array_equal(x, X + 1) is False
    assert np.array_equiv(X, x) is True
    assert bool(ptir.jit(lambda x: np.allclose(x, X))(X))  # pyright: ignore
