"""Layers against torch's: one row for each class of `gptrs.nn.layers`."""

# Functions of torch, whose stubs are partial.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from gptrs import Parameter, Tensor, ptir
from gptrs.nn import (
    BatchNorm2d,
    Conv1D,
    Conv2d,
    ConvLayer,
    DepthwiseConv2d,
    Embedding,
    LayerNorm,
    Linear,
    RMSNorm,
    layers,
)
from tests.support.lazy_torch import F, torch

Array = NDArray[Any]


class Row(NamedTuple):
    make: Callable[..., Callable[[Tensor], Tensor]]
    """The layer of its parameters."""
    shapes: tuple[tuple[int, ...], ...]
    """Those of the parameters."""
    x: tuple[int, ...]
    """The shape of what the layer takes."""
    meaning: Callable[..., Any]
    """What torch computes of x and the parameters, images being [N, C, H, W]."""


def normed(x: Any, scale: Any, shift: Any, mean: Any, var: Any) -> Any:
    return F.batch_norm(x, mean, var, scale, shift, eps=1e-5)


def conv_layer(w: Any, *stats: Any) -> ConvLayer:
    return ConvLayer(Conv2d(w, padding="same"), BatchNorm2d(*stats), "relu")


ROWS = {
    Linear: Row(Linear, ((3, 4), (3,)), (2, 5, 4), lambda x, w, b: F.linear(x, w, b)),
    Conv1D: Row(Conv1D, ((4, 3), (3,)), (2, 5, 4), lambda x, w, b: x @ w + b),
    Embedding: Row(Embedding, ((9, 4),), (2, 5), lambda ids, w: F.embedding(ids, w)),
    LayerNorm: Row(
        lambda w, b: LayerNorm(w, b, 1e-5),
        ((4,), (4,)),
        (2, 5, 4),
        lambda x, w, b: F.layer_norm(x, (4,), w, b, 1e-5),
    ),
    RMSNorm: Row(
        lambda w: RMSNorm(w, 1e-6, plus_one=True),
        ((4,),),
        (2, 5, 4),
        lambda x, w: F.rms_norm(x, (4,), 1 + w, 1e-6),
    ),
    Conv2d: Row(
        lambda w, b: Conv2d(w, b, (2, 1), ((1, 1), (0, 0)), (1, 2)),
        ((5, 3, 3, 2), (5,)),
        (2, 8, 7, 3),
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2)),
    ),
    DepthwiseConv2d: Row(
        lambda w, b: DepthwiseConv2d(w, b, (1, 2)),
        ((3, 1, 3, 2), (3,)),
        (2, 8, 7, 3),
        lambda x, w, b: F.conv2d(x, w, b, (1, 2), groups=3),
    ),
    BatchNorm2d: Row(BatchNorm2d, ((3,),) * 4, (2, 4, 5, 3), normed),
    ConvLayer: Row(
        conv_layer,
        ((5, 3, 3, 3), *((5,),) * 4),
        (2, 4, 5, 3),
        lambda x, w, *stats: F.relu(normed(F.conv2d(x, w, padding="same"), *stats)),
    ),
}


def test_every_layer_has_a_row() -> None:
    declared = [thing for thing in vars(layers).values() if isinstance(thing, type)]
    own = {thing for thing in declared if thing.__module__ == layers.__name__}
    assert own == set(ROWS)


@pytest.mark.parametrize("eager", [False, True], ids=["jit", "eager"])
@pytest.mark.parametrize("row", ROWS.values(), ids=[layer.__name__ for layer in ROWS])
def test_a_layer_computes_what_torch_does(row: Row, eager: bool) -> None:
    rng = np.random.default_rng(0)
    # Variances are positive; of other parameters the sign does not matter.
    arrays = [rng.uniform(0.5, 1.5, shape).astype(np.float32) for shape in row.shapes]
    layer = row.make(*(Parameter(array, f"p{n}") for n, array in enumerate(arrays)))
    given = [torch.from_numpy(array) for array in arrays]
    if row is ROWS[Embedding]:
        x: Array = rng.integers(0, 9, row.x)
        expected = row.meaning(torch.from_numpy(x), *given)
    else:
        x = rng.standard_normal(row.x).astype(np.float32)
        images = len(row.x) == 4
        seen = torch.from_numpy(x).permute(0, 3, 1, 2) if images else torch.from_numpy(x)
        expected = row.meaning(seen, *given)
        expected = expected.permute(0, 2, 3, 1) if images else expected

    @ptir.jit
    def apply(x: Tensor) -> Tensor:
        return layer(x)

    with ptir.eager(eager):
        found = apply(x)
    # At most 36 products of numbers of about 1 are summed, in another order.
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
