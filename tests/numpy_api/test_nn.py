"""``ptir.nn`` beside ``torch.nn.functional``: the same calls, eager and traced."""

# torch's functions, and ours by name, have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.errors import ArgumentError
from gptrs.numpy_api import nn
from tests.numpy_api.nn_calls import TABLE, Call, call_with
from tests.numpy_api.nn_calls.inputs import X
from tests.support.lazy_torch import F, torch

DRAWN = {
    *("alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"),
    *("gumbel_softmax", "rrelu"),
}
"""Functions that draw numbers: `tests.numpy_api.test_nn_random`."""
OF_JAX = {
    *("dot_product_attention", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity"),
    *("log1mexp", "log_sigmoid", "logmeanexp", "soft_sign", "sparse_plus", "sparse_sigmoid"),
    *("squareplus", "standardize", "swish"),
}
"""Functions of ``jax.nn``: `tests.numpy_api.test_jax_names`."""


def compare(found: Any, expected: Any) -> None:
    found = found if isinstance(found, tuple | list) else [found]
    expected = expected if isinstance(expected, tuple | list) else [expected]
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert ours.shape == tuple(theirs.shape)
        assert ours.numpy().dtype == theirs.numpy().dtype
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", TABLE, ids=str)
def test_a_function(call: Call) -> None:
    theirs = call
    if "dtype" in call.kwargs:
        theirs = call._replace(
            kwargs={**call.kwargs, "dtype": getattr(torch, call.kwargs["dtype"])}
        )
    expected = call_with(getattr(F, call.name), theirs, torch.from_numpy)
    function = getattr(ptir.nn, call.name)
    compare(call_with(function, call, ptir.tensor), expected)
    arrays: list[Any] = []
    call_with(lambda *args, **kwargs: None, call, arrays.append)

    def traced(*inputs: Any) -> Any:
        rest = iter(inputs)
        return call_with(function, call, lambda _: next(rest))

    compare(ptir.jit(traced)(*arrays), expected)


@pytest.mark.parametrize("module", nn.MODULES)
def test_a_module_has_the_names_of_the_table(module: str) -> None:
    found: Any = import_module(f"gptrs.numpy_api.nn.{module}")
    assert sorted(found.__all__) == sorted(nn.MODULES[module])
    tested = {call.name for call in TABLE} | DRAWN | OF_JAX
    for name in found.__all__:
        assert getattr(ptir.nn.functional, name) is getattr(found, name)
        assert getattr(found, name).__doc__
        assert name in tested


def test_inplace_is_refused() -> None:
    with pytest.raises(ArgumentError, match="immutable"):
        ptir.nn.relu(X, inplace=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ptir.nn, "no_such_function")


@pytest.mark.parametrize("name", ["layer_norm", "conv2d", "cross_entropy", "batch_norm"])
def test_parameters_are_those_of_torch(name: str) -> None:
    if name == "conv2d":  # a builtin of torch, without a signature
        expected = ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
    else:
        expected = list(inspect.signature(getattr(F, name)).parameters)
    assert list(inspect.signature(getattr(ptir.nn, name)).parameters) == expected
