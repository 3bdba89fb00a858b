"""einops' functions on tensors, traced and eager, against those on arrays."""

# einops is optional, and has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from gptrs import ptir
from gptrs.ir.tensor import Tensor

pytest.importorskip("einops")
einops: Any = import_module("einops")
array_api: Any = import_module("einops.array_api")

X = np.random.default_rng(0).standard_normal((4, 6, 3)).astype(np.float32)
W = X[0]

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda of, x: of.rearrange(x, "a b c -> c a b"),
    "matrix": lambda of, x: of.rearrange(x[0], "a b -> b a"),
    "split": lambda of, x: of.rearrange(x, "(a d) (b e) c -> a b (d e c)", d=2, e=3),
    "list": lambda of, x: of.rearrange([x, x * 2], "n a b c -> a (n b) c"),
    "new axes": lambda of, x: of.repeat(x, "a b c -> a n (b k) c", n=2, k=3),
    "sum": lambda of, x: of.reduce(x, "a b c -> b", "sum"),
    "mean": lambda of, x: of.reduce(x, "a (b d) c -> a b 1", "mean", d=2),
    "max": lambda of, x: of.reduce(x, "... c -> ...", "max"),
    "function": lambda of, x: of.reduce(x, "a b c -> a", lambda x, axes: x.min(axis=tuple(axes))),
    "pack": lambda of, x: of.pack([x, x[:, :, 0]], "a *")[0],
    "unpack": lambda of, x: of.unpack(x[0], [(2,), (4,)], "* c")[1],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("module", [einops, array_api], ids=["einops", "array_api"])
def test_a_function_of_einops(module: Any, name: str) -> None:
    function = CALLS[name]
    expected = function(einops, X)
    for found in (ptir.jit(lambda x: function(module, x))(X), function(module, ptir.tensor(X))):
        assert isinstance(found, Tensor)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_einsum() -> None:
    def product(x: Any) -> Any:
        return einops.einsum(x, W, "a b c, b d -> a c d")

    np.testing.assert_allclose(ptir.jit(product)(X), product(X), rtol=1e-5, atol=1e-6)


def test_a_symbolic_size() -> None:
    tokens = ptir.jit(
        lambda x: einops.rearrange(x, "n (a b) c -> (n b) a c", a=2), dynamic={"x": {0: "N"}}
    )
    for count in (4, 3):
        expected = einops.rearrange(X[:count], "n (a b) c -> (n b) a c", a=2)
        np.testing.assert_array_equal(tokens(X[:count]), expected)
    assert len(tokens.retraces()) <= 1


def test_a_pattern_that_does_not_fit_is_the_error_of_einops() -> None:
    with pytest.raises(einops.EinopsError, match="divide axis"):
        ptir.jit(lambda x: einops.rearrange(x, "(a b) c d -> a b c d", a=3))(X)


LATE = """
import sys
import numpy as np
from gptrs import ptir
assert "einops" not in sys.modules
x = ptir.tensor(np.arange(6.0).reshape(2, 3))
{}
from einops import rearrange
assert rearrange(x, "a b -> b a").shape == (3, 2)
assert ptir.jit(lambda x: rearrange(x, "a b -> (b a)"))(x).shape == (6,)
assert not [finder for finder in sys.meta_path if "gptrs" in type(finder).__module__]
"""
INSIDE = """
@ptir.jit
def turned(x):
    import einops
    return einops.rearrange(x, "a b -> b a")
assert turned(x).shape == (3, 2)
"""


@pytest.mark.parametrize("first", ["", INSIDE], ids=["after tensors", "while tracing"])
def test_einops_is_imported_late(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(first)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
