"""The kernels that custom calls name: one class each, listed in `CALLS`."""

from __future__ import annotations

from gptrs.backends.faer.calls.attending import Attention
from gptrs.backends.faer.calls.base import Call
from gptrs.backends.faer.calls.bottleneck import Bottleneck
from gptrs.backends.faer.calls.conv import DirectConv, WinogradConv
from gptrs.backends.faer.calls.depthwise import DepthwiseConv
from gptrs.backends.faer.calls.pooling import AvgPool, GlobalAvgPool, MaxPool
from gptrs.backends.faer.calls.product import MatrixProduct
from gptrs.backends.faer.calls.rows import Take, Update
from gptrs.backends.faer.calls.rowwise import LayerNorm, Softmax

CALLS: dict[str, type[Call]] = {
    call.target: call
    for call in (
        *(MatrixProduct, Attention, LayerNorm, Softmax, Take, Update),
        *(Bottleneck, WinogradConv, DirectConv, DepthwiseConv, MaxPool, AvgPool, GlobalAvgPool),
    )
}
"""By target."""

COMPOSITES = frozenset(
    [
        *("attention", "layer_norm", "softmax"),
        *("conv2d", "depthwise_conv2d", "max_pool2d", "avg_pool2d", "global_avg_pool2d"),
    ]
)
"""The composites that have a call."""
