"""Methods of tensors against those of NumPy and torch; names that are not there."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gptrs.ir.methods
from gptrs import ptir
from gptrs.errors import ArgumentError, ShapeError, UnknownAttributeError
from gptrs.ir.dispatch import FUNCTIONS
from gptrs.ir.methods import METHODS
from gptrs.ir.op_arguments import OTHER_NAMES
from gptrs.ir.tensor import Tensor
from gptrs.ir.types import Array, as_dtype

# The parameters of a lambda have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.0, -0.75]], np.float32)
Z = X + np.array([1j, 0, -2j], np.complex64)

OF_NUMPY: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x.all(axis=1),
    "any": lambda x: x.any(),
    "argmax": lambda x: x.argmax(axis=1) + x.argmax(),
    "argmin": lambda x: x.argmin(0),
    "argsort": lambda x: x.argsort(axis=0),
    "clip": lambda x: x.clip(-1, 2) + x.clip(max=1),
    "conj": lambda x: x.conj(),
    "copy": lambda x: x.copy(),
    "cumprod": lambda x: x.cumprod(axis=1),
    "cumsum": lambda x: x.cumsum(0) * x.cumsum()[-1],
    "diagonal": lambda x: x.diagonal(offset=1),
    "dot": lambda x: x.dot(x.T),
    "flatten": lambda x: x.flatten(),
    "max": lambda x: x.max(axis=1, keepdims=True),
    "min": lambda x: x.min(),
    "prod": lambda x: x.prod(axis=0),
    "ravel": lambda x: x.ravel(),
    "real": lambda x: x.real + x.imag,
    "repeat": lambda x: x.repeat(2, axis=1),
    "repeat of all": lambda x: x.repeat(3),
    "round": lambda x: x.round(1),
    "squeeze": lambda x: x[None].squeeze() + x[:, None].squeeze(axis=1),
    "std": lambda x: x.std(axis=0, ddof=1),
    "sum": lambda x: x.sum(1, keepdims=True),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "take": lambda x: x.take([1, 0], axis=1),
    "take of all": lambda x: x.take([[4, 1]]),
    "trace": lambda x: x.trace(),
    "var": lambda x: x.var(),
    "sizes": lambda x: x.reshape(x.size) * x.nbytes * x.itemsize,
}
OF_TORCH: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: x.abs(),
    "argmax": lambda x: x.argmax(dim=1, keepdim=True),
    "clamp": lambda x: x.clamp(min=0, max=1),
    "clone": lambda x: x.clone().detach().cpu().contiguous(),
    "cumsum": lambda x: x.cumsum(dim=1),
    "expand": lambda x: x[:, :1].expand(4, -1, 3) * x.expand(2, 2, 3).sum(),
    "flatten": lambda x: x[None].flatten(1),
    "masked_fill": lambda x: x.masked_fill(x > 0, 7),
    "mean": lambda x: x.mean(dim=(0, 1), keepdim=True),
    "numel": lambda x: x.reshape(x.numel()),
    "permute": lambda x: x.permute(1, 0),
    "sum": lambda x: x.sum(dim=0, keepdim=True),
    "squeeze": lambda x: x[None].squeeze(dim=0),
    "tile": lambda x: x.tile((2, 3)),
    "unsqueeze": lambda x: x.unsqueeze(1) + x.unsqueeze(dim=-2),
    "var": lambda x: x.var(dim=1, correction=0),
    "view": lambda x: x.view(3, -1) + x.view((3, 2)),
    **{name: (lambda x, name=name: getattr(x, name)()) for name in ("bool", "int", "long")},
    **{name: (lambda x, name=name: getattr(x, name)()) for name in ("half", "double", "float")},
}


def both(function: Callable[[Any], Any], x: Array) -> list[Any]:
    return [ptir.jit(function)(x), function(ptir.tensor(x))]


@pytest.mark.parametrize("name", OF_NUMPY)
def test_a_method_is_that_of_numpy(name: str) -> None:
    function = OF_NUMPY[name]
    x = Z if name in ("conj", "real") else X
    expected = np.asarray(function(x))
    for found in both(function, x):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", OF_TORCH)
def test_a_method_is_that_of_torch(name: str) -> None:
    function = OF_TORCH[name]
    expected = function(torch.from_numpy(X))
    for found in both(function, X):
        assert found.shape == tuple(expected.shape)
        assert found.dtype is as_dtype(expected.dtype)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-6, atol=1e-6)


def test_methods_with_results_of_their_own() -> None:
    x = ptir.tensor(X)
    np.testing.assert_array_equal(x.sort(axis=1), np.sort(X, axis=1))
    assert [place.tolist() for place in x.nonzero()] == [p.tolist() for p in np.nonzero(X)]
    assert x.to("cpu") is x
    assert x.to("cpu", torch.float16).dtype is ptir.f16
    assert x.bfloat16().dtype is ptir.bf16


def test_what_two_libraries_mean_differently_is_refused() -> None:
    x = ptir.tensor(X)
    with pytest.raises(ArgumentError, match="another in torch") as error:
        x.repeat(2, 1)
    assert "x.repeat(2, axis=1)" in error.value.fix
    assert "x.tile((2, 1))" in error.value.fix
    with pytest.raises(ArgumentError, match="there is no backend 'quantum'"):
        x.to("quantum")
    with pytest.raises(ShapeError, match="1 extents for 2 axes"):
        x.expand(3)


def _declared() -> dict[str, list[str]]:
    """The parameters of the methods that checkers see."""
    (owner,) = (
        node
        for node in ast.walk(ast.parse(inspect.getsource(gptrs.ir.methods)))
        if isinstance(node, ast.ClassDef)
    )
    return {
        node.name: [each.arg for each in (*node.args.args[1:], *node.args.kwonlyargs)]
        for node in ast.walk(owner)
        if isinstance(node, ast.FunctionDef)
    }


def test_declared_methods_are_those_of_the_table() -> None:
    declared = _declared()
    assert declared.keys() == METHODS.keys()
    for name, parameters in declared.items():
        own = [*inspect.signature(FUNCTIONS[METHODS[name]]).parameters][1:]
        others = {other for each in own for other, ours in OTHER_NAMES.items() if each in ours}
        kept = [each for each in parameters if each not in ("dim", "keepdim")]
        assert kept == own, name
        assert {*parameters} - {*own} <= others, name
        assert getattr(Tensor, name).__doc__


MISSING: list[tuple[Any, str, str]] = [
    (ptir, "sofmax", "ptir.softmax"),
    (ptir, "no_grad", "leave it out"),
    (ptir.linalg, "invv", "ptir.linalg.inv"),
    (ptir.linalg, "einsum", "ptir.einsum"),
    (ptir.nn, "reluu", "ptir.nn.relu"),
    (ptir.nn, "relu_", "ptir.nn.relu"),
    (ptir.fft, "fftt", "ptir.fft.fft"),
    (ptir.ops, "sofmax", "ptir.ops.softmax"),
    (ptir.random, "randn", "ptir.random.normal(key, shape)"),
    (ptir.tensor(X), "rehsape", "x.reshape"),
    (ptir.tensor(X), "silu", "ptir.silu(x, ...)"),
    (ptir.tensor(X), "clamp_", "x = x.clamp(...)"),
    (ptir.tensor(X), "cuda", "CPU"),
]


@pytest.mark.parametrize(("owner", "name", "fix"), MISSING, ids=[each[1] for each in MISSING])
def test_a_name_that_is_not_there_says_what_is(owner: Any, name: str, fix: str) -> None:
    assert not hasattr(owner, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as error:
        getattr(owner, name)
    assert fix in str(error.value)
    assert error.value.name == name


def test_copies_of_tensors_and_of_their_errors() -> None:
    x = ptir.tensor(X)
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(other, X)
    with pytest.raises(UnknownAttributeError) as error:
        x.no_such_attribute  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]
    assert "no_such_attribute" in str(pickle.loads(pickle.dumps(error.value)))
