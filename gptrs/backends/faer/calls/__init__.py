"""The kernels that custom calls name: one class each, with a row in `_CALLS`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from gptrs.backends.faer.calls.base import Call
from gptrs.locks import no_fork

# Where each is, and the ops that a match may begin with. The first one that matches is taken; a
# class is imported when a program has such an op: text has no convolutions.
_CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("product:MatrixProduct", ("dot_general",)),
    ("attention:Attention", ("attention",)),
    ("rowwise:LayerNorm", ("layer_norm",)),
    ("rowwise:RmsNorm", ("rms_norm",)),
    ("rowwise:Softmax", ("softmax",)),
    ("gather_scatter:Take", ("take",)),
    ("gather_scatter:Update", ("dynamic_update_slice",)),
    ("concat_pad:Concat", ("concat",)),
    ("concat_pad:Pad", ("pad",)),
    ("concat_pad:Tile", ("tile",)),
    ("bottleneck:Bottleneck", ("conv2d", "depthwise_conv2d")),
    ("conv:WinogradConv", ("conv2d",)),
    ("conv:DirectConv", ("conv2d",)),
    ("depthwise:DepthwiseConv", ("conv2d", "depthwise_conv2d")),
    ("pooling:MaxPool", ("max_pool2d",)),
    ("pooling:AvgPool", ("avg_pool2d",)),
    ("pooling:GlobalAvgPool", ("global_avg_pool2d",)),
)


@cache
def calls_of(op: str) -> tuple[type[Call], ...]:
    """What may do an instruction with the op of this name, the first choice first."""
    return tuple([_class_at(place) for place, ops in _CALLS if op in ops])


def _class_at(place: str) -> type[Call]:
    module, _, name = place.partition(":")
    with no_fork:
        return cast("type[Call]", getattr(import_module(f"{__name__}.{module}"), name))
