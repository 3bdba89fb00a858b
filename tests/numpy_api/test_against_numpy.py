"""Functions that NumPy has under the same name: the same results, traced and eager."""

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)
I = np.arange(12).reshape(3, 4)  # noqa: E741
M = X > 0
HOLES = np.where(X > 1, np.nan, X)
NO_COLUMNS = np.zeros((3, 0), np.float32)
ROW = np.sort(X[0, 0])
COUNTS = np.array([1, 2, 2, 3])
LONG = RANDOM.standard_normal(600).astype(np.float32) / 10


class Call(NamedTuple):
    """A call of one function: arrays among ``args`` are traced."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        named = [f"{name}={value}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join([*map(_shown, self.args), *named])})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return getattr(value, "__name__", str(value))


def calls(names: str, *args: Any, **kwargs: Any) -> list[Call]:
    return [Call(name, args, kwargs) for name in names.split()]


TABLE: list[Call] = [
    *calls("sum prod max min mean var std all any cumsum cumprod median ptp argmax argmin", X),
    *calls("sum prod max min mean var std all any cumsum cumprod median ptp argmax argmin", I),
    *calls("sum mean all any count_nonzero max min argmax argmin cumsum", M),
    *calls("ravel flip flipud fliplr rot90 transpose squeeze count_nonzero average sort", X),
    *calls("nansum nanmean nanmax nanmin", HOLES),
    *calls("nansum nanmean nanmax nanmin median sort argsort", HOLES, axis=1),
    *calls("atleast_1d atleast_2d atleast_3d", X[0, 0]),
    *calls("atleast_1d atleast_2d atleast_3d", X[0, 0], X),
    *(
        call
        for axis in (0, 1, -1)
        for call in calls(
            "sum prod max min mean var std all any cumsum cumprod median ptp argmax argmin flip"
            " average sort argsort expand_dims diff count_nonzero",
            X,
            axis=axis,
        )
    ),
    *calls("sum mean var std max min median all", X, axis=(0, 2)),
    *calls("sum mean var std max min median all", X, axis=(0, 2), keepdims=True),
    *calls("argmax argmin", X, axis=1, keepdims=True),
    *calls("sum prod mean", NO_COLUMNS, axis=0),
    *calls("std var", X, axis=0, ddof=1),
    *calls("sum prod mean std var any all", X, where=M),
    *calls("max min", X, where=M, initial=0.5),
    *calls("sum cumsum prod", I.astype(np.int8), axis=0),
    *calls("sum cumsum prod", I.astype(np.uint8), axis=0),
    *calls("sum", I, dtype=np.float32),
    Call("average", (X,), {"axis": 1, "weights": np.arange(4.0, dtype=np.float32)}),
    Call("quantile", (X, 0.3), {"axis": 1}),
    Call("quantile", (X, 0.3), {"axis": 1, "keepdims": True}),
    Call("quantile", (X, np.array([0.1, 0.5, 1.0], np.float32)), {"axis": (0, 2)}),
    Call("percentile", (X, 30), {}),
    Call("roll", (X, 2), {}),
    Call("roll", (X, -7), {"axis": 1}),
    Call("roll", (X, (1, 2)), {"axis": (0, 1)}),
    Call("repeat", (X, 2), {}),
    Call("repeat", (X, 2), {"axis": 1}),
    Call("repeat", (X, [1, 2, 0, 1]), {"axis": 1}),
    Call("tile", (X, 2), {}),
    Call("tile", (X, (2, 1, 1, 2)), {}),
    Call("moveaxis", (X, 0, -1), {}),
    Call("moveaxis", (X, (0, 1), (-1, 0)), {}),
    Call("swapaxes", (X, 0, 2), {}),
    Call("transpose", (X, (2, 0, 1)), {}),
    Call("rot90", (X,), {"k": 3}),
    Call("rot90", (X,), {"k": 2, "axes": (1, 2)}),
    Call("expand_dims", (X, (0, 2)), {}),
    Call("squeeze", (X[:, :1],), {"axis": 1}),
    *(
        Call("pad", (X, ((1, 2), (0, 3), (2, 0))), {"mode": mode})
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    Call("pad", (X, 2), {"constant_values": 1.5}),
    Call("pad", (I, ((7, 9), (0, 0))), {"mode": "reflect"}),
    Call("split", (X, 2), {"axis": 1}),
    Call("array_split", (X, 3), {"axis": 2}),
    Call("array_split", (X, [1, 3]), {"axis": 2}),
    Call("concatenate", ([X, X],), {"axis": 1}),
    Call("concatenate", ([X, X],), {"axis": None}),
    Call("stack", ([X, X],), {"axis": 1}),
    *calls("vstack hstack dstack column_stack", [I, I]),
    *calls("vstack hstack column_stack", [I[0], I[1]]),
    Call("broadcast_to", (I, (2, 3, 4)), {}),
    Call("broadcast_arrays", (I, I[0], 2), {}),
    Call("meshgrid", (I[0], I[1, :2]), {}),
    Call("meshgrid", (I[0], I[1, :2], I[0]), {"indexing": "ij"}),
    Call("take", (X, np.array([0, -1, 1])), {"axis": 1}),
    Call("take", (X, np.array([[0, 9], [-7, 1]])), {"axis": 1, "mode": "clip"}),
    Call("take", (X, np.array([[0, 9], [-7, 1]])), {"axis": 1, "mode": "wrap"}),
    Call("take_along_axis", (X, np.argsort(X, axis=1)), {"axis": 1}),
    Call("take_along_axis", (X, np.array([[[-1]]])), {"axis": 2}),
    Call("take_along_axis", (X, np.array([5, 2])), {"axis": None}),
    Call("searchsorted", (ROW, X), {}),
    Call("searchsorted", (ROW, ROW), {"side": "right"}),
    Call("searchsorted", (np.append(ROW, [np.nan, np.nan]), np.append(ROW, np.nan)), {}),
    Call("searchsorted", (COUNTS, np.arange(6)), {"side": "right"}),
    Call("searchsorted", (NO_COLUMNS[0], ROW), {}),
    Call("tril", (I,), {}),
    Call("tril", (X,), {"k": -1}),
    Call("triu", (X,), {"k": 1}),
    Call("triu", (M,), {}),
    Call("diff", (X,), {"n": 2, "axis": 0}),
    Call("diff", (M,), {}),
    Call("diff", (X,), {"prepend": 0, "append": X}),
    Call("where", (X > 0, X, 0), {}),
    Call("where", (I, 1, 2), {}),
    Call("clip", (X, -0.5, 0.5), {}),
    Call("clip", (I, None, 5), {}),
    Call("clip", (X, X - 1, X[0] + 1), {}),
    *calls("logical_and logical_or logical_xor", I, X[:, :, 0]),
    *calls("logical_not positive negative", I),
    *calls("add multiply subtract true_divide floor_divide", X, X + 1),
    *calls("bitwise_and bitwise_or bitwise_xor", I, 5),
    *calls("bitwise_and bitwise_or bitwise_xor add multiply", M, M[0]),
    *calls("invert", M),
    *calls("arange", 5),
    *calls("arange", 1, 10, 3),
    *calls("arange", 10, 1, -4),
    *calls("arange", 3, 3),
    *calls("arange", 0.0, 1.0, 0.1),
    *calls("linspace", 0, 1, 11),
    *calls("linspace", -5, 5, 4, dtype=np.int32),
    *calls("linspace", 2.5, -1, 7, endpoint=False),
    *calls("linspace", 0, 1, 1),
    *calls("eye identity zeros ones tri", 3),
    *calls("eye tri", 3, 4),
    *(Call("eye", (3, 4), {"k": k}) for k in (2, -2, 2**63, -(2**63), 2**63 - 1)),
    *calls("zeros ones", (2, 3), dtype=np.int32),
    *calls("zeros ones", [2, 3], np.int32),
    *calls("full", (2, 3), 7),
    *calls("full", (2, 3), 7, np.float32),
    *calls("arange", 1, 10, 3, np.float32),
    *calls("zeros_like ones_like empty_like", I[:0]),
    Call("full_like", (X, 2), {}),
    *calls("asarray array", [[1, 2], [3, 4]]),
    *calls("nanprod nanvar nanstd nanmedian nancumsum nancumprod nanargmax nanargmin", HOLES),
    *calls("nanprod nanvar nanstd nanmedian nancumsum nanargmax nanargmin", HOLES, axis=1),
    *calls("nanvar nanstd", HOLES, axis=(0, 2), ddof=1),
    Call("nanquantile", (HOLES, np.array([0.2, 0.9], np.float32)), {"axis": (0, 1)}),
    Call("nanpercentile", (HOLES, 40), {"axis": 2, "keepdims": True}),
    Call("digitize", (X, ROW), {}),
    Call("digitize", (X, [2.0, 0.5, -1.0]), {"right": True}),
    Call("digitize", (COUNTS, np.array([1, 2, 3])), {"right": True}),
    Call("histogram", (X,), {}),
    Call("histogram", (X, 7), {"range": (-1, 1)}),
    Call("histogram", (X, ROW), {"density": True}),
    Call("histogram", (I, 4), {"weights": X[:, :, 0]}),
    Call("histogram", (np.ones(4, np.float32), 3), {}),
    Call("isin", (I, COUNTS), {}),
    Call("isin", (I, COUNTS), {"invert": True}),
    Call("isin", (I, NO_COLUMNS), {}),
    Call("isin", (HOLES, HOLES[0]), {}),
    Call("interp", (X, ROW, X[0, 1]), {}),
    Call("interp", (X, ROW, X[0, 1]), {"left": 0, "right": 9}),
    Call("interp", (X, ROW[:1], ROW[:1]), {}),
    *calls("gradient", X),
    *calls("gradient", X, 0.5, edge_order=2),
    *calls("gradient", X, axis=1),
    *calls("gradient", X[:, 0], np.array([0.0, 1.0, 4.0]), 2.0),
    *calls("gradient", X[0].T, ROW[:4] + np.arange(4), axis=1, edge_order=2),
    Call("trapezoid", (X,), {}),
    Call("trapezoid", (X,), {"dx": 0.5, "axis": 1}),
    Call("trapezoid", (X, ROW), {}),
    Call("trapezoid", (X, X + 1), {"axis": 0}),
    *(
        call
        for mode in ("full", "same", "valid")
        for call in (
            *calls("convolve correlate", ROW, X[1, :, 0], mode=mode),
            *calls("convolve correlate", X[1, :3, 0], ROW, mode=mode),
            *calls("convolve correlate", COUNTS, COUNTS[1:], mode=mode),
        )
    ),
    *calls("convolve correlate", LONG, LONG[::2], mode="same"),
    Call("polyval", (ROW, X), {}),
    Call("vander", (COUNTS,), {}),
    Call("vander", (ROW, 3), {"increasing": True}),
    *calls("cov corrcoef", X[0]),
    *calls("cov corrcoef", X[0], X[1], rowvar=False),
    *calls("cov corrcoef", ROW),
    Call("cov", (X[0],), {"bias": True}),
    Call("cov", (X[0],), {"fweights": np.array([1, 2, 0, 3, 1])}),
    Call("cov", (X[0],), {"aweights": np.abs(ROW), "fweights": np.array([1, 2, 0, 3, 1])}),
    Call("cov", (X[0],), {"aweights": np.abs(ROW), "ddof": 0}),
    Call("diag", (ROW,), {}),
    Call("diag", (COUNTS,), {"k": -2}),
    *(Call("diag", (I,), {"k": k}) for k in (0, 2, -1, 5)),
    Call("diagflat", (I,), {"k": 1}),
    *calls("hanning hamming blackman bartlett", 7),
    Call("kaiser", (5, 8.6), {}),
    Call("logspace", (0, 2, 5), {}),
    Call("logspace", (0, 2, 5), {"endpoint": False, "base": 2.0}),
    Call("geomspace", (1, 1000, 4), {}),
    *calls("indices", (2, 3)),
    *calls("tril_indices triu_indices", 3, 1, 4),
    *calls("diag_indices", 3),
    Call("unravel_index", (I, (2, 3, 2)), {}),
    Call("append", (I, I[:1]), {"axis": 0}),
    Call("append", (I, COUNTS), {}),
    Call("delete", (X, 1), {"axis": 1}),
    Call("delete", (X, [0, -1]), {"axis": 2}),
    Call("delete", (X, slice(1, None, 2)), {}),
    Call("insert", (I, 1, 7), {}),
    Call("insert", (I, [0, 2, 2], I[:, :3]), {"axis": 1}),
    Call("insert", (I, 1, COUNTS), {"axis": 0}),
    Call("insert", (I, -1, I[:, 0]), {"axis": 1}),
    Call("ediff1d", (I,), {}),
    Call("ediff1d", (I,), {"to_begin": 5, "to_end": COUNTS}),
    *calls("hsplit vsplit", X[:2], 2),
    Call("dsplit", (X, [1, 3]), {}),
    Call("rollaxis", (X, 2), {}),
    Call("rollaxis", (X, 0, 3), {}),
    Call("resize", (I, (3, 7)), {}),
    Call("lexsort", ([COUNTS[::-1].copy(), COUNTS],), {}),
    Call("broadcast_shapes", ((3, 1), (4,)), {}),
    *calls("asarray array", [1.5, 2]),
]


def compare(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for part, wanted in zip(found, expected, strict=True):
            compare(part, wanted)
        return
    if isinstance(expected, int):
        assert found == expected
        return
    assert isinstance(found, Tensor)
    assert found.shape == np.shape(expected)
    kinds = {"i": "int", "u": "uint", "b": "bool", "f": "float", "c": "complex"}
    assert found.dtype.kind == kinds[np.asarray(expected).dtype.kind]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def with_arrays(call: Call, function: Callable[..., Any], arrays: list[Any]) -> Any:
    """``function`` of the arguments, with the next of ``arrays`` in the place of each array."""
    left = iter(arrays)

    def replaced(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return next(left)
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            return [replaced(part) for part in value]
        return value

    args = [replaced(a) for a in call.args]
    return function(*args, **{k: replaced(v) for k, v in call.kwargs.items()})


def arrays_of(call: Call) -> list[Any]:
    found: list[Any] = []
    for value in (*call.args, *call.kwargs.values()):
        parts = value if isinstance(value, list) else [value]
        found += [part for part in parts if isinstance(part, np.ndarray)]
    return found


@pytest.mark.parametrize("call", TABLE, ids=str)
def test_a_function(call: Call) -> None:
    expected = getattr(np, call.name)(*call.args, **call.kwargs)
    function = getattr(ptir, call.name)
    compare(with_arrays(call, function, arrays_of(call)), expected)
    traced = ptir.jit(lambda arrays: with_arrays(call, function, arrays))
    compare(traced(arrays_of(call)), expected)


def test_histograms_and_powers_of_nothing() -> None:
    counts, edges = ptir.histogram(np.zeros(0, np.float32), bins=4)
    assert (counts.numpy().tolist(), edges.numpy().tolist()) == ([0] * 4, [0, 0.25, 0.5, 0.75, 1])
    found = ptir.jit(lambda x: ptir.nonzero(x, size=2, fill_value=-1))(np.zeros((3, 0)))
    assert [places.numpy().tolist() for places in found] == [[-1, -1]] * 2
    assert ptir.vander(np.zeros(0)).shape == (0, 0)
    assert np.array_equal(ptir.vander(np.array([True, False]), 3).numpy(), [[1, 1, 1], [0, 0, 1]])
    truth: Any = np.array([True])
    assert np.array_equal(ptir.imag(truth).numpy(), [False])
