"""Batching rules of windows and images: the examples join the images [N, H, W, C] as more of them.

A convolution whose kernel differs by example is mapped by its definition, as a batched product.
"""

from __future__ import annotations

from gptrs.ir.batching.axes import folded
from gptrs.ir.ops.vision import avg_pool2d, conv2d, depthwise_conv2d, max_pool2d
from gptrs.ir.ops.window import extract_patches, reduce_window

folded(extract_patches, reduce_window, max_pool2d, avg_pool2d, conv2d, depthwise_conv2d)
